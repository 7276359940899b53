package admin_test

// Holds off: a producer whose messages are looked at.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackLargeAttributes: attributes count as bodies do, so a list and a page of an export have some 8 MiB, and no
// message is left out; an export of more than 64 MiB fails, and the reason is told.
func TestAttackLargeAttributes(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { server.Close() })
	if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "orders"}); err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20 // of a message, nearly
	send := func(from, to int) {
		for i := from; i < to; i++ {
			in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
			in.MessageBody = fmt.Sprint(i)
			in.MessageAttributes = []sqsserver.MessageAttribute{
				{Name: "text", DataType: "String", StringValue: strings.Repeat("x", size/2)},
				{Name: "bytes", DataType: "Binary", BinaryValue: make([]byte, size/2-1000)},
			}
			if _, err := server.SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(0, 20)
	s := serve(t, func(cfg *admin.Config) { cfg.Server, cfg.JobQueue = server, jobQueue })
	const longest = 12 << 20
	id := s.run(`{"action":"export","queue":"orders","all":true}`).ID
	for name, first := range map[string]string{"list": "queues/orders/messages?limit=1000&after=", "export": "jobs/" + id + "/messages?after="} {
		seen, pages := 0, 0
		for next, more := "0", true; more; pages++ {
			status, text := s.call("GET", admin.Path+first+next, "")
			if status != 200 || len(text) > longest {
				t.Fatalf("%s: status %d, %d bytes, want %d at most", name, status, len(text), longest)
			}
			page := decode[struct {
				Messages []struct{ Body string }
				Next     string
			}](t, text)
			for _, m := range page.Messages {
				if m.Body != fmt.Sprint(seen) {
					t.Fatalf("%s: message %s comes in the place of %d", name, m.Body, seen)
				}
				seen++
			}
			next, more = page.Next, page.Next != ""
		}
		if seen != 20 || pages < 2 {
			t.Errorf("%s: %d messages on %d pages, want all 20 on several", name, seen, pages)
		}
	}

	send(20, 64)
	if j := s.run(`{"action":"export","queue":"orders","all":true}`); j.State != admin.JobFailed || !strings.Contains(j.Problem, "more than 67108864 bytes") {
		t.Errorf("an export of 64 MiB: %+v, want it to fail", j)
	}
}
