package failures_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
)

// failure is a way in which a call fails.
type failure struct {
	client string // which fails
	how    string // what happens to the call
	says   string // a part of the error's text
	counts bool   // what IsUnavailable must say

	fail func(t *testing.T) error
}

// table has the rows of docs/outages.md in their order.
func table() []failure {
	return slices.Concat(httpFailures, http2Failures, tlsFailures, grpcFailures, postgresFailures, redisFailures, awsFailures, ownFailures)
}

// row is the line that docs/outages.md has for f.
func (f failure) row() string {
	counts := "no"
	if f.counts {
		counts = "yes"
	}
	return fmt.Sprintf("| %s | %s | `%s` | %s |", f.client, f.how, f.says, counts)
}

// TestFailures makes each failure, and compares the answer of IsUnavailable with the table.
func TestFailures(t *testing.T) {
	for _, f := range table() {
		t.Run(f.client+" "+f.how, func(t *testing.T) {
			err := f.fail(t)
			if err == nil {
				t.Fatal("the call succeeded")
			}
			if !strings.Contains(err.Error(), f.says) {
				t.Errorf("the error is %q, which does not contain %q", err, f.says)
			}
			if got := reprise.IsUnavailable(err); got != f.counts {
				t.Errorf("IsUnavailable(%v) = %v, want %v", chain(err), got, f.counts)
			}
		})
	}
}

// chain writes an error with the types of the errors that it wraps.
func chain(err error) string {
	var b strings.Builder
	for e := err; e != nil; {
		fmt.Fprintf(&b, "%T ", e)
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
	return b.String() + err.Error()
}

// TestTableInDocs: docs/outages.md has the same table, line by line.
func TestTableInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/outages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n| client | failure | the error says | unavailable |\n|---|---|---|---|\n")
	if !found {
		t.Fatal("docs/outages.md has no table of failures")
	}
	got, _, _ := strings.Cut(rest, "\n\n")
	var want []string
	for _, f := range table() {
		want = append(want, f.row())
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("the table in docs/outages.md differs; it must be:\n%s", strings.Join(want, "\n"))
	}
}
