package redrive_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// inside has the server redrive dead.
func inside(t *testing.T, dead *reprisetest.Queue, r redrive.Redrive) redrive.Report {
	t.Helper()
	r.Client, r.QueueURL = dead.Client(), dead.URL()
	report, err := r.RunInside(t.Context(), make(chan struct{}), dead.Server()) // of the bubble
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestInsideAgrees: letters of all kinds go where a pass by receives sends them, look the same there,
// and are left for the same reasons.
func TestInsideAgrees(t *testing.T) {
	key, err := reprise.NewSigningKey("k", []byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]redrive.Redrive{
		"redrive": {}, "whole": {Whole: true}, "dry run": {DryRun: true}, "keys": {Keys: []reprise.SigningKey{key}},
		"without bodies": {WithoutBodies: true}, "whole, without bodies": {Whole: true, WithoutBodies: true},
		"most": {Max: 4}, "selection": {Select: func(m *types.Message, _ time.Time) bool { return *m.Body == "told" }},
	} {
		for _, to := range []string{"", "standard", "fifo"} {
			synctest.Test(t, func(t *testing.T) {
				run := func(how func(*reprisetest.Queue, redrive.Redrive) redrive.Report) (report redrive.Report, found []string) {
					source := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "0"})
					dead := source.NewDeadLetterQueue(1)
					small := source.NewQueue(map[string]string{"MaximumMessageSize": "1024", "RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":5}`, dead.ARN())})
					other := source.NewQueue(nil)
					fifo := source.NewQueue(map[string]string{"FifoQueue": "true"})
					source.SendMessage(letterOf(other.ARN(), "moved", ""))
					moveBySQS(t, source, dead)
					dead.SendMessage(letterOf(source.ARN(), "told", ""))
					dead.SendMessage(letterOf(source.URL(), "told by URL", ""))
					dead.SendMessage(letterOf(other.ARN(), "elsewhere", ""))
					dead.SendMessage(letterOf("arn:aws:sqs:us-east-1:000000000000:gone", "gone", ""))
					dead.SendMessage(letterOf(small.ARN(), strings.Repeat("large", 300), ""))
					copied := sqsserver.SendMessageEntry{MessageBody: "no story", MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: "{}"}}}
					dead.SendMessage(copied)
					dead.SendMessage(letterOf(source.ARN(), "in flight", ""))
					hide(t, dead, "in flight")
					r := r
					switch to {
					case "standard":
						r.To = other.URL()
					case "fifo":
						r.To = fifo.URL()
					}
					report = how(dead, r)
					for _, q := range []*reprisetest.Queue{source, dead, small, other, fifo} {
						for _, m := range q.Messages() {
							if q == dead && m.Body != "in flight" { // receives count
								m.Receives, m.State = 0, ""
							}
							var attributes []string
							for _, a := range m.Attributes {
								attributes = append(attributes, a.Name)
							}
							found = append(found, fmt.Sprintf("%s in %s: receives %d, %s, attributes %q, source %q, group %v", m.Body, q.Name(), m.Receives, m.State, attributes, m.Source, m.Group != ""))
						}
					}
					slices.Sort(found)
					return report, found
				}
				want, wantFound := run(func(dead *reprisetest.Queue, r redrive.Redrive) redrive.Report { return redriven(t, dead, r) })
				got, gotFound := run(func(dead *reprisetest.Queue, r redrive.Redrive) redrive.Report { return inside(t, dead, r) })
				if len(want.Sent) == 0 {
					t.Errorf("%s to %q: nothing was sent", name, to)
				}
				total := func(counts map[string]int) (n int) {
					for c := range maps.Values(counts) {
						n += c
					}
					return n
				}
				if diff := cmp.Diff(slices.Sorted(maps.Values(want.Sent)), slices.Sorted(maps.Values(got.Sent))); diff != "" || total(want.Left) != total(got.Left) || len(want.Left) != len(got.Left) {
					t.Errorf("%s to %q: by receives %+v, inside %+v", name, to, want, got)
				}
				if diff := cmp.Diff(wantFound, gotFound); diff != "" {
					t.Errorf("%s to %q: the queues (-by receives +inside):\n%s", name, to, diff)
				}
			})
		}
	}
}

// hide has a consumer receive all messages of q, and give back those with other bodies.
func hide(t *testing.T, q *reprisetest.Queue, body string) {
	t.Helper()
	for _, m := range receive(t, q, 10) {
		if *m.Body != body {
			q.Release(*m.MessageId)
		}
	}
}

func receive(t *testing.T, q *reprisetest.Queue, n int32) []types.Message {
	t.Helper()
	url := q.URL()
	out, err := q.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: n, VisibilityTimeout: 3600})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

// TestInsideKeepsOrder: each group arrives in its order, though slots of the queue were used before, and
// behind a letter that a consumer has, its group waits.
func TestInsideKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := source.NewDeadLetterQueue(100)
		for i := range 700 {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprintf("%04d", i), fmt.Sprint("g", i%7)))
		}
		for i, m := range dead.Messages() {
			if i > 0 && i%3 == 0 {
				if err := dead.Server().Delete(dead.ARN(), m.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := 700; i < 1400; i++ { // in their slots
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprintf("%04d", i), fmt.Sprint("g", i%7)))
		}
		held := receive(t, dead, 1)
		if len(held) != 1 || *held[0].Body != "0000" {
			t.Fatalf("received %v", held)
		}
		report := inside(t, dead, redrive.Redrive{})
		last := make(map[string]string)
		for _, m := range source.Messages() {
			if m.Body <= last[m.Group] || m.Group == "g0" {
				t.Errorf("%s came after %q in %s", m.Body, last[m.Group], m.Group)
			}
			last[m.Group] = m.Body
		}
		if sent := report.Sent[source.URL()]; len(last) != 6 || sent != len(source.Messages()) || len(report.Left) == 0 {
			t.Errorf("%+v; %d groups arrived", report, len(last))
		}
		dead.Release(*held[0].MessageId)
		inside(t, dead, redrive.Redrive{})
		last = make(map[string]string)
		for _, m := range source.Messages() {
			if m.Body <= last[m.Group] {
				t.Errorf("%s came after %q in %s", m.Body, last[m.Group], m.Group)
			}
			last[m.Group] = m.Body
		}
		if len(dead.Messages()) != 0 {
			t.Errorf("%d letters are left", len(dead.Messages()))
		}
	})
}

// TestInsideMaxRateStop: as many go as were asked for, never faster than the rate, and a stop leaves the
// others.
func TestInsideMaxRateStop(t *testing.T) {
	for _, most := range []int{1, 499, 500, 501, 1200, 2000} {
		synctest.Test(t, func(t *testing.T) {
			source, dead := lettersOf(t, 1200)
			report := inside(t, dead, redrive.Redrive{Max: most})
			if sent := min(most, 1200); report.Sent[source.URL()] != sent || len(source.Messages()) != sent || len(dead.Messages()) != 1200-sent {
				t.Errorf("limit %d: %+v", most, report)
			}
			once(t, 1200, source, dead)
		})
	}
	for _, rate := range []float64{0.5, 5, 2000} {
		synctest.Test(t, func(t *testing.T) {
			n := max(20, int(rate*4))
			source, dead := lettersOf(t, n)
			began := time.Now()
			inside(t, dead, redrive.Redrive{Rate: rate})
			messages := source.Messages()
			if len(messages) != n {
				t.Fatalf("%d of %d were sent", len(messages), n)
			}
			for i, m := range messages {
				if permitted := m.Sent.Sub(began).Seconds() * rate; float64(i+1) > permitted+rate/500 {
					t.Fatalf("rate %g: %d letters were sent after %v", rate, i+1, m.Sent.Sub(began))
				}
			}
			if took := time.Since(began).Seconds(); took > float64(n)/rate+1 {
				t.Errorf("rate %g: %d letters took %g s", rate, n, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		source, dead := lettersOf(t, 300)
		stop := make(chan struct{})
		time.AfterFunc(5*time.Second, func() { close(stop) })
		progress := 0
		r := redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL(), Rate: 20, Progress: func(sent int) { progress = sent }}
		report, err := r.RunInside(t.Context(), stop, dead.Server())
		if n := len(source.Messages()); err != nil || !report.Stopped || n < 90 || n > 100 || report.Sent[source.URL()] != n || progress != n {
			t.Errorf("%+v, %v; the source holds %d, the last progress was %d", report, err, n, progress)
		}
		once(t, 300, source, dead)
		visible(t, dead)
	})
}

// TestInsideDoesNotGoRound: letters that fail again at once do not come back for ever.
func TestInsideDoesNotGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, dead := lettersOf(t, 600)
		again := 0
		report := inside(t, dead, redrive.Redrive{Rate: 1000, Progress: func(int) {
			for _, m := range source.Messages() {
				if err := source.Server().DeadLetter(source.ARN(), m.ID); err != nil {
					t.Fatal(err)
				}
				again++
			}
		}})
		if report.Sent[source.URL()] != 600 || again != 600 || len(dead.Messages()) != 600 {
			t.Errorf("%+v; %d came back", report, again)
		}
	})
}

// TestNobodyOvertakesWhatIsLeft: behind a letter that has no queue to go to those of its group stay, by requests and
// inside. Letters of a standard queue, whose groups have no order, do not wait for each other.
func TestNobodyOvertakesWhatIsLeft(t *testing.T) {
	for way, run := range map[string]func(*testing.T, *reprisetest.Queue, redrive.Redrive) redrive.Report{
		"by requests": func(t *testing.T, dead *reprisetest.Queue, r redrive.Redrive) redrive.Report {
			return redriven(t, dead, r)
		},
		"inside": inside,
	} {
		for _, fifo := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var attributes map[string]string
				if fifo {
					attributes = map[string]string{"FifoQueue": "true"}
				}
				source := reprisetest.NewQueue(t, attributes)
				dead := source.NewDeadLetterQueue(100)
				gone := strings.ReplaceAll(source.ARN(), source.Name(), "gone")
				for _, m := range []struct{ from, body, group string }{{source.ARN(), "a1", "a"}, {gone, "a2", "a"}, {source.ARN(), "b1", "b"}, {source.ARN(), "a3", "a"}, {source.ARN(), "b2", "b"}} {
					entry := letterOf(m.from, m.body, m.group)
					if !fifo {
						entry.MessageDeduplicationId = ""
					}
					dead.SendMessage(entry)
				}
				report := run(t, dead, redrive.Redrive{})
				sent, left := []string{"a1", "a3", "b1", "b2"}, 1
				if fifo {
					sent, left = []string{"a1", "b1", "b2"}, 2
				}
				got := bodies(source)
				if slices.Sort(got); !slices.Equal(got, sent) || len(dead.Messages()) != left || len(report.Left) != left {
					t.Errorf("%s, FIFO %t: sent %q, want %q; %+v", way, fifo, got, sent, report)
				}
				visible(t, dead)
			})
		}
	}
}
