package batches

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestBatchFleet: three consumers of batches share a queue, one seed after another.
// Messages fail, are hopeless, ask for a wait or to be released; handlers panic and
// are slow; settlements are refused, leases and replies lost; one consumer is
// stopped and one crashes. Whatever comes together: nothing is lost or stuck, good
// messages are never given up and hopeless ones never succeed, and on FIFO queues no
// message starts while an earlier one of its group is there.
func TestBatchFleet(t *testing.T) {
	seeds := race.Fewer(30, 6)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newBatchFleet(t, uint64(seed)).run() })
		})
	}
}

type batchFleet struct {
	t    *testing.T
	seed uint64
	q    *reprisetest.Queue
	dead *reprisetest.Queue
	fifo bool
	cfg  reprise.BatchConfig

	mu        sync.Mutex
	sent      []string
	succeeded map[string]int
	runs      map[string]int
}

func newBatchFleet(t *testing.T, seed uint64) *batchFleet {
	f := &batchFleet{t: t, seed: seed, fifo: seed%2 == 1, succeeded: make(map[string]int), runs: make(map[string]int)}
	var attributes map[string]string
	if f.fifo {
		attributes = kit.FIFOQueue
	}
	f.q = reprisetest.NewQueue(t, attributes)
	f.dead = f.q.NewDeadLetterQueue(1000)
	f.cfg.Config = reprise.Config{
		Concurrency: 1 + f.draw("concurrency", 4),
		Lease:       20 * time.Second,
		FIFO:        reprise.FIFO(f.draw("fifo", 2)), // to skip would give up good messages
		Retry:       retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: 50},
	}
	f.cfg.Size = []int{1, 3, 10, 40}[f.draw("size", 4)]
	f.cfg.Linger = []time.Duration{-1, 300 * time.Millisecond, 30 * time.Second}[f.draw("linger", 3)]
	f.cfg.Bytes = []int{0, 400}[f.draw("bytes", 2)]
	return f
}

// draw returns a number below n that is hashed from the seed and its subject, so that a seed gives
// the same draws in whatever order goroutines run.
func (f *batchFleet) draw(about string, n int) int {
	h := fnv.New64a()
	fmt.Fprint(h, f.seed, about)
	return int((h.Sum64() >> 17) % uint64(n))
}

// calm reports whether only messages fail, not requests.
func (f *batchFleet) calm() bool { return f.draw("calm", 3) == 0 }

func (f *batchFleet) run() {
	if !f.calm() {
		f.q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Every: 5 + f.draw("fail", 20)},
			sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Every: 9 + f.draw("lose", 30), Limit: 60},
			sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Every: 7 + f.draw("reply", 20), Limit: 60},
			sqsserver.Fault{Kind: sqsserver.FaultServerError, Every: 11},
		)
	}
	for i := range 120 {
		kind := []string{"good", "good", "good", "good", "good", "flaky", "flaky", "hopeless", "later", "released"}[f.draw(fmt.Sprint("kind", i), 10)]
		m := sqsserver.SendMessageEntry{MessageBody: fmt.Sprintf("%03d-%s", i, kind)}
		if f.fifo {
			m.MessageGroupId, m.MessageDeduplicationId = fmt.Sprint("g", f.draw(fmt.Sprint("group", i), 5)), m.MessageBody
		}
		f.q.SendMessage(m)
		f.sent = append(f.sent, m.MessageBody)
	}
	consumers := []*reprisetest.Consumer{f.consume(), f.consume(), f.consume()}
	if !f.calm() {
		time.Sleep(time.Duration(f.draw("crash", 20_000)) * time.Millisecond)
		consumers[0].Crash()
		time.Sleep(time.Duration(f.draw("stop", 20_000)) * time.Millisecond)
		consumers[1].Stop()
	}
	f.q.WaitEmpty(12 * time.Hour)
	for _, c := range consumers {
		c.Stop()
	}
	f.check(consumers)
}

func (f *batchFleet) consume() *reprisetest.Consumer {
	return f.q.ConsumeBatch(reprise.BatchHandlerFunc(f.handle), f.cfg)
}

func (f *batchFleet) handle(ctx context.Context, ms []*reprise.Message) []error {
	f.checkStart(ms)
	about := fmt.Sprint("batch", ms[0].Body, ms[0].Receives, ms[0].Attempt)
	select {
	case <-time.After(time.Duration(f.draw(about, 3000)) * time.Millisecond):
	case <-ctx.Done():
		return slices.Repeat([]error{ctx.Err()}, len(ms))
	}
	if f.draw(about+"panics", 25) == 0 {
		panic("burst")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := make([]error, len(ms))
	failed := make(map[string]bool)
	for i, m := range ms {
		f.runs[m.Body]++
		errs[i] = f.verdict(m)
		switch {
		case f.fifo && failed[m.GroupID]: // it will be run again, whatever is said of it
		case errs[i] == nil:
			f.succeeded[m.Body]++
		default:
			failed[m.GroupID] = true
		}
	}
	return errs
}

func (f *batchFleet) verdict(m *reprise.Message) error {
	_, kind, _ := strings.Cut(m.Body, "-")
	switch {
	case kind == "hopeless":
		return reprise.Permanent(kit.ErrUnavailable)
	case kind == "flaky" && m.Attempt <= 2:
		return kit.ErrUnavailable
	case kind == "later" && f.runs[m.Body] == 1:
		return reprise.RetryAfter(90*time.Second, kit.ErrUnavailable)
	case kind == "released" && f.runs[m.Body] == 1:
		return reprise.Release(time.Second, kit.ErrUnavailable)
	}
	return nil
}

// checkStart checks that a batch is within its limits, has no message twice, and has its groups in
// order, with no earlier message of them missing.
func (f *batchFleet) checkStart(ms []*reprise.Message) {
	bytes := 0
	first, last := make(map[string]string), make(map[string]string)
	for _, m := range ms {
		bytes += len(m.Body)
		if !f.fifo {
			continue
		}
		if m.Body <= last[m.GroupID] {
			f.t.Errorf("%s comes behind %s", m.Body, last[m.GroupID])
		}
		if last[m.GroupID] = m.Body; first[m.GroupID] == "" {
			first[m.GroupID] = m.Body
		}
	}
	if b := f.cfg; len(ms) > b.Size || b.Bytes > 0 && bytes > b.Bytes {
		f.t.Errorf("a batch of %d messages and %d bytes", len(ms), bytes)
	}
	for _, m := range f.q.Messages() {
		if start := first[m.Group]; m.Group != "" && m.Body < start {
			f.t.Errorf("%s starts while %s is there: %+v", start, m.Body, m)
		}
	}
}

// check checks what must hold at the end.
func (f *batchFleet) check(consumers []*reprisetest.Consumer) {
	dead := make(map[string]int)
	for _, m := range f.dead.Messages() {
		dead[m.Body]++
	}
	for _, body := range f.sent {
		hopeless := strings.HasSuffix(body, "hopeless")
		switch {
		case hopeless && (f.succeeded[body] > 0 || dead[body] == 0), !hopeless && (f.succeeded[body] == 0 || dead[body] > 0):
			f.t.Errorf("%s: %d successes, %d dead letters, %d runs", body, f.succeeded[body], dead[body], f.runs[body])
		case f.calm() && f.succeeded[body]+dead[body] != 1:
			f.t.Errorf("%s: %d successes and %d dead letters though nothing failed", body, f.succeeded[body], dead[body])
		}
	}
	if !f.calm() {
		return
	}
	var n reprise.Counts
	for _, c := range consumers {
		report := c.Report()
		n.Deleted += report.Counts.Deleted
		n.DeadLettered += report.Counts.DeadLettered
		n.Lost += report.Counts.Lost
	}
	if n.Deleted != int64(len(f.succeeded)) || n.DeadLettered != int64(len(dead)) || n.Lost != 0 {
		f.t.Errorf("%d deleted, %d dead-lettered, %d lost: want each of %d and %d once", n.Deleted, n.DeadLettered, n.Lost, len(f.succeeded), len(dead))
	}
}
