package admin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPlacesAreThoseOfAllMessages: the messages of a story are those that a look at every message finds, also if
// their past is written as only strangers write it, and of FIFO groups the first hidden message is named.
func TestPlacesAreThoseOfAllMessages(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { server.Close() })
	fifo := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
	for queue, attributes := range map[string]map[string]string{"plain": nil, "order.fifo": fifo} {
		if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: queue, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	origins := []string{"one", `a\\\"b`, "\\u006fne", "caf\u00e9", "a/b", `a\/b`, "onerous"}
	for i := range 300 {
		for _, queue := range []string{"plain", "order.fifo"} {
			in := &sqsserver.SendMessageInput{QueueUrl: queue}
			in.MessageBody = fmt.Sprint(i)
			if queue != "plain" {
				in.MessageGroupId = fmt.Sprint(i % 5)
			}
			if i%3 > 0 {
				story := fmt.Sprintf(`{"reason":"age","error":"one of them","origin":"%s","message":"m-%d"}`, origins[i%len(origins)], i)
				in.MessageAttributes = []sqsserver.MessageAttribute{{Name: reprise.StoryAttribute, DataType: "String", StringValue: story}}
			}
			if _, err := server.SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	var some string
	for range 2 { // of the FIFO queue ten of the first group, which hides the rest of it, and then ten of the next
		out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "order.fifo", MaxNumberOfMessages: sqsserver.Int(10)})
		if err != nil || len(out.Messages) == 0 {
			t.Fatal(out, err)
		}
		some = out.Messages[len(out.Messages)-1].MessageId.String()
	}
	found := 0
	for _, q := range server.Queues() {
		for _, id := range []string{"one", `a\"b`, "café", "a/b", "m-7", "m-8", some, "absent"} {
			infos, err := server.Messages(q.ARN, sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			var want []Place
			selection := operate.Selection{IDs: []string{id}}
			for i := range infos {
				m := messageOf(q.URL, &infos[i])
				if !selection.Matches(&m.Message, server.Now()) {
					continue
				}
				p := Place{Queue: q.Name, Message: m}
				at := slices.IndexFunc(infos, func(other sqsserver.MessageInfo) bool {
					return other.Group == infos[i].Group && other.State != sqsserver.Visible
				})
				if q.FIFO && at >= 0 && at < i {
					p.Head = infos[at].ID
				}
				want = append(want, p)
			}
			got, err := placesOf(t.Context(), server, &q, id)
			if err != nil {
				t.Fatal(err)
			}
			names := func(places []Place) (all []string) {
				for _, p := range places {
					all = append(all, fmt.Sprint(p.Message.ID, " behind ", p.Head))
				}
				return all
			}
			if diff := cmp.Diff(names(want), names(got)); diff != "" {
				t.Errorf("%q in %s (-want +got):\n%s", id, q.Name, diff)
			}
			found += len(got)
		}
	}
	if found < 200 {
		t.Errorf("only %d messages were found: the test shows little", found)
	}
}
