package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestRows: queues and consumers are matched whatever the host, rates are those between two looks,
// and what is not known is left out.
func TestRows(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	look := func(seconds int, received, deleted, failed int64, traffic *admin.Traffic) *admin.Stats {
		at := since.Add(time.Duration(seconds) * time.Second)
		lane := &admin.Consumer{Queue: "lane", URL: "http://elsewhere/1/lane", Health: "ok", Counts: admin.Counts{Received: received / 2, Deleted: deleted / 2}}
		return &admin.Stats{
			At: at, Since: since,
			Queues: []admin.QueueStats{
				{Queue: operate.Queue{Name: "orders", URL: "http://here/1/orders", Visible: 7, InFlight: 12, Oldest: since.Add(-time.Hour)}, Traffic: traffic},
				{Queue: operate.Queue{Name: "dead\x1b[2J", URL: "http://here/1/dead", Visible: 1, Delayed: 2}},
				{Queue: operate.Queue{Name: "denied", URL: "http://here/1/denied", Findings: []operate.Finding{{Code: operate.CodeUnreadable, Problem: "it cannot be read"}}}},
			},
			Consumers: []admin.ConsumerStats{{
				Consumer: admin.Consumer{
					Queue: "orders", URL: "http://elsewhere/1/orders", Health: "degraded", Running: 3, InBackoff: 9, BackoffProblem: "out of\x07paper", Counts: admin.Counts{Received: received, Deleted: deleted},
					Breakers:  []admin.Breaker{{State: "open", Since: at.Add(-5 * time.Minute), NextProbe: at.Add(10 * time.Second), Problem: "503\x07"}},
					RetryLane: lane,
				},
				Attempts: admin.Attempts{Failed: failed},
			}},
		}
	}
	const problems = `orders: the breaker is open: outage since SINCE (5m), 0 messages held; next probe in 10s, or now by reprise probe orders; last error: 503\u0007
orders: 9 messages in backoff: reprise wake orders starts their next attempts now; last error: out of\u0007paper
denied: it cannot be read
`
	for _, test := range []struct {
		name        string
		now, before *admin.Stats
		want        string
	}{
		{"first look", look(0, 100, 50, 10, nil), nil, `
queue          visible  in flight  delayed  oldest  working  backoff  state
orders               7         12               1h        3        9  breaker open
dead\u001b[2J        1          0        2
denied
lane                                                      0        0  ok
`},
		{"rates of the consumer", look(10, 200, 50, 25, nil), look(0, 100, 50, 10, nil), `
queue          visible  in flight  delayed  oldest  working  backoff  in/s  out/s  fail/s  state
orders               7         12               1h        3        9  10.0      0     1.5  breaker open
dead\u001b[2J        1          0        2
denied
lane                                                      0        0   5.0      0          ok
`},
		{"rates of the queue", look(10, 200, 50, 25, &admin.Traffic{Sent: 5000, Deleted: 20}), look(0, 100, 50, 10, &admin.Traffic{}), `
queue          visible  in flight  delayed  oldest  working  backoff  in/s  out/s  fail/s  state
orders               7         12               1h        3        9   500    2.0     1.5  breaker open
dead\u001b[2J        1          0        2
denied
lane                                                      0        0   5.0      0          ok
`},
		{"a consumer that began anew", look(10, 3, 1, 30, nil), look(0, 100, 50, 10, nil), `
queue          visible  in flight  delayed  oldest  working  backoff  fail/s  state
orders               7         12               1h        3        9     2.0  breaker open
dead\u001b[2J        1          0        2
denied
lane                                                      0        0          ok
`},
		{"another process", look(10, 200, 50, 25, nil), &admin.Stats{At: since}, `
queue          visible  in flight  delayed  oldest  working  backoff  state
orders               7         12               1h        3        9  breaker open
dead\u001b[2J        1          0        2
denied
lane                                                      0        0  ok
`},
	} {
		if diff := cmp.Diff(test.want[1:]+strings.Replace(problems, "SINCE", operate.Clock(test.now.At.Add(-5*time.Minute), test.now.At), 1), admin.RowsText(admin.Rows(test.now, test.before), 120)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestUnreceived: a queue of which nobody receives is reported once its oldest message has waited for a minute, and no
// other.
func TestUnreceived(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	const url = "http://here/1/orders"
	at := func(seconds int, q operate.Queue, received int64, consumers ...admin.ConsumerStats) *admin.Stats {
		q.Name, q.URL = "orders", url
		return &admin.Stats{At: since.Add(time.Duration(seconds) * time.Second), Since: since, Queues: []admin.QueueStats{{Queue: q, Traffic: &admin.Traffic{Received: received}}}, Consumers: consumers}
	}
	waiting := operate.Queue{Visible: 7, Oldest: since.Add(-50 * time.Second)}
	inFlight, letters, empty := waiting, waiting, waiting
	inFlight.InFlight, letters.DeadLettersOf, empty.Visible = 1, []string{"payments"}, 0
	const want = "no consumer receives from it: the oldest of 7 messages has waited for 1m"
	for name, test := range map[string]struct {
		now, before *admin.Stats
		want        string
	}{
		"nobody receives":         {at(10, waiting, 3), at(0, waiting, 3), want},
		"not for long":            {at(9, waiting, 3), at(0, waiting, 3), ""},
		"somebody received":       {at(10, waiting, 4), at(0, waiting, 3), ""},
		"somebody works":          {at(10, inFlight, 3), at(0, inFlight, 3), ""},
		"dead letters":            {at(10, letters, 3), at(0, letters, 3), ""},
		"nothing waits":           {at(10, empty, 3), at(0, empty, 3), ""},
		"the first look":          {at(10, waiting, 3), nil, ""},
		"a consumer here":         {at(10, waiting, 3, admin.ConsumerStats{Consumer: admin.Consumer{URL: "http://there/1/orders", Health: "ok"}}), at(0, waiting, 3), ""},
		"a consumer's lane":       {at(10, waiting, 3, admin.ConsumerStats{Consumer: admin.Consumer{URL: "http://there/1/x", Health: "ok", RetryLane: &admin.Consumer{URL: url, Health: "ok"}}}), at(0, waiting, 3), ""},
		"a consumer of another's": {at(10, waiting, 3, admin.ConsumerStats{Consumer: admin.Consumer{URL: "http://here/1/x", Health: "ok"}}), at(0, waiting, 3), want},
	} {
		row := admin.Rows(test.now, test.before)[0]
		if got := strings.Join(row.Problems, "; "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if (len(row.Troubles) == 1 && row.Troubles[0].Text == test.want) != (test.want != "") {
			t.Errorf("%s: pages have %+v", name, row.Troubles)
		}
	}
}

// TestStats: attempts are counted by what follows and by their errors, with their times, and survive
// a consumer that is replaced; what SQS does not answer is said, and the consumers are shown.
func TestStats(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) {
		cfg.Events, cfg.RequestPrice = events, 1
		cfg.Traffic = func() map[string]admin.Traffic {
			return map[string]admin.Traffic{"arn:aws:sqs:us-east-1:000000000000:orders": {Sent: 3, Received: 2, Deleted: 1}}
		}
	})
	for i := range 10 {
		observer := events.Observer(queueURL + "1/orders") // one for each: as after a change of the settings
		a := reprise.Attempt{Message: &reprise.Message{ID: "m", OriginID: "m"}, Duration: time.Second, Outcome: reprise.OutcomeDelete}
		if i == 0 {
			a.Duration, a.Outcome, a.Err = time.Minute, reprise.OutcomeRetry, errors.New("no")
		}
		observer.Attempt(t.Context(), a)
	}
	_, text := s.call("GET", "/admin/v1/stats", "")
	got := decode[admin.Stats](t, text)
	if len(got.Queues) != 2 || got.Queues[1].Traffic == nil || *got.Queues[1].Traffic != (admin.Traffic{Sent: 3, Received: 2, Deleted: 1}) || got.Problem != "" {
		t.Errorf("queues %s", text)
	}
	if len(got.Consumers) != 4 || got.Since.IsZero() || got.At.Before(got.Since) {
		t.Fatalf("stats %s", text)
	}
	a := got.Consumers[0].Attempts
	if diff := cmp.Diff(map[string]int64{"delete": 9, "retry": 1}, a.Outcomes); diff != "" || a.Total != 10 || a.Failed != 1 || a.P50 < 1000 || a.P50 > 1125 || a.P99 != 60_000 || a.Max != 60_000 {
		t.Errorf("attempts %+v", a)
	}
	if c := got.Consumers[0].Cost; c.Price != 1 || got.Consumers[1].Attempts.Total != 0 {
		t.Errorf("costs %+v", c)
	}
	const table = `queue   attempts  failed  p50  p90   p99  deleted  dead  calls  dollars  outcomes
orders        10       1   1s   1s  1m0s        0     0      0   0.0000  delete 9, retry 1
`
	if diff := cmp.Diff(table, admin.StatsText(got.Consumers[:1], 120)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	failing := serve(t, func(cfg *admin.Config) {
		cfg.Queues = func(context.Context) ([]operate.Described, bool, error) { return nil, false, errors.New("no route") }
	})
	_, text = failing.call("GET", "/admin/v1/stats", "")
	if got := decode[admin.Stats](t, text); got.Problem != "no route" || len(got.Queues) != 0 || len(got.Consumers) != 4 {
		t.Errorf("without SQS: %s", text)
	}
}

// TestRowsOfRegions: queues of the same account and name in two regions are two rows, each with its own consumer.
func TestRowsOfRegions(t *testing.T) {
	const eu, us = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	now := &admin.Stats{
		At:     time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC),
		Queues: []admin.QueueStats{{Queue: operate.Queue{Name: "orders", URL: eu, Visible: 1}}, {Queue: operate.Queue{Name: "orders", URL: us, Visible: 2}}},
		Consumers: []admin.ConsumerStats{
			{Consumer: admin.Consumer{Queue: "orders", URL: us, Health: "ok", Running: 4}},
			{Consumer: admin.Consumer{Queue: "orders", URL: eu, Health: "ok", Running: 3, Paused: true}},
		},
	}
	rows := admin.Rows(now, nil)
	if got := admin.RowsText(rows, 100); got != `queue   visible  in flight  working  backoff  state
orders        1          0        3        0  paused
orders        2          0        4        0  ok
`+"orders: paused until reprise resume orders\n" {
		t.Error(got)
	}
	for _, row := range rows {
		if row.Consumer != row.URL {
			t.Errorf("the row of %s acts on the consumer of %q", row.URL, row.Consumer)
		}
	}
	now.Queues = now.Queues[:1] // of the other nothing is known
	if rows = admin.Rows(now, nil); len(rows) != 2 || *rows[0].Working != 3 || *rows[1].Working != 4 {
		t.Errorf("with one queue that is known: %+v", rows)
	}
	for _, row := range rows {
		if row.Consumer != row.URL {
			t.Errorf("with one queue that is known the row of %s acts on the consumer of %q", row.URL, row.Consumer)
		}
	}
}
