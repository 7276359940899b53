package dashboard

import (
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestSourceOfALetterIsOfferedFirst: of several sources the one that the letter came from comes first, by its whole
// name: a letter of big-orders must not be offered to orders.
func TestSourceOfALetterIsOfferedFirst(t *testing.T) {
	const arn = "arn:aws:sqs:eu-west-1:000000000000:"
	for _, test := range []struct {
		source  string
		sources []string
		want    []string
	}{
		{arn + "big-orders", []string{"big-orders", "orders"}, []string{"big-orders", "orders", "dead"}},
		{arn + "big-orders", []string{"mails", "orders", "big-orders"}, []string{"big-orders", "orders", "mails", "dead"}},
		{arn + "orders", []string{"big-orders", "orders"}, []string{"orders", "big-orders", "dead"}},
		{"http://localhost/000000000000/orders", []string{"big-orders", "orders"}, []string{"orders", "big-orders", "dead"}},
		{arn + "gone", []string{"big-orders", "orders"}, []string{"big-orders", "orders", "dead"}},
	} {
		m := &operate.Message{Body: "b", Death: &operate.Death{Source: test.source}}
		if got := newResendForm("dead", m, test.sources).To; !slices.Equal(got, test.want) {
			t.Errorf("a letter of %s: %q, want %q", test.source, got, test.want)
		}
	}
}

// TestOutagesHaveTheirOwnAge: an outage of one queue begins when its own breaker opened, whatever the others' did, in
// whatever order they are listed.
func TestOutagesHaveTheirOwnAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	since := map[string]time.Time{"orders": now.Add(-time.Hour), "refunds": now.Add(-time.Minute)}
	stats := &admin.Stats{At: now}
	for _, queue := range []string{"orders", "refunds"} {
		stats.Consumers = append(stats.Consumers, admin.ConsumerStats{Consumer: admin.Consumer{
			Queue: queue, Breakers: []admin.Breaker{{Key: "acme", State: "open", Since: now.Add(-24 * time.Hour)}, {State: "open", Since: since[queue]}},
		}})
	}
	for _, order := range [][]string{{"orders", "refunds"}, {"refunds", "orders"}} {
		var all []attention
		for _, queue := range order {
			all = append(all, attention{Queue: queue, Text: "it has 3 dead letters."}, attention{Queue: queue, Text: "the breaker is open"})
		}
		consumerSince(stats, all)
		for i, a := range all {
			want := since[a.Queue]
			if i%2 == 0 {
				want = time.Time{} // not the breaker's
			}
			if !a.Since.Equal(want) {
				t.Errorf("%q: %s: %q since %v, want %v", order, a.Queue, a.Text, a.Since, want)
			}
		}
	}
}
