package mapping_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func sendTo(q *reprisetest.Queue, group, body string) {
	id := group + body[:min(10, len(body))]
	q.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: group, MessageDeduplicationId: id})
}

// TestFIFO: each group is in order and in one event at a time, groups run side by side,
// and a message that fails holds back those after it.
func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, map[string]string{"FifoQueue": "true"})
		running := map[string]bool{}
		most := 0
		handled := map[string][]string{}
		failed := map[string]bool{}
		f := &function{}
		f.answer = func(_ int, e repriselambda.Event) (emulator.Result, error) {
			groups := map[string]bool{}
			for _, r := range e.Records {
				groups[r.Attributes["MessageGroupId"]] = true
			}
			f.mu.Lock()
			for group := range groups {
				if running[group] {
					t.Errorf("group %s is in two events at once", group)
				}
				running[group] = true
			}
			most = max(most, len(running))
			f.mu.Unlock()
			time.Sleep(time.Second)
			f.mu.Lock()
			defer f.mu.Unlock()
			var items []string
			stopped := map[string]bool{}
			for _, r := range e.Records {
				group := r.Attributes["MessageGroupId"]
				delete(running, group)
				if fails := r.Body == "3" && !failed[group]; fails || stopped[group] {
					failed[group], stopped[group] = true, true
					items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, r.MessageID))
					continue
				}
				handled[group] = append(handled[group], r.Body)
			}
			return emulator.Result{Payload: []byte(`{"batchItemFailures":[` + strings.Join(items, ",") + `]}`)}, nil
		}
		want := map[string][]string{}
		for i := range 25 {
			for _, group := range []string{"x", "y", "z"} {
				sendTo(q, group, fmt.Sprint(i))
				want[group] = append(want[group], fmt.Sprint(i))
			}
		}
		start(t, q, f, mapping.Config{ReportBatchItemFailures: true})
		q.WaitEmpty(time.Hour)
		check(t, "handled", handled, want)
		if most < 2 {
			t.Errorf("at most %d group ran at once", most)
		}
	})
}

// TestFIFOTooMuchForAnEvent: what one receive brings and one event cannot carry goes
// with the next, after the first has been answered; not if its group has failed.
func TestFIFOTooMuchForAnEvent(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails %v", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, map[string]string{"FifoQueue": "true"})
				fill := strings.Repeat("x", 1_000_000)
				for i := range 8 {
					sendTo(q, "g", fmt.Sprint(i)+fill)
				}
				f := &function{answer: func(_ int, e repriselambda.Event) (emulator.Result, error) {
					if fails && e.Records[0].Attributes["ApproximateReceiveCount"] == "1" {
						return emulator.Result{FunctionError: "Unhandled"}, nil
					}
					return emulator.Result{}, nil
				}}
				start(t, q, f, mapping.Config{})
				q.WaitEmpty(time.Hour)
				var got []string
				for _, bodies := range f.bodies() {
					var event strings.Builder
					for _, body := range bodies {
						event.WriteByte(body[0])
					}
					got = append(got, event.String())
				}
				want := []string{"012345", "67"}
				if fails {
					want = slices.Concat([]string{"012345"}, want)
				}
				check(t, "events", got, want)
			})
		})
	}
}
