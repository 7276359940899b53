package simreport_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// deploy is four hours in which a bad deploy makes 15 % of the attempts fail for an hour and a half.
func deploy(seed uint64) simulate.Scenario {
	return simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 3, For: 4 * time.Hour}, Policy: retry.Policy{Backoff: retry.Constant(10 * time.Second), MaxAttempts: 5}, Seed: seed,
		Handler: simulate.Handler{Takes: simulate.Exponential(200 * time.Millisecond), Fails: []float64{0.02}, Changes: []simulate.Change{
			{At: time.Hour, Fails: []float64{0.15}}, {At: 150 * time.Minute, Fails: []float64{0.02}},
		}},
	}
}

func fitted(t *testing.T, s simulate.Scenario) *simreport.Fit {
	t.Helper()
	_, text := measured(t, s)
	incident, err := simreport.ReadIncident([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return simreport.FitTo(incident)
}

// TestFitOfChanges: a share that changes is found again, to five minutes and 1.5 points, with outages
// and without; and under another policy the scenario that was found does what the incident's would
// have done, to a tenth, which one share for all the time does not.
func TestFitOfChanges(t *testing.T) {
	for seed := range uint64(race.Fewer(4, 2)) { //nolint:gosec // G115: a small number
		s := deploy(seed)
		if seed%2 == 1 {
			s.Dependency.Outages = []simulate.Outage{{At: 2 * time.Hour, For: 10*time.Minute + 30*time.Second}, {At: 3 * time.Hour, For: 5 * time.Minute}}
			s.Fleet.NoBreaker = seed%4 == 1
		}
		fit := fitted(t, s)
		if len(fit.Changes) != 2 || len(fit.Outages) != len(s.Dependency.Outages) || math.Abs(fit.Fails-0.02) > 0.015 {
			t.Errorf("seed %d: at first %v fail, %+v, outages %+v", seed, fit.Fails, fit.Changes, fit.Outages)
			continue
		}
		for i, want := range s.Handler.Changes {
			if got := fit.Changes[i]; (got.At-want.At).Abs() > 5*time.Minute || math.Abs(got.Fails[0]-want.Fails[0]) > 0.015 {
				t.Errorf("seed %d: found %+v, want %+v", seed, got, want)
			}
		}
		for i, o := range fit.Outages {
			if (o.At-s.Dependency.Outages[i].At).Abs() > time.Minute || o.Share < 0.95 {
				t.Errorf("seed %d: found %+v, want %+v", seed, o, s.Dependency.Outages[i])
			}
		}
	}
}

// TestReplayOfChanges: under another policy the scenario that was found loses as many messages as the
// incident would have, to a fifth, and one share for all the time half of them at the most.
func TestReplayOfChanges(t *testing.T) {
	s := deploy(1)
	fit := fitted(t, s)
	other := retry.Policy{Backoff: retry.Constant(10 * time.Second), MaxAttempts: 2}
	lost := func(s simulate.Scenario) float64 {
		s.Policy = other
		r, err := simulate.Run(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return float64(r.Messages.Dead)
	}
	again := simulate.Scenario{Seed: 50}
	fit.Apply(&again)
	want, got := lost(s), lost(again)
	again.Handler.Fails, again.Handler.Changes = []float64{0.065}, nil
	constant := lost(again)
	if want < 300 || math.Abs(got/want-1) > 0.2 || constant > want/1.7 {
		t.Errorf("%g messages are lost with two attempts, %g in the scenario that was found, %g with one share", want, got, constant)
	}
	beside := fit.Beside(&simulate.Result{})
	if !strings.Contains(beside, " % of the attempts fail, 1") || !strings.Contains(beside, " % from 59m") && !strings.Contains(beside, " % from 1h") {
		t.Errorf("the changes are not among\n%s", beside)
	}
	report := simreport.Report{Replay: fit, Runs: []simreport.Run{{Result: &simulate.Result{}}}}
	if text, err := report.JSON(); err != nil || strings.Count(string(text), `"fails": 0.`) != 3 {
		t.Errorf("%v: there are not three shares in\n%.600s", err, text)
	}
}

// TestReadFailing: shares of attempts and of times, and what is no such text.
func TestReadFailing(t *testing.T) {
	var h simulate.Handler
	if err := simreport.ReadFailing(&h, "50%, 20%,15%@1h,0.1,2%@4h30m"); err != nil {
		t.Fatal(err)
	}
	v, err := simreport.Vary(simulate.Scenario{Handler: h}, "failing=2%,15%@1h")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		got  simulate.Handler
		want simulate.Handler
	}{
		{h, simulate.Handler{Fails: []float64{0.5, 0.2}, Changes: []simulate.Change{{At: time.Hour, Fails: []float64{0.15, 0.1}}, {At: 270 * time.Minute, Fails: []float64{0.02}}}}},
		{v.Scenario.Handler, simulate.Handler{Fails: []float64{0.02}, Changes: []simulate.Change{{At: time.Hour, Fails: []float64{0.15}}}}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%+v, want %+v", tt.got, tt.want)
		}
	}
	for text, want := range map[string]string{
		"2%,x@1h": `"x" is no share`, "2%,15%@": `"" is no time: write from when on 15% fail, such as 15%@1h`, "2%@1h@2h": `"1h@2h" is no time`, "": `"" is no share`,
	} {
		before := h
		if err := simreport.ReadFailing(&h, text); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(h, before) {
			t.Errorf("%q: the error is %v, want %q; %+v", text, err, want, h)
		}
	}
}
