package cli

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestLocalProcess: without --admin a command calls what listens where reprise run does, also if that refuses, and what
// listens where reprise up does only if nothing listens there: it must not act on another process than the one that is meant.
func TestLocalProcess(t *testing.T) {
	answering := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":"x","code":"x"}`))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + free.Addr().String()
	free.Close()
	second := answering(http.StatusOK)
	ok, asking, refusing, broken := answering(http.StatusOK), answering(http.StatusUnauthorized), answering(http.StatusForbidden), answering(http.StatusInternalServerError)
	for _, test := range []struct{ name, first, want string }{
		{"one that answers", ok, ok}, {"one that asks for its token", asking, asking}, {"one that refuses", refusing, refusing},
		{"one that fails", broken, broken}, {"nobody", nobody, second},
	} {
		client, err := localProcess(t.Context(), test.first, second, "")
		if err != nil || client.Address() != test.want {
			t.Errorf("%s: %v at %s, want %s", test.name, err, client.Address(), test.want)
		}
	}
}

// TestProcessOutOfReach: a command that waits for a job goes on through half a minute without an answer, however long
// it has waited before.
func TestProcessOutOfReach(t *testing.T) {
	began, silent := time.Now(), errors.New("no route")
	in := reach{began}
	for _, step := range []struct {
		after time.Duration
		err   error
		lost  bool
	}{
		{lostFor, silent, false}, {lostFor + time.Second, nil, false}, {2*lostFor + time.Second, silent, false},
		{10 * lostFor, nil, false}, {10*lostFor + time.Second, silent, false}, {11*lostFor + time.Second, silent, true},
	} {
		if lost := in.lost(step.err, began.Add(step.after)); lost != step.lost {
			t.Errorf("after %v, with the answer %v: lost %t, want %t", step.after, step.err, lost, step.lost)
		}
	}
}
