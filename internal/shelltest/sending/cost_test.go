package sending

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
)

const ordersURL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"

// taker accepts everything, with replies made beforehand, so that only the sender is measured.
type taker struct {
	replies [11]*sqs.SendMessageBatchOutput

	mu       sync.Mutex
	requests int
}

func newTaker() *taker {
	c := new(taker)
	for n := range c.replies {
		c.replies[n] = &sqs.SendMessageBatchOutput{}
		for i := range n {
			c.replies[n].Successful = append(c.replies[n].Successful, types.SendMessageBatchResultEntry{Id: aws.String(fmt.Sprint(i)), MessageId: aws.String("id")})
		}
	}
	return c
}

func (c *taker) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	return c.replies[len(in.Entries)], nil
}

// TestSenderCostPerMessage: a message costs a tenth of a request, and a tenth of the allocations of
// a batch.
func TestSenderCostPerMessage(t *testing.T) {
	const messages = 1000
	for name, test := range map[string]struct {
		fifo bool
		most float64 // allocations per message
		send func(*reprise.Sender, []reprise.Outgoing)
	}{
		"Send": {false, 1, func(s *reprise.Sender, all []reprise.Outgoing) {
			if _, err := s.Send(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
		}},
		"Submit": {false, 2, func(s *reprise.Sender, all []reprise.Outgoing) {
			for _, m := range all {
				if err := s.Submit(t.Context(), m, func(reprise.Sent) {}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		"FIFO, a thousand groups": {true, 2, func(s *reprise.Sender, all []reprise.Outgoing) {
			if _, err := s.Send(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, url := newTaker(), ordersURL
			if test.fifo {
				url += ".fifo"
			}
			s := senderThrough(t, c, url, reprise.SenderConfig{MaxWaiting: messages, Linger: time.Hour}) // batches fill, or wait for Flush
			all := outgoing(kit.Numbered(messages)...)
			for i := range all {
				if test.fifo {
					all[i].GroupID, all[i].DeduplicationID = all[i].Body, all[i].Body
				}
			}
			const runs = 20
			per := testing.AllocsPerRun(runs, func() { test.send(s, all) }) / messages
			t.Logf("%.2f allocations per message", per)
			if per > test.most {
				t.Errorf("%.2f allocations per message, want at most %v", per, test.most)
			}
			if want := (runs + 1) * messages / 10; c.requests != want { // AllocsPerRun runs it once more
				t.Errorf("%d requests, want %d: 0.1 per message", c.requests, want)
			}
			kit.CloseSender(t, s)
		})
	}
}

func BenchmarkSender(b *testing.B) {
	s, err := reprise.NewSender(newTaker(), ordersURL, reprise.SenderConfig{})
	if err != nil {
		b.Fatal(err)
	}
	messages := outgoing(kit.Numbered(10)...)
	for i := range messages {
		messages[i].Body = strings.Repeat("x", 1024)
	}
	b.Run("Send of ten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Send(b.Context(), messages...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Submit", func(b *testing.B) {
		b.ReportAllocs()
		done := func(reprise.Sent) {}
		for b.Loop() {
			if err := s.Submit(b.Context(), messages[0], done); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
	if _, err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
