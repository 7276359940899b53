package forward_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// TestHTTPChangedStatuses: flags win over the defaults; a Retry-After counts only if the
// message is retried.
func TestHTTPChangedStatuses(t *testing.T) {
	statuses, err := forward.Statuses(
		forward.Change{Flag: "--permanent-status", Verdict: forward.Permanent, Codes: []string{"404", " 503"}},
		forward.Change{Flag: "--retry-status", Verdict: forward.Retry, Codes: []string{"400-403", "500"}},
		forward.Change{Flag: "--unavailable-status", Verdict: forward.Unavailable, Codes: []string{"3xx", "422"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var status atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(int(status.Load()))
	}))
	defer srv.Close()
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Statuses: statuses})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for code, want := range map[int32]struct {
		action retry.Action
		wait   time.Duration
		down   bool
	}{
		400: {retry.ActionRetry, time.Second, false},
		401: {retry.ActionRetry, time.Second, false},
		403: {retry.ActionRetry, time.Second, false},
		404: {retry.ActionDeadLetter, 0, false},
		405: {retry.ActionRetry, time.Second, true},
		422: {retry.ActionRetry, time.Second, true},
		429: {retry.ActionRetry, 7 * time.Second, true},
		500: {retry.ActionRetry, time.Second, false},
		503: {retry.ActionDeadLetter, 0, false},
	} {
		status.Store(code)
		err := target.Handle(t.Context(), message("{}"))
		action, wait := decide(err)
		if action != want.action || action == retry.ActionRetry && wait != want.wait || reprise.IsUnavailable(err) != want.down {
			t.Errorf("%d: %v after %v, unavailable %v; want %+v: %v", code, action, wait, reprise.IsUnavailable(err), want, err)
		}
	}
}

func TestChangesRefused(t *testing.T) {
	for _, test := range []struct {
		statuses, exits []string
		want            []string
	}{
		{statuses: []string{"200"}, want: []string{"--permanent-status", `"200"`, "300 to 599"}},
		{statuses: []string{"2xx"}, want: []string{`"2xx"`}},
		{statuses: []string{"299-400"}, want: []string{`"299-400"`}},
		{statuses: []string{"500-499"}, want: []string{`"500-499"`}},
		{statuses: []string{"6xx"}, want: []string{`"6xx"`}},
		{statuses: []string{"teapot"}, want: []string{`"teapot"`, "4xx"}},
		{statuses: []string{""}, want: []string{`""`}},
		{statuses: []string{"400", "404"}, want: []string{"--permanent-status: 404 is in --retry-status too"}},
		{exits: []string{"0"}, want: []string{"--permanent-exit", `"0"`, "1 to 255"}},
		{exits: []string{"256"}, want: []string{`"256"`}},
		{exits: []string{"-1"}, want: []string{`"-1"`}},
	} {
		var err error
		if test.exits != nil {
			_, err = forward.ExitCodes(forward.Change{Flag: "--permanent-exit", Verdict: forward.Permanent, Codes: test.exits})
		} else {
			_, err = forward.Statuses(
				forward.Change{Flag: "--retry-status", Verdict: forward.Retry, Codes: []string{"404"}},
				forward.Change{Flag: "--permanent-status", Verdict: forward.Permanent, Codes: test.statuses})
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v%v: %v, want an error with %q", test.statuses, test.exits, err, want)
			}
		}
	}
}

// TestExecChangedCodes: flags have the last word, also on what steers by default.
func TestExecChangedCodes(t *testing.T) {
	codes, err := forward.ExitCodes(
		forward.Change{Flag: "--permanent-exit", Verdict: forward.Permanent, Codes: []string{"65", "127"}},
		forward.Change{Flag: "--retry-exit", Verdict: forward.Retry, Codes: []string{"101", "69"}},
		forward.Change{Flag: "--unavailable-exit", Verdict: forward.Unavailable, Codes: []string{"3-4"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]retry.Action{1: retry.ActionRetry, 3: retry.ActionRetry, 65: retry.ActionDeadLetter, 127: retry.ActionDeadLetter, 101: retry.ActionRetry, 69: retry.ActionRetry} {
		err := newExec(t, forward.ExecConfig{Command: "exit " + strconv.Itoa(code), ExitCodes: codes}).Handle(t.Context(), message(""))
		if action, _ := decide(err); action != want || reprise.IsUnavailable(err) != (code == 3) {
			t.Errorf("exit %d: %v, unavailable %v, want %v", code, action, reprise.IsUnavailable(err), want)
		}
	}
}
