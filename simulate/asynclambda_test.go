package simulate_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

func asyncLambda(t *testing.T, a simulate.AsyncLambda) *simulate.AsyncLambdaResult {
	t.Helper()
	r, err := simulate.RunAsyncLambda(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if r.Succeeded+r.Exhausted+r.Expired+r.Waiting != r.Events {
		t.Fatalf("not all of %d events have an end: %+v", r.Events, r)
	}
	runs := 0
	for _, n := range r.Minutes {
		runs += n
	}
	if runs != r.Runs {
		t.Fatalf("the minutes have %d runs of %d", runs, r.Runs)
	}
	return r
}

// TestAsyncLambdaByHand follows one event that always fails: each run, request and invocation of the retry
// handler, and what they cost.
func TestAsyncLambdaByHand(t *testing.T) {
	got := asyncLambda(t, simulate.AsyncLambda{
		Events: 1, Takes: simulate.Constant(time.Second), Fails: 1, Receive: simulate.Constant(time.Second),
		Policy: policy(t, "constant(10m) jitter=none attempts=3"),
	})
	// Runs begin at 0 s; at 1 s + 10 min, and a second until the record is received; and so on.
	minutes := make([]int, 21)
	minutes[0], minutes[10], minutes[20] = 1, 1, 1
	want := &simulate.AsyncLambdaResult{
		Events: 1, Exhausted: 1, Runs: 3, Failed: 3, Minutes: minutes, Last: 20*time.Minute + 4*time.Second,
		// sent, received, hidden, received, deleted; the last: sent, received, copied, deleted
		Requests: 5 + 5 + 4, HandlerRuns: 2 + 2 + 1, HandlerTime: 5 * 50 * time.Millisecond,
	}
	want.GivenUp, want.Simulated = got.GivenUp, got.Simulated
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the result is\n%+v, want\n%+v", got, want)
	}
	if after := 20*time.Minute + 5*time.Second; got.GivenUp.Count != 1 || got.GivenUp.Most != after {
		t.Errorf("it is given up %v after its first record, want %v", got.GivenUp.Most, after)
	}
	million := &simulate.AsyncLambdaResult{Requests: 5_000_000, HandlerRuns: 2_000_000, HandlerTime: 100_000 * time.Second}
	if cost := million.Cost(); math.Abs(cost-2.57) > 0.005 {
		t.Errorf("a million failed runs cost $%.4f, want $2.57, as docs/lambda.md says", cost)
	}
}

// TestHandlerWaitsForWhatIsDueSoon: the retry handler waits for a record that is due within two seconds. That time is
// paid for, and saves a request to hide the record and another receive.
func TestHandlerWaitsForWhatIsDueSoon(t *testing.T) {
	a := simulate.AsyncLambda{
		Events: 1, Takes: simulate.Constant(time.Second), Fails: 1, Receive: simulate.Constant(time.Second), Policy: policy(t, "constant(2500ms) jitter=none attempts=2"),
	}
	got := asyncLambda(t, a)
	if want := 1500*time.Millisecond + 2*50*time.Millisecond; got.HandlerTime != want || got.HandlerRuns != 2 || got.Requests != 3+4 {
		t.Errorf("it runs %d times for %v and makes %d requests, want 2, %v and 7", got.HandlerRuns, got.HandlerTime, got.Requests, want)
	}
	a.Policy = policy(t, "constant(3500ms) jitter=none attempts=2") // it is hidden, and received again when it is due
	got = asyncLambda(t, a)
	if want := 3 * 50 * time.Millisecond; got.HandlerTime != want || got.HandlerRuns != 3 || got.Requests != 5+4 {
		t.Errorf("it runs %d times for %v and makes %d requests, want 3, %v and 9", got.HandlerRuns, got.HandlerTime, got.Requests, want)
	}
}

// TestOwnRetriesOfLambda checks that Lambda's own retries come after one minute and two more, and are one
// attempt of the policy.
func TestOwnRetriesOfLambda(t *testing.T) {
	a := simulate.AsyncLambda{Events: 1, Fails: 1, LambdaRetries: 2, Policy: policy(t, "constant(1h) jitter=none attempts=2")}
	minutes := make([]int, 67)
	for _, m := range []int{0, 1, 3, 63, 64, 66} {
		minutes[m] = 1
	}
	if got := asyncLambda(t, a); !reflect.DeepEqual(got.Minutes, minutes) || got.Exhausted != 1 {
		t.Errorf("%d runs, in the minutes %v", got.Runs, got.Minutes)
	}
	// An attempt fails if its three runs do: p^3 of the attempts, and so p^6 of the events are given up.
	a.Events, a.Fails = 100_000, 0.5
	want := 100_000 * math.Pow(0.5, 6)
	if got := asyncLambda(t, a); math.Abs(float64(got.Exhausted)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d events are given up, want %.0f", got.Exhausted, want)
	}
}

// TestShareOfAsyncLambda holds runs and dead letters against the closed forms.
func TestShareOfAsyncLambda(t *testing.T) {
	const events = 50_000
	p := policy(t, "exponential(base=1s,max=1h) attempts=4")
	got, want := asyncLambda(t, simulate.AsyncLambda{Events: events, Fails: 0.5, Policy: p}), simulate.NewForms(p, 0.5)
	if runs := float64(got.Runs) / events; math.Abs(runs/want.Attempts-1) > 0.01 {
		t.Errorf("%.3f runs an event, want %.3f", runs, want.Attempts)
	}
	if dead := float64(got.Exhausted) / events; math.Abs(dead/want.DeadLettered-1) > 0.06 || got.Expired+got.Waiting > 0 {
		t.Errorf("%.4f of the events are given up, want %.4f: %+v", dead, want.DeadLettered, got)
	}
}

// TestArticleAge reproduces the age of the published program: below a day it is a day, and it is compared
// after a wait in vain.
func TestArticleAge(t *testing.T) {
	day := 24 * time.Hour
	a := simulate.AsyncLambda{Fails: 1, Policy: policy(t, "exponential(base=1s,max=12h) jitter=from-base attempts=unlimited age=6h")}
	ours := asyncLambda(t, a)
	a.ArticleAge = true
	article := asyncLambda(t, a)
	if ours.Expired != 1000 || ours.Last > 6*time.Hour+10*time.Second || ours.GivenUp.Most > 6*time.Hour+20*time.Second || ours.GivenUp.Least < 324*time.Minute {
		t.Errorf("with an age of 6h the last run begins after %v, and events are given up after %v to %v", ours.Last, ours.GivenUp.Least, ours.GivenUp.Most)
	}
	if article.Expired != 1000 || article.Last < 20*time.Hour || article.Last > day+10*time.Second || article.GivenUp.Least <= day || article.GivenUp.Most < day+4*time.Hour {
		t.Errorf("as the article has it, the last run begins after %v, and events are given up after %v to %v", article.Last, article.GivenUp.Least, article.GivenUp.Most)
	}
	a.Policy.MaxAge = day // from a day on, only the last runs differ
	ofDay := asyncLambda(t, a)
	ofDay.Simulated = article.Simulated
	if !reflect.DeepEqual(ofDay, article) {
		t.Errorf("an age of a day gives %d runs, and one of 6h %d, or they differ otherwise", ofDay.Runs, article.Runs)
	}
	a.ArticleAge = false
	if whole := asyncLambda(t, a); whole.Last < 23*time.Hour || whole.GivenUp.Least < 21*time.Hour || whole.GivenUp.Most > day+20*time.Second {
		t.Errorf("with an age of a day the last run begins after %v, and events are given up after %v to %v", whole.Last, whole.GivenUp.Least, whole.GivenUp.Most)
	}
}

// TestAsyncLambdaOutage checks that an outage that is shorter than the age loses nothing, and a longer one
// what came before its end and is too old then.
func TestAsyncLambdaOutage(t *testing.T) {
	a := simulate.AsyncLambda{
		Over: 2 * time.Hour, Outages: []simulate.Outage{{At: time.Hour, For: 4 * time.Hour, Takes: time.Minute}},
		Policy: policy(t, "exponential(base=1s,max=1h) attempts=unlimited age=6h"),
	}
	if r := asyncLambda(t, a); r.Succeeded != 1000 || r.Failed < 500 || r.Done.Most < 3*time.Hour || r.Done.Most > 7*time.Hour || r.Done.Least != 100*time.Millisecond {
		t.Errorf("an outage of 4h and an age of 6h give %+v", r)
	}
	a.Policy.MaxAge = 2 * time.Hour
	if r := asyncLambda(t, a); r.Expired < 400 || r.Expired > 600 || r.Succeeded+r.Expired != 1000 {
		t.Errorf("an outage of 4h and an age of 2h give %+v", r)
	}
	a.Horizon = 90 * time.Minute
	if r := asyncLambda(t, a); r.Waiting < 400 || r.Last > a.Horizon {
		t.Errorf("half an hour into the outage the result is %+v", r)
	}
}

// TestLongWaitsOfAsyncLambda checks that a wait beyond twelve hours is received and hidden again.
func TestLongWaitsOfAsyncLambda(t *testing.T) {
	r := asyncLambda(t, simulate.AsyncLambda{Events: 1, Fails: 1, Policy: policy(t, "constant(30h) jitter=none attempts=2")})
	// The first record is sent, received four times and hidden three times, and deleted; the second sent,
	// received, copied and deleted.
	if r.Runs != 2 || r.Last < 30*time.Hour || r.Last > 30*time.Hour+10*time.Second || r.Requests != 1+4+3+1+4 {
		t.Errorf("the second run comes after %v, with %d requests", r.Last, r.Requests)
	}
}

// TestAsyncLambdaEnds checks that invalid fields are named, and that an interrupted simulation has what came
// until then.
func TestAsyncLambdaEnds(t *testing.T) {
	_, err := simulate.RunAsyncLambda(t.Context(), simulate.AsyncLambda{
		Events: -1, Over: -1, Fails: 2, LambdaRetries: 3, Horizon: time.Second, Takes: simulate.Constant(-1), Receive: simulate.Constant(-1),
		Outages: []simulate.Outage{{At: -1, For: time.Minute}},
	})
	for _, want := range []string{"number of events is -1", "come is -1ns", "fail is 2", "own retries is 3", "horizon is 1s", "time of a run", "is received", "outages[0].at is -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	pressed := errors.New("pressed")
	r, err := simulate.RunAsyncLambda(ctx, simulate.AsyncLambda{Progress: func(events int) {
		if events == 128 {
			cancel(pressed)
		}
	}})
	if !errors.Is(err, pressed) || r == nil || r.Events != 192 || r.Succeeded != 192 {
		t.Errorf("interrupted after 128 events: %+v, %v", r, err)
	}
}
