package sending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSenderUnderFaults: several producers send through one sender, by Send and by
// Submit, some of them with little patience, while SQS fails in every way. Each
// message gets one answer, and the answer is true:
//
//   - what is acknowledged is in the queue: once, and on a standard queue at most
//     once more for every request with it whose reply was lost;
//   - what has failed is not in the queue, unless its error says that it may be;
//   - the messages of a FIFO group are in the order in which they were sent.
func TestSenderUnderFaults(t *testing.T) {
	direct, sdk := race.Fewer(120, 15), race.Fewer(6, 2)
	if testing.Short() {
		direct, sdk = min(direct, 20), min(sdk, 2)
	}
	for seed := range uint64(direct + sdk) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newTraffic(t, seed, seed >= uint64(direct)).run()
			})
		})
	}
}

// traffic is a queue under faults, with a sender and the messages that were sent through it.
type traffic struct {
	t      *testing.T
	random *rand.Rand
	fifo   bool
	queue  *reprisetest.Queue
	client reprise.SenderClient
	sender *reprise.Sender

	mu       sync.Mutex
	answers  map[string][]reprise.Sent // by body, without its padding
	doubtful map[string]int            // requests with it that may have been carried out, unknown to the sender
}

func newTraffic(t *testing.T, seed uint64, sdk bool) *traffic {
	random := rand.New(rand.NewPCG(seed, 7))
	f := &traffic{
		t: t, random: random, fifo: seed%2 == 1,
		answers: make(map[string][]reprise.Sent), doubtful: make(map[string]int),
	}
	var attributes map[string]string
	if f.fifo {
		attributes = map[string]string{"FifoQueue": "true"}
	}
	f.queue = reprisetest.NewQueue(t, attributes)
	var faults []sqsserver.Fault
	for _, kind := range []sqsserver.FaultKind{
		sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection,
		sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultFailEntry,
	} {
		if random.IntN(3) > 0 {
			faults = append(faults, sqsserver.Fault{Kind: kind, Probability: 0.3 * random.Float64()})
		}
	}
	f.queue.Fault(faults...)
	f.client = f.queue.Direct()
	if sdk {
		f.client = f.queue.Client()
	}
	f.sender = senderThrough(t, f, f.queue.URL(), reprise.SenderConfig{
		Linger:     time.Duration(random.IntN(100)-20) * time.Millisecond,
		Requests:   1 + random.IntN(5),
		MaxWaiting: 1 + random.IntN(100),
		MaxBytes:   1 << 20,
		Logger:     slog.New(slog.DiscardHandler),
	})
	return f
}

// SendMessageBatch passes a request on, and notes whether its error leaves open if it was carried
// out.
func (f *traffic) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := f.client.SendMessageBatch(ctx, in, opts...)
	if _, refused := errors.AsType[smithy.APIError](err); err != nil && !refused {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range in.Entries {
			f.doubtful[unpadded(*e.MessageBody)]++
		}
	}
	return out, err
}

const padding = "/"

func unpadded(body string) string {
	name, _, _ := strings.Cut(body, padding)
	return name
}

func (f *traffic) run() {
	var producers sync.WaitGroup
	for p := range 1 + f.random.IntN(4) {
		random := rand.New(rand.NewPCG(f.random.Uint64(), uint64(p)))
		producers.Go(func() { f.produce(p, random) })
	}
	producers.Wait()
	f.queue.Fault()
	unsent, err := f.sender.Close(f.t.Context())
	for _, u := range unsent {
		if !errors.Is(u.Err, context.DeadlineExceeded) {
			f.t.Errorf("close: %v", err)
		}
	}
	f.check()
}

// produce sends some hundred messages, which are numbered within their group.
func (f *traffic) produce(producer int, random *rand.Rand) {
	groups := make([]int, 1+random.IntN(5))
	next := func() reprise.Outgoing {
		g := random.IntN(len(groups))
		groups[g]++
		m := reprise.Outgoing{Body: fmt.Sprintf("%d-%d-%d", producer, g, groups[g])}
		if f.fifo {
			m.GroupID, m.DeduplicationID = fmt.Sprintf("%d-%d", producer, g), m.Body
		}
		if random.IntN(20) == 0 {
			m.Body += padding + strings.Repeat("x", random.IntN(400_000))
		}
		return m
	}
	for range 20 {
		ctx := f.t.Context()
		if random.IntN(4) == 0 {
			impatient, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(500))*time.Millisecond)
			f.t.Cleanup(cancel) // not earlier: submitted messages go on
			ctx = impatient
		}
		if random.IntN(2) == 0 {
			f.submit(ctx, next())
		} else {
			f.send(ctx, next, 1+random.IntN(15))
		}
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		}
	}
}

func (f *traffic) submit(ctx context.Context, m reprise.Outgoing) {
	if err := f.sender.Submit(ctx, m, func(s reprise.Sent) { f.answered(m, s) }); err != nil {
		f.answered(m, reprise.Sent{Err: err})
	}
}

func (f *traffic) send(ctx context.Context, next func() reprise.Outgoing, n int) {
	messages := make([]reprise.Outgoing, n)
	for i := range messages {
		messages[i] = next()
	}
	sent, _ := f.sender.Send(ctx, messages...)
	for i := range sent {
		f.answered(messages[i], sent[i])
	}
}

func (f *traffic) answered(m reprise.Outgoing, s reprise.Sent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := unpadded(m.Body)
	f.answers[name] = append(f.answers[name], s)
}

// check compares the results with the queue.
func (f *traffic) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	copies := make(map[string][]string) // ids, by body
	last := make(map[string]int)        // number, by group
	for _, m := range f.queue.Messages() {
		name := unpadded(m.Body)
		copies[name] = append(copies[name], m.ID)
		var producer, group, number int
		if _, err := fmt.Sscanf(name, "%d-%d-%d", &producer, &group, &number); err != nil {
			f.t.Fatal(err)
		}
		if f.fifo && number <= last[m.Group] {
			f.t.Errorf("%s comes after %d in its group", name, last[m.Group])
		}
		last[m.Group] = number
	}
	acknowledged := 0
	for name, answers := range f.answers {
		ids := copies[name]
		delete(copies, name)
		if len(answers) != 1 {
			f.t.Errorf("%s was answered %d times: %v", name, len(answers), answers)
			continue
		}
		most := 1 + f.doubtful[name]
		if f.fifo {
			most = 1
		}
		switch s := answers[0]; {
		case len(ids) > most:
			f.t.Errorf("%s is in the queue %d times, after %d doubtful requests", name, len(ids), f.doubtful[name])
		case s.Err == nil:
			acknowledged++
			if !slices.Contains(ids, s.ID) {
				f.t.Errorf("%s was acknowledged as %s and is in the queue as %v", name, s.ID, ids)
			}
		case !errors.Is(s.Err, reprise.ErrUnconfirmed) && len(ids) > 0:
			f.t.Errorf("%s is in the queue, and was answered %v", name, s.Err)
		case !errors.Is(s.Err, context.DeadlineExceeded):
			f.t.Errorf("%s failed for another reason than its context's end: %v", name, s.Err)
		}
	}
	if len(copies) > 0 {
		f.t.Errorf("nobody was told of %v", copies)
	}
	if acknowledged == 0 {
		f.t.Error("nothing was acknowledged: nothing was tested")
	}
}
