package dashboard

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/plan"
)

// TestAttention: what needs attention says on the page itself what can be done, by buttons and links and not by
// commands, and those are not there if nothing may be changed.
func TestAttention(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(c admin.Consumer, dead operate.Queue, sent int64, when time.Time) *admin.Stats {
		c.URL, c.Queue = "http://h/0/orders", "orders"
		dead.URL, dead.Name, dead.DeadLettersOf = "http://h/0/orders-dead", "orders-dead", []string{"orders"}
		return &admin.Stats{At: when, Consumers: []admin.ConsumerStats{{Consumer: c}}, Queues: []admin.QueueStats{
			{Queue: operate.Queue{URL: c.URL, Name: "orders", Visible: 480, DeadLetterQueue: "orders-dead"}},
			{Queue: dead, Traffic: &admin.Traffic{Sent: sent}},
		}}
	}
	counts := func(deleted, dead int64) admin.Consumer {
		return admin.Consumer{Health: "ok", Counts: admin.Counts{Deleted: deleted, DeadLettered: dead}}
	}
	letters := operate.Queue{Visible: 192, Oldest: now.Add(-53 * time.Second), Findings: []operate.Finding{{Severity: plan.Warning.String(), Code: operate.CodeDeadLetters, Problem: "it has 192 dead letters.", Remedy: "find out why with reprise dead orders-dead, then redrive or delete them."}}}
	for name, test := range map[string]struct {
		now, before *admin.Stats
		want        []string
		no          string
	}{
		"a breaker is open": {
			now: at(admin.Consumer{Health: "degraded", Breakers: []admin.Breaker{{State: "open", Since: now.Add(-36 * time.Second), NextProbe: now.Add(2 * time.Second), Held: 5, Problem: "503"}}}, operate.Queue{}, 0, now),
			want: []string{
				`<li class="critical">`, "5 messages held; next probe in 2s; last error: 503", "480 more wait in the queue. No attempts are counted until a probe succeeds",
				`action="/ui/workers/probe"`, "<button>Probe now</button>", `value="http://h/0/orders"`, ">for 36s<",
			},
			no: "reprise probe",
		},
		"nobody receives": {
			now: &admin.Stats{At: now, Queues: []admin.QueueStats{
				{Queue: operate.Queue{URL: "http://h/0/mails", Name: "mails", Visible: 7, Oldest: now.Add(-time.Hour)}, Traffic: &admin.Traffic{}},
			}},
			before: &admin.Stats{At: now.Add(-10 * time.Second), Queues: []admin.QueueStats{{Queue: operate.Queue{URL: "http://h/0/mails", Name: "mails"}, Traffic: &admin.Traffic{}}}},
			want:   []string{`<li class="warning">`, "no consumer receives from it: the oldest of 7 messages has waited for 1h", "Start its consumer.", "1 warning."},
		},
		"a finding with a remedy": {
			now:  at(admin.Consumer{Health: "ok"}, operate.Queue{Findings: []operate.Finding{{Severity: plan.Warning.String(), Code: "x", Problem: "it is so.", Remedy: "überlegen Sie."}}}, 0, now),
			want: []string{`<li class="warning">`, `it is so. <span class="remedy">Überlegen Sie.</span>`},
		},
		"paused": {
			now:  at(admin.Consumer{Paused: true}, operate.Queue{}, 0, now),
			want: []string{`<li class="note">`, "paused: nothing is received until it is resumed", `action="/ui/workers/resume"`, "<button>Resume</button>", "Nothing needs attention."},
			no:   "reprise resume",
		},
		"a key is paused": {
			now:  at(admin.Consumer{Health: "ok", Breakers: []admin.Breaker{{Key: "acme", State: "closed", Paused: true}}}, operate.Queue{}, 0, now),
			want: []string{"key acme is paused", `name="key" value="acme"><button>Resume</button>`},
		},
		"retries wait": {
			now:  at(admin.Consumer{Health: "ok", InBackoff: 2, BackoffProblem: "<b>out of paper</b>"}, operate.Queue{}, 0, now),
			want: []string{`<li class="note">`, "2 messages in backoff: their next attempts come when they are due; last error: &lt;b&gt;out of paper&lt;/b&gt;", `href="/ui/queues/orders#due">See why`, `action="/ui/workers/wake"`},
			no:   "reprise wake",
		},
		"dead letters that grow": {
			now: at(counts(0, 0), letters, 138, now), before: at(counts(0, 0), operate.Queue{}, 100, now.Add(-10*time.Second)),
			want: []string{"it has 192 dead letters, and gets 3.8 more per second now.", `href="/ui/dead/orders-dead">See why, redrive or delete`, ">for 53s<"},
			no:   "reprise dead",
		},
		"very many dead letters": {
			now:  at(counts(0, 0), operate.Queue{Visible: 1_000_000, InFlight: 20, Delayed: 3, Findings: letters.Findings}, 100, now),
			want: []string{"it has 1,000,023 dead letters.\n"},
		},
		"dead letters of a queue that cannot be read": {
			now:  at(counts(0, 0), operate.Queue{Findings: append([]operate.Finding{{Code: operate.CodeUnreadable}}, letters.Findings...)}, 100, now),
			want: []string{"it has 192 dead letters.\n"},
		},
		"dead letters of old": {
			now: at(counts(0, 0), letters, 100, now), before: at(counts(0, 0), operate.Queue{}, 100, now.Add(-10*time.Second)),
			want: []string{"it has 192 dead letters.\n"},
		},
		"many are given up": {
			now: at(counts(191, 38), operate.Queue{}, 0, now), before: at(counts(100, 1), operate.Queue{}, 0, now.Add(-10*time.Second)),
			want: []string{`<li class="critical">`, "it gives up 29% of its messages: 37 of 128 in the last 10s.", `href="/ui/dead/orders-dead">See why`, "<button>Pause</button>"},
		},
		"few are given up": {
			now: at(counts(1000, 12), operate.Queue{}, 0, now), before: at(counts(100, 1), operate.Queue{}, 0, now.Add(-10*time.Second)),
			want: []string{"Nothing needs attention."},
			no:   "gives up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			page := func(readOnly bool) string {
				t.Helper()
				var b bytes.Buffer
				if err := parse(pages)["overview"].ExecuteTemplate(&b, "live", frame{Now: now, ReadOnly: readOnly, Data: newOverview(test.now, test.before)}); err != nil {
					t.Fatal(err)
				}
				attention, _, _ := strings.Cut(b.String(), `<h2 id="queues">`)
				return attention
			}
			text := page(false)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the page lacks %q:\n%s", want, text)
				}
			}
			if test.no != "" && strings.Contains(text, test.no) {
				t.Errorf("the page has %q:\n%s", test.no, text)
			}
			if text = page(true); strings.Contains(text, "<form") {
				t.Errorf("a page that may change nothing has a form:\n%s", text)
			}
		})
	}
}
