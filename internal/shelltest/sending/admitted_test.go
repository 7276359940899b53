package sending

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// lateContext ends while Submit waits for room. Before Submit learns why, which is the second time that
// somebody asks for its error, it does something.
type lateContext struct {
	context.Context
	asked atomic.Int32
	do    func()
}

var ended = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (*lateContext) Done() <-chan struct{} { return ended }

func (c *lateContext) Err() error {
	if c.asked.Add(1) != 2 {
		return nil
	}
	c.do()
	return context.Canceled
}

// twoRequests answers each of two requests when it is told to.
type twoRequests struct {
	number atomic.Int32
	began  [2]chan struct{}
	answer [2]chan struct{}
}

func (c *twoRequests) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	n := c.number.Add(1) - 1
	close(c.began[n])
	<-c.answer[n]
	out := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: aws.String(*e.MessageBody)})
	}
	return out, nil
}

// TestSubmitEndsAsItIsAdmitted: a message that was admitted, and is in a request already, when the
// context of its Submit ends is not withdrawn: Submit returns nil, and done is called once.
func TestSubmitEndsAsItIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := new(twoRequests)
		for i := range client.began {
			client.began[i], client.answer[i] = make(chan struct{}), make(chan struct{})
		}
		s, err := reprise.NewSender(client, "https://sqs.us-east-1.amazonaws.com/1/q", reprise.SenderConfig{MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "first"}, func(reprise.Sent) {}); err != nil {
			t.Fatal(err)
		}
		<-client.began[0]
		ctx := &lateContext{Context: t.Context()}
		ctx.do = func() {
			close(client.answer[0]) // which makes room
			<-client.began[1]
		}
		var told []reprise.Sent
		if err := s.Submit(ctx, reprise.Outgoing{Body: "second"}, func(sent reprise.Sent) { told = append(told, sent) }); err != nil {
			t.Errorf("Submit returns %v, although the message is being sent", err)
		}
		close(client.answer[1])
		if report, err := s.Close(t.Context()); err != nil {
			t.Errorf("%+v: %v", report, err)
		}
		if len(told) != 1 || told[0].Err != nil || told[0].ID != "second" {
			t.Errorf("done was called with %+v", told)
		}
	})
}
