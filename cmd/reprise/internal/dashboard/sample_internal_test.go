package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// sampled returns a sampler of a process whose statistics are what reply returns.
func sampled(t *testing.T, reply func() admin.Stats) *sampler {
	t.Helper()
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(reply()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(process.Close)
	client, err := admin.NewClient(process.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return newSampler(client, true)
}

// TestActionDuringASample: a sample that was asked for before something was changed is not shown after it.
func TestActionDuringASample(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := sampled(t, func() admin.Stats {
		now := admin.Stats{At: time.Now()}
		asked <- struct{}{}
		<-answer
		return now
	})
	taken := make(chan error, 1)
	take := func() { taken <- s.take(t.Context(), s.every) }
	go take()
	<-asked
	s.forget() // an operator pauses a consumer meanwhile
	answer <- struct{}{}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if now, _ := s.last(); now != nil {
		t.Error("what was asked for before the action is shown after it")
	}
	go take()
	select {
	case <-asked:
		answer <- struct{}{}
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
	case err := <-taken:
		t.Fatalf("no sample is taken after the action: %v", err)
	}
	if now, _ := s.last(); now == nil {
		t.Error("the sample after the action is not shown")
	}
}

// TestRatesOfCharts: the rates of a chart are those since the sample before, and not those of the last ten seconds, as the
// tables have them: a burst is seen once.
func TestRatesOfCharts(t *testing.T) {
	began := time.Now().Add(-6 * time.Second)
	counts := []int64{0, 100, 100, 130}
	next := 0
	s := sampled(t, func() admin.Stats {
		at, sent := began.Add(time.Duration(2*next)*time.Second), counts[next]
		next++
		return admin.Stats{At: at, Since: began, Queues: []admin.QueueStats{{Queue: operate.Queue{Name: "orders", URL: "https://sqs.invalid/0/orders"}, Traffic: &admin.Traffic{Sent: sent}}}}
	})
	for range counts {
		if err := s.take(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	in := s.history.queues["https://sqs.invalid/0/orders"].In
	if len(in) != 4 || in[0] != nil {
		t.Fatalf("%d rates, the first %v", len(in), in[0])
	}
	for i, want := range []float64{50, 0, 15} {
		if got := in[i+1]; got == nil || *got != want {
			t.Errorf("rate %d is %v, want %g a second", i+1, got, want)
		}
	}
	if _, before := s.last(); before == nil || !before.At.Equal(began) {
		t.Errorf("tables compare with %v, want the first of the last ten seconds", before)
	}
}
