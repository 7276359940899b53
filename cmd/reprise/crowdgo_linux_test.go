package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	library "github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// crowdRecorder is the SDK's client with a log, for the library.
type crowdRecorder struct {
	*sqs.Client
	t *testing.T

	mu  sync.Mutex
	out io.Writer
	n   int64
}

func newCrowdRecorder(t *testing.T, endpoint, log string) *crowdRecorder {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	c := sqs.New(client(endpoint).Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	return &crowdRecorder{Client: c, t: t, out: out}
}

// write writes a line; number 0: the next.
func (r *crowdRecorder) write(number int64, line map[string]any) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == 0 {
		r.n++
		number = r.n
	}
	line["n"], line["at"] = number, time.Now().UnixNano()
	text, err := json.Marshal(line)
	if err == nil {
		_, err = r.out.Write(append(text, '\n'))
	}
	if err != nil {
		r.t.Error(err)
	}
	return number
}

// recorded carries out a request between its two lines.
func recorded[In, Out any](r *crowdRecorder, ctx context.Context, action string, in *In, do func(context.Context, *In, ...func(*sqs.Options)) (*Out, error), options []func(*sqs.Options)) (*Out, error) {
	n := r.write(0, map[string]any{"action": action, "input": in})
	out, err := do(ctx, in, options...)
	answer := map[string]any{"reply": out}
	if err != nil {
		code, status := "NoReply", 0
		if refused, ok := errors.AsType[smithy.APIError](err); ok {
			code = refused.ErrorCode()
		}
		if reply, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
			status = reply.HTTPStatusCode()
		}
		if ctx.Err() != nil {
			code, status = codeCanceled, 0
		}
		answer = map[string]any{"code": code, "status": status, "message": err.Error()}
	}
	r.write(n, answer)
	return out, err
}

func (r *crowdRecorder) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return recorded(r, ctx, "ReceiveMessage", in, r.Client.ReceiveMessage, options)
}

func (r *crowdRecorder) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, options ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return recorded(r, ctx, "DeleteMessageBatch", in, r.Client.DeleteMessageBatch, options)
}

func (r *crowdRecorder) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return recorded(r, ctx, "ChangeMessageVisibilityBatch", in, r.Client.ChangeMessageVisibilityBatch, options)
}

func (r *crowdRecorder) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return recorded(r, ctx, "SendMessageBatch", in, r.Client.SendMessageBatch, options)
}

func (r *crowdRecorder) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return recorded(r, ctx, "GetQueueAttributes", in, r.Client.GetQueueAttributes, options)
}

// crowdLibrary is a client that uses the library: a consumer and a sender of each of some queues.
type crowdLibrary struct {
	c        *crowd
	name     string
	recorder *crowdRecorder
	queues   []string
	random   *rand.Rand
}

// run works until ctx ends. The library logs what a break of the server does to it: that is not of interest here.
func (l *crowdLibrary) run(ctx context.Context) {
	quiet := slog.New(slog.DiscardHandler)
	var work sync.WaitGroup
	for i, queue := range l.queues {
		url := l.c.url(queue)
		consumer, err := library.New(l.recorder, url, library.HandlerFunc(func(ctx context.Context, _ *library.Message) error { return l.handle(ctx, queue) }), library.Config{
			Concurrency: 3, Prefetch: -1, LongPoll: 2 * time.Second, Rate: 20, Lease: 6 * time.Second, StopBudget: 10 * time.Second, Logger: quiet,
			Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: 4 * time.Second}, MaxAttempts: 20},
		})
		if err != nil {
			l.c.t.Error(err)
			return
		}
		sender, err := library.NewSender(l.recorder, url, library.SenderConfig{Logger: quiet})
		if err != nil {
			l.c.t.Error(err)
			return
		}
		random := rand.New(rand.NewPCG(l.random.Uint64(), uint64(i)))
		work.Go(func() {
			if err := consumer.Run(ctx); err != nil && ctx.Err() == nil {
				l.c.t.Errorf("%s: the consumer of %s ended: %v", l.name, queue, err)
			}
		})
		work.Go(func() { l.send(ctx, sender, queue, random) })
	}
	work.Wait()
}

// handle fails for one message of five, and takes longer than a lease for one of fifty. Where there is a dead-letter queue, one
// of fifty is hopeless.
func (l *crowdLibrary) handle(ctx context.Context, queue string) error {
	switch draw := rand.IntN(50); {
	case draw == 0:
		select {
		case <-ctx.Done():
		case <-time.After(8 * time.Second):
		}
		return nil
	case draw < 9:
		return errors.New("it does not work today")
	case draw == 9 && queue == crowdLetters:
		return library.Permanent(errors.New("it never will"))
	}
	return nil
}

func (l *crowdLibrary) send(ctx context.Context, sender *library.Sender, queue string, random *rand.Rand) {
	for number := 0; ctx.Err() == nil; {
		var some []library.Outgoing
		for range 1 + random.IntN(10) {
			number++
			key := l.name + "-" + queue + "-" + strconv.Itoa(number)
			m := library.Outgoing{Body: `{"key":"` + key + `","n":` + strconv.Itoa(number%10) + `}`, Attributes: map[string]types.MessageAttributeValue{
				"tenant": {DataType: aws.String("String"), StringValue: &key},
			}}
			if isFIFO(queue) {
				m.GroupID, m.DeduplicationID = l.name+"-"+strconv.Itoa(random.IntN(3)), key
			} else if random.IntN(5) == 0 {
				m.Delay = time.Duration(random.IntN(4)) * time.Second
			}
			some = append(some, m)
		}
		if l.c.backlog.Load() < crowdBacklog {
			_, _ = sender.Send(ctx, some...) // the log has what was acknowledged
		}
		time.Sleep(time.Duration(random.Int64N(int64(10 * l.c.pause))))
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = sender.Close(left) // the log has what was acknowledged
}
