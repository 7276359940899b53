package demo

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/examples"
)

func TestExamine(t *testing.T) {
	deep := strings.Repeat(`{"reply_to":`, 40) + "null" + strings.Repeat("}", 40)
	for _, test := range []struct {
		body   string
		status int // 0: acceptable
	}{
		{`{}`, 0},
		{`[1,2]`, 0},
		{`"text"`, 0},
		{`{"api_version":"2026-08-01","data":{"amount":1}}`, 0},
		{`{"data":"no object"}`, 0},
		{`{"text":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[["}`, 0},
		{`{"data":{"amount":0}}`, http.StatusUnprocessableEntity},
		{`{"data":{"amount":-5}}`, http.StatusUnprocessableEntity},
		{`{"api_version":"2019-03-01"}`, http.StatusUnprocessableEntity},
		{`{"cut`, http.StatusBadRequest},
		{``, http.StatusBadRequest},
		{deep, http.StatusInternalServerError},
	} {
		r := examine([]byte(test.body))
		if got := r.statusOrZero(); got != test.status {
			t.Errorf("examine(%.40q) answers %d, want %d", test.body, got, test.status)
		}
	}
}

func (r *refusal) statusOrZero() int {
	if r == nil {
		return 0
	}
	return r.status
}

// TestExamplesAreRefusedAsDocumented: examples/README.md says which of them are bad.
func TestExamplesAreRefusedAsDocumented(t *testing.T) {
	got := make(map[int]int)
	for _, body := range examples.Webhooks() {
		if r := examine([]byte(body)); r != nil {
			got[r.status]++
		}
	}
	want := map[int]int{400: 2, 422: 6, 500: 2}
	for status, n := range want {
		if got[status] != n {
			t.Errorf("%d examples are answered %d, want %d", got[status], status, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("answers %v, want %v", got, want)
	}
}

// TestShuffled: the seed gives the order, every example comes before any comes
// again.
func TestShuffled(t *testing.T) {
	total := len(examples.Webhooks())
	bodies := shuffled(2*total, 5)
	seen := make(map[string]int)
	for i, body := range bodies {
		seen[body]++
		if want := 1 + i/total; seen[body] != want {
			t.Fatalf("message %d came for the %dth time, want %d", i, seen[body], want)
		}
	}
	if strings.Join(shuffled(9, 5), "") != strings.Join(bodies[:9], "") {
		t.Error("one seed gives two orders")
	}
	if strings.Join(shuffled(9, 6), "") == strings.Join(bodies[:9], "") {
		t.Error("two seeds give one order")
	}
}
