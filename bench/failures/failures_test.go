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

// table has the failures of docs/outages.md in their order.
func table() []failure {
	return slices.Concat(httpFailures, http2Failures, tlsFailures, grpcFailures, postgresFailures, redisFailures, awsFailures, ownFailures)
}

// list is the list of docs/outages.md: of each client the failures that count, then the others.
func list() string {
	var b strings.Builder
	for rest := table(); len(rest) > 0; {
		client := rest[0].client
		others := slices.IndexFunc(rest, func(f failure) bool { return f.client != client })
		if others < 0 {
			others = len(rest)
		}
		fmt.Fprintf(&b, "- **%s**: %s.", client, items(rest[:others], true))
		if not := items(rest[:others], false); not != "" {
			fmt.Fprintf(&b, " *Not unavailable:* %s.", not)
		}
		b.WriteString("\n")
		rest = rest[others:]
	}
	return b.String()
}

// items has the failures that count, or do not: what happens and, in brackets, a part of the error's text. Failures with
// the same text share it, and what the text itself says is not repeated.
func items(failures []failure, counts bool) string {
	var texts []string
	how := make(map[string][]string)
	for _, f := range failures {
		if f.counts != counts {
			continue
		}
		if !slices.Contains(texts, f.says) {
			texts = append(texts, f.says)
		}
		if !strings.Contains(f.says, strings.Trim(f.how, "`")) {
			how[f.says] = append(how[f.says], f.how)
		}
	}
	for i, says := range texts {
		texts[i] = "`" + says + "`"
		if of := how[says]; of != nil {
			texts[i] = strings.Join(of, ", ") + " (`" + says + "`)"
		}
	}
	return strings.Join(texts, "; ")
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

// TestListInDocs: docs/outages.md has the same failures, in lines of any length.
func TestListInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/outages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\ngo test ./bench/failures\n```\n\n")
	if !found {
		t.Fatal("docs/outages.md has no list of failures below the command of this test")
	}
	got, _, _ := strings.Cut(rest, "\n\n")
	if !slices.Equal(strings.Fields(got), strings.Fields(list())) {
		t.Errorf("the list in docs/outages.md differs; it must be:\n%s", list())
	}
}
