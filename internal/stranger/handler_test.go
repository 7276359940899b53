package stranger_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

var (
	errFail     = errors.New("the order is refused")
	errFailRule = errors.New("the warehouse has a rule for this")
	errDown     = errors.New("the warehouse is down")
)

// Handle is the handler of one process.
func (p *program) Handle(ctx context.Context, m *reprise.Message) error {
	p.w.busy.Add(1)
	defer p.w.busy.Done()
	defer p.w.call(p.number, -1)()
	r, s := p.begin(ctx, m, false)
	return p.work(ctx, r, s)
}

// HandleBatch works through a batch message by message, and returns a verdict for each.
func (p *program) HandleBatch(ctx context.Context, ms []*reprise.Message) []error {
	p.w.busy.Add(1)
	defer p.w.busy.Done()
	defer p.w.call(p.number, -1)()
	runs := make([]*run, len(ms))
	steps := make([]step, len(ms))
	for i, m := range ms {
		runs[i], steps[i] = p.begin(ctx, m, true)
	}
	errs := make([]error, len(ms))
	for i, m := range ms {
		if steps[i].Result == panics { // a panic is one of the whole batch
			steps[i].Result = fail
		}
		errs[i] = p.work(reprise.MessageContext(ctx, m), runs[i], steps[i])
	}
	return errs
}

// call notes that a handler is called for a message of the queue (-1) or of a neighbour. The function that it
// returns notes the end.
func (w *world) call(process, queue int) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &call{process: process, queue: queue, began: w.now(), ended: -1}
	w.calls = append(w.calls, c)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.ended = w.now()
	}
}

// begin notes the start of a run, and says what it will do.
func (p *program) begin(ctx context.Context, m *reprise.Message, batch bool) (*run, step) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	n := number(m.Body)
	r := &run{
		process: p.number, message: n, id: m.ID, origin: m.OriginID, group: m.GroupID, attempt: m.Attempt, receives: m.Receives,
		sent: m.Sent, first: m.FirstReceived, began: w.now(), batch: batch,
		invocation: invocationOf(ctx),
	}
	if n >= 0 && n < len(w.s.Messages) {
		w.nth[n]++
		r.nth = w.nth[n]
		r.step = w.s.Messages[n].step(r.nth)
		r.contentOK = sameContent(w.s, n, m)
	}
	w.runs = append(w.runs, r)
	return r, r.step
}

// work takes the time of the step, and returns what it says.
func (p *program) work(ctx context.Context, r *run, s step) error {
	w := p.w
	deadline := time.NewTimer(s.Takes)
	defer deadline.Stop()
	ended := ctx.Done()
	if s.Ignores {
		ended = nil
	}
	if s.Takes > 0 {
		select {
		case <-deadline.C:
		case <-ended:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.ended = w.now()
	if ctx.Err() != nil {
		r.cause, r.causeAt = causeOf(ctx), w.now()
	}
	if p.life.crashed || r.invocation != nil && r.invocation.died+r.invocation.ended > 0 { // Lambda freezes what runs on
		w.nth[max(r.message, 0)] -= b2i(r.message >= 0)
		return errors.New("nobody hears this: the process is dead")
	}
	r.done = true
	if r.cause == "deadline" && !s.Ignores { // a timeout is a failed attempt
		r.result, r.err = timeout, ctx.Err().Error()
		return ctx.Err()
	}
	if ctx.Err() != nil && !s.Ignores {
		r.interrupted = true
		w.nth[max(r.message, 0)] -= b2i(r.message >= 0)
		r.err = ctx.Err().Error()
		return ctx.Err()
	}
	r.result = s.Result
	if s.Result == succeed && w.s.down(p.life.settings, r.message, w.now()) {
		r.result = unavailable
	}
	if r.result == kill {
		if w.kills++; w.kills > mostKills {
			r.result = fail
		}
	}
	err := p.verdict(r, s)
	if err != nil {
		r.err = err.Error()
	}
	return err
}

// mostKills is how many processes are killed by messages in one scenario: later, such messages fail.
const mostKills = 20

// verdict returns the error of a step, panics, or kills the process.
func (p *program) verdict(r *run, s step) error {
	switch r.result {
	case fail:
		return fmt.Errorf("run %d: %w", r.nth, errFail)
	case failRule:
		return fmt.Errorf("run %d: %w", r.nth, errFailRule)
	case permanent:
		return reprise.Permanent(fmt.Errorf("run %d: %w for ever", r.nth, errFail))
	case retryAfter:
		return reprise.RetryAfter(s.Wait, fmt.Errorf("run %d: %w for now", r.nth, errFail))
	case release:
		return reprise.Release(s.Wait, fmt.Errorf("run %d: not now", r.nth))
	case unavailable:
		return reprise.Unavailable(fmt.Errorf("run %d: %w", r.nth, errDown))
	case panics:
		r.err = fmt.Sprintf("run %d panics", r.nth)
		panic(r.err)
	case kill:
		r.done = false
		if r.invocation != nil {
			r.invocation.die(p.w.now())
			return errors.New("nobody hears this: the function is dead")
		}
		p.crash()
		p.w.busy.Go(func() { p.w.restart(p, max(s.Wait, time.Second)) })
		return errors.New("nobody hears this: the process is dead")
	}
	return nil
}

func causeOf(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, reprise.ErrLeaseLost):
		return "lease lost"
	case errors.Is(cause, reprise.ErrStopping):
		return "stopping"
	case errors.Is(cause, context.DeadlineExceeded):
		return "deadline"
	default:
		return cause.Error()
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// body returns the body of message n.
func (s *scenario) body(n int) string {
	head := fmt.Sprint(n, ":")
	return head + strings.Repeat("x", max(0, s.Messages[n].Size-len(head)))
}

// attributes returns those that the producer of message n attaches.
func (s *scenario) attributes(n int) map[string]types.MessageAttributeValue {
	m := s.Messages[n]
	all := make(map[string]types.MessageAttributeValue)
	text := func(kind, value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: &kind, StringValue: &value}
	}
	for i := range min(m.Attributes, 10) {
		switch i % 3 {
		case 0:
			all[fmt.Sprint("text", i)] = text("String", "ünï")
		case 1:
			all[fmt.Sprint("count", i)] = text("Number.int", "042")
		case 2:
			kind := "Binary.png"
			all[fmt.Sprint("bytes", i)] = types.MessageAttributeValue{DataType: &kind, BinaryValue: []byte{0, byte(i), 255}}
		}
	}
	if len(all) < 10 {
		switch m.Forged {
		case garbage:
			all[reprise.HistoryAttribute] = text("String", "{")
		case plausible:
			all[reprise.HistoryAttribute] = text("String", fmt.Sprintf(plausibleHistory, time.Now().Format(time.RFC3339)))
		case invalidStory:
			all[reprise.StoryAttribute] = text("String", `{"reason":"attempts","attempts":"many"}`)
		}
	}
	return all
}

// plausibleHistory is what a producer might guess.
const plausibleHistory = `{"origin":"11111111-2222-3333-4444-555555555555","attempt":7,"sentAt":%q}`

// sameContent reports whether what a handler gets is what the producer sent.
func sameContent(s *scenario, n int, m *reprise.Message) bool {
	want, got := s.attributes(n), maps.Clone(m.Attributes)
	for _, ours := range []string{reprise.HistoryAttribute, reprise.StoryAttribute} {
		delete(want, ours)
		delete(got, ours)
	}
	return m.Body == s.body(n) && sameTrace(s, n, m.TraceHeader) && m.GroupID == s.group(n) && maps.EqualFunc(want, got, func(a, b types.MessageAttributeValue) bool {
		return str(a.DataType) == str(b.DataType) && str(a.StringValue) == str(b.StringValue) && string(a.BinaryValue) == string(b.BinaryValue)
	})
}

// sameTrace reports whether a trace header is that of message n. A copy that SQS does not accept is sent "without its optional parts".
func sameTrace(s *scenario, n int, got string) bool {
	optional := s.Messages[n].Size > 1<<19 || len(s.Faults) > 0
	return got == s.traceHeader(n) || got == "" && optional
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
