package simreport_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// measured is a simulated incident as a metric has it, in CSV.
func measured(t *testing.T, s simulate.Scenario) (*simulate.Result, string) {
	t.Helper()
	s.Bucket = time.Minute
	r, err := simulate.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("time,arrived,attempts,done,dead,oldest,takes\n")
	start := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	for _, p := range r.Series {
		fmt.Fprintf(&b, "%s,%d,%d,%d,%d,%.0f,0.2\n", start.Add(p.At).Format(time.RFC3339), p.Arrived, p.Started, p.Done, p.Dead, p.Oldest.Seconds())
	}
	return r, b.String()
}

// TestFit: of an incident that was simulated, the failures and outages are found again, and the
// simulation of what was found makes the attempts of the incident, with a breaker and without.
func TestFit(t *testing.T) {
	for _, noBreaker := range []bool{false, true} {
		for _, share := range []float64{1, 0.8} {
			s := simulate.Scenario{
				Traffic:    simulate.Traffic{Rate: 4, For: time.Hour},
				Policy:     retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: 2 * time.Minute}, MaxAttempts: 8},
				Handler:    simulate.Handler{Takes: simulate.Exponential(200 * time.Millisecond), Fails: []float64{0.1}},
				Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 20 * time.Minute, For: 15 * time.Minute, Share: share}}},
				Fleet:      simulate.Fleet{NoBreaker: noBreaker},
			}
			r, text := measured(t, s)
			incident, err := simreport.ReadIncident([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			fit := simreport.FitTo(incident)
			name := fmt.Sprintf("breaker off %v, an outage of %v", noBreaker, share)
			if len(fit.Outages) != 1 {
				t.Fatalf("%s: outages %+v, want one", name, fit.Outages)
			}
			o := fit.Outages[0]
			if (o.At-20*time.Minute).Abs() > time.Minute || (o.For-15*time.Minute).Abs() > time.Minute || math.Abs(o.Share-share) > 0.1 {
				t.Errorf("%s: found %+v", name, o)
			}
			if math.Abs(fit.Fails-0.1) > 0.02 || fit.Takes != 200*time.Millisecond {
				t.Errorf("%s: %v of the attempts fail, runs of %v; want 0.1 and 200ms", name, fit.Fails, fit.Takes)
			}
			fitted := simulate.Scenario{Policy: s.Policy, Fleet: s.Fleet, Seed: 99}
			fit.Apply(&fitted)
			again, err := simulate.Run(t.Context(), fitted, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ratio := float64(again.Attempts.Started) / float64(r.Attempts.Started); math.Abs(ratio-1) > 0.1 || again.Messages.Arrived != r.Messages.Arrived {
				t.Errorf("%s: %d attempts of %d messages in the incident, %d of %d simulated", name, r.Attempts.Started, r.Messages.Arrived, again.Attempts.Started, again.Messages.Arrived)
			}
			beside := fit.Beside(again)
			for _, want := range []string{"periods of 1m from 2026-01-31T09:00:00Z", "an outage of 15m at 20m", "a run takes 200ms", "measured    simulated", "a period differs by", "oldest"} {
				if !strings.Contains(beside, want) {
					t.Errorf("%s: there is no %q:\n%s", name, want, beside)
				}
			}
			t.Logf("%s:\n%s", name, beside)
		}
	}
}

// TestIncident: names are those of CloudWatch too, in CSV and JSON, and gaps have no messages.
func TestIncident(t *testing.T) {
	for name, text := range map[string]string{
		"CSV":  "Label,x NumberOfMessagesSent,x NumberOfMessagesReceived,x NumberOfMessagesDeleted,other\n2026/01/31 09:00:00,5,6,4,1\n2026/01/31 09:01:00,7,8,,1\n2026/01/31 09:03:00,1,1,1,\n",
		"JSON": `{"MetricDataResults": [{"Label": "NumberOfMessagesSent", "Timestamps": ["2026-01-31T09:03:00Z", "2026-01-31T09:00:00Z", "2026-01-31T09:01:00Z"], "Values": [1, 5, 7]}, {"Label": "NumberOfMessagesReceived", "Timestamps": [1769850060, 1769850000, 1769850180], "Values": [8, 6, 1]}, {"Label": "NumberOfMessagesDeleted", "Timestamps": ["2026-01-31T09:00:00Z", "2026-01-31T09:03:00Z"], "Values": [4, 1]}, {"Label": "x", "StatusCode": "PartialData"}]}`,
	} {
		in, err := simreport.ReadIncident([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []simreport.Period{{Arrived: 5, Attempts: 6, Done: 4}, {Arrived: 7, Attempts: 8}, {}, {Arrived: 1, Attempts: 1, Done: 1}}
		if fmt.Sprint(in.Periods) != fmt.Sprint(want) || in.Every != time.Minute || in.HasOldest {
			t.Errorf("%s: %+v", name, in)
		}
	}
	for text, want := range map[string]string{
		"":  "no arrived or NumberOfMessagesSent, no attempts or",
		"{": "no reply of get-metric-data",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,x\n":                                                         `line 2, column 26: done is "x": write a number`,
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,-1\n":                                                        `line 2, column 26: done is "-1"`,
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,1\nyesterday,1,2,1\n":                                        `line 3, column 1: "yesterday" is no time`,
		"time,arrived,attempts\n2026-01-31T09:00:00Z,1,2\n":                                                                "there is no done or NumberOfMessagesDeleted: add it",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,1\n":                                                         "there are 1 points",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,1\n2026-01-31T09:00:00Z,1,2,1\n":                             "two points of 2026-01-31T09:00:00Z",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,0,2,1\n2026-01-31T09:01:00Z,0,2,1\n":                             "no message arrived",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,2,1\n2026-01-31T09:00:01Z,1,2,1\n2026-01-31T19:00:00Z,1,2,1\n": "36001 periods: take 10000",
		"time,arrived,attempts,done\n2026-01-31T09:00:00Z,1,\"2,1\n":                                                       "neither JSON nor CSV",
		`{"MetricDataResults": [{"Label": "NumberOfMessagesSent", "StatusCode": "PartialData"}]}`:                          `the result "NumberOfMessagesSent": the StatusCode`,
	} {
		if _, err := simreport.ReadIncident([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}

// tail is what reprise tail -o json prints of a simulation.
func tail(t *testing.T, s simulate.Scenario) string {
	t.Helper()
	s.Trace = 1_000_000
	r, err := simulate.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(map[int]time.Duration)
	for _, a := range r.Trace {
		if _, known := sent[a.Message]; !known { // evenly, as Traffic.Even has them
			sent[a.Message] = time.Duration((float64(a.Message) + 0.5) / s.Traffic.Rate * float64(time.Second))
		}
	}
	var b strings.Builder
	start := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	b.WriteString(`{"event":"breaker","queue":"orders","state":"closed","at":"2026-01-31T09:00:00Z","held":0}` + "\n")
	for _, a := range r.Trace {
		fmt.Fprintf(&b, `{"event":"attempt","queue":"orders","at":%q,"message":"m","origin":%q,"sent":%q,"attempt":%d,"duration_ms":%g,"outcome":%q}`+"\n",
			start.Add(a.Ended).Format(time.RFC3339Nano), a.ID, start.Add(sent[a.Message]).Format(time.RFC3339Nano), a.Attempt, float64(a.Ended-a.Started)/1e6, a.Outcome)
	}
	return b.String()
}

// TestTail: the events of an incident, with a breaker and without, are counted as they happened, and
// what is found in them is what happened.
func TestTail(t *testing.T) {
	for _, noBreaker := range []bool{false, true} {
		s := simulate.Scenario{
			Traffic:    simulate.Traffic{Rate: 4, For: time.Hour, Even: true},
			Policy:     retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: 2 * time.Minute}, MaxAttempts: 8},
			Handler:    simulate.Handler{Takes: simulate.Constant(200 * time.Millisecond), Fails: []float64{0.1}},
			Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 20 * time.Minute, For: 15 * time.Minute}}},
			Fleet:      simulate.Fleet{NoBreaker: noBreaker},
		}
		r, err := simulate.Run(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		incident, err := simreport.ReadIncident([]byte(tail(t, s)))
		if err != nil {
			t.Fatal(err)
		}
		var sum simreport.Period
		for _, p := range incident.Periods {
			sum.Arrived += p.Arrived
			sum.Attempts += p.Attempts
			sum.Done += p.Done
			sum.Dead += p.Dead
		}
		if want := (simreport.Period{Arrived: r.Messages.Arrived, Attempts: r.Attempts.Started, Done: r.Messages.Done, Dead: r.Messages.Dead}); sum != want || incident.Every != time.Minute {
			t.Errorf("breaker off %v: %+v in periods of %v, want %+v in minutes", noBreaker, sum, incident.Every, want)
		}
		if first, tenth := incident.Periods[1].Arrived, incident.Periods[25].Arrived; first != 240 || tenth != 240 {
			t.Errorf("breaker off %v: %d and %d messages arrive in a minute, want 240, in an outage too", noBreaker, first, tenth)
		}
		fit := simreport.FitTo(incident)
		if len(fit.Outages) != 1 || math.Abs(fit.Fails-0.1) > 0.02 || fit.Takes != 200*time.Millisecond {
			t.Fatalf("breaker off %v: %v fail, runs of %v, outages %+v", noBreaker, fit.Fails, fit.Takes, fit.Outages)
		}
		if o := fit.Outages[0]; (o.At-20*time.Minute).Abs() > time.Minute || (o.For-15*time.Minute).Abs() > time.Minute {
			t.Errorf("breaker off %v: found %+v", noBreaker, o)
		}
	}
}

// TestTailThatIsSpoilt: what is wrong with events is named.
func TestTailThatIsSpoilt(t *testing.T) {
	const one = `{"event":"attempt","queue":"orders","at":"2026-01-31T09:00:00Z","message":"m","attempt":1,"duration_ms":5,"outcome":"delete"}`
	for text, want := range map[string]string{
		`{"event":"breaker"}`: "no attempt is among the events: record them",
		one + "\n{":           "event 2 is not as reprise tail -o json writes it",
		one + strings.ReplaceAll(one, "orders", "bills"):          `event 2 is of queue "bills", the first of "orders"`,
		`{"event":"attempt","message":"m"}`:                       "without a time, a message or a duration",
		one + `{"event":"lost","events":5}`:                       "5 events are missing beside 1 attempts",
		one + strings.ReplaceAll(one, "2026-01-31", "2007-01-31"): "take those of 57600h0m0s at most",
	} {
		if _, err := simreport.ReadIncident([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}

// TestReplayAsJSON: the comparison of policies says what each would have lost, delayed and paid, and by
// how much more than the one that ran.
func TestReplayAsJSON(t *testing.T) {
	_, text := measured(t, simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 4, For: 20 * time.Minute}, Policy: retry.Policy{Backoff: retry.Constant(10 * time.Second), MaxAttempts: 3},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 5 * time.Minute, For: 5 * time.Minute}}}, Fleet: simulate.Fleet{NoBreaker: true},
	})
	incident, err := simreport.ReadIncident([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	report := simreport.Report{Replay: simreport.FitTo(incident)}
	for _, attempts := range []int{3, 20} {
		s := simulate.Scenario{Policy: retry.Policy{Backoff: retry.Constant(10 * time.Second), MaxAttempts: attempts, MaxAge: -1}, Fleet: simulate.Fleet{NoBreaker: true}}
		report.Replay.Apply(&s)
		r, err := simulate.Run(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		report.Runs = append(report.Runs, simreport.Run{Label: fmt.Sprint(attempts), Result: r})
	}
	out, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Replay struct {
			Periods             int
			Outages             []struct{ At, For, Share float64 }
			Measured, Simulated struct{ Attempts, Done, Dead int }
			Policies            []struct {
				Label            string
				Lost             int
				Late, Last, Paid float64
				More             struct {
					Lost       int
					Late, Paid float64
				}
			}
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	j := got.Replay
	if j.Periods < 20 || len(j.Outages) != 1 || j.Outages[0].At != 300 || j.Measured.Dead == 0 || j.Simulated.Dead == 0 || len(j.Policies) != 2 {
		t.Fatalf("the replay is %+v", j)
	}
	one, other := j.Policies[0], j.Policies[1]
	if one.Lost != report.Runs[0].Result.Messages.Dead || one.More.Lost != 0 || other.Lost >= one.Lost || other.More.Lost != other.Lost-one.Lost || other.Late <= one.Late || other.Paid == one.Paid || other.More.Paid != other.Paid-one.Paid {
		t.Errorf("with 3 attempts %+v, with 20 %+v", one, other)
	}
}

// TestReplayClearsAllOutages: the time until all that waited was settled is the longest after an outage, and none is told
// if of one of them messages waited until the end.
func TestReplayClearsAllOutages(t *testing.T) {
	fit := simreport.FitTo(&simreport.Incident{Every: time.Minute, Periods: []simreport.Period{{Arrived: 1, Attempts: 1, Done: 1}, {}}})
	report := simreport.Report{Replay: fit}
	for _, cleared := range [][]time.Duration{{3 * time.Minute, 2 * time.Minute}, {3 * time.Minute, -1}, {-1, 3 * time.Minute}} {
		r := &simulate.Result{}
		for _, d := range cleared {
			r.Outages = append(r.Outages, simulate.Recovery{Cleared: d})
		}
		report.Runs = append(report.Runs, simreport.Run{Result: r})
	}
	text, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Replay struct{ Policies []struct{ Cleared *float64 } }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if p := got.Replay.Policies; len(p) != 3 || p[0].Cleared == nil || *p[0].Cleared != 180 || p[1].Cleared != nil || p[2].Cleared != nil {
		t.Errorf("the replay is %.2000s", text)
	}
}

// TestFitOfLittle: incidents without failures, without attempts, and of nothing but failures.
func TestFitOfLittle(t *testing.T) {
	for name, tt := range map[string]struct {
		periods []simreport.Period
		fails   float64
		outages int
	}{
		"all well":            {[]simreport.Period{{Arrived: 100, Attempts: 100, Done: 100}, {Arrived: 100, Attempts: 100, Done: 101}}, 0, 0},
		"quiet":               {[]simreport.Period{{Arrived: 1, Attempts: 1, Done: 1}, {}}, 0, 0},
		"no attempt was made": {[]simreport.Period{{Arrived: 100, Attempts: 100, Done: 100}, {Arrived: 100}, {Arrived: 100, Attempts: 100, Done: 100}}, 0, 1},
		"all fail always":     {[]simreport.Period{{Arrived: 100, Attempts: 100}, {Arrived: 100, Attempts: 100}}, 1, 0},
	} {
		fit := simreport.FitTo(&simreport.Incident{Every: time.Minute, Periods: tt.periods})
		if fit.Fails != tt.fails || len(fit.Outages) != tt.outages {
			t.Errorf("%s: %v fail, outages %+v", name, fit.Fails, fit.Outages)
		}
		if beside := fit.Beside(&simulate.Result{}); !strings.Contains(beside, "attempts") {
			t.Errorf("%s: %s", name, beside)
		}
	}
}

// FuzzIncident checks that what is read has periods, and that a fit of it is a valid scenario.
func FuzzIncident(f *testing.F) {
	f.Add([]byte("time,arrived,attempts,done,dead,oldest,takes\n2026-01-31 09:00,50,60,40,1,9,0.2\n2026-01-31 09:01,70,80,0,2,70,1e-9\n"))
	f.Add([]byte(`{"MetricDataResults": [{"Label": "arrived", "Timestamps": [1769850000, 1769850060], "Values": [3, 4]}, {"Label": "attempts", "Timestamps": [1769850000], "Values": [90]}, {"Label": "done", "Timestamps": [1769850000], "Values": [1e8]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := simreport.ReadIncident(text)
		if err != nil {
			return
		}
		if in.Every <= 0 || len(in.Periods) < 2 || len(in.Periods) > simulate.MaxBuckets {
			t.Fatalf("%q is read as %+v", text, in)
		}
		var s simulate.Scenario
		fit := simreport.FitTo(in)
		fit.Apply(&s)
		s.Policy.MaxAttempts = 3
		if err := s.Validate(); err != nil && !strings.Contains(err.Error(), "traffic.") && !strings.Contains(err.Error(), "number of messages") && !strings.Contains(err.Error(), "handler.takes") && !strings.Contains(err.Error(), "dependency.outages") {
			t.Fatalf("%q: %v", text, err)
		}
		fit.Beside(&simulate.Result{})
	})
}
