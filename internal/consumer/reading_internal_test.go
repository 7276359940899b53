package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	errDown  = errors.New("the dependency is down")
	standard = Queue{URL: "https://sqs/q", Name: "q"}
	ordered  = Queue{URL: "https://sqs/q.fifo", Name: "q.fifo", FIFO: true}
)

// words are a name and settings: of a command, a message or an opinion.
type words []string

func read(text string) words { return strings.Fields(text) }

// get returns the value of a setting, which is text of the form NAME=VALUE.
func (w words) get(name string) string {
	for _, one := range w {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value
		}
	}
	return ""
}

func (w words) has(name string) bool { return slices.Contains(w, name) }

func (w words) number(d *driver, name string, otherwise int) int {
	text := w.get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (w words) span(d *driver, name string, otherwise time.Duration) time.Duration {
	text := w.get(name)
	if text == "" {
		return otherwise
	}
	return d.duration(text)
}

func (d *driver) duration(text string) time.Duration {
	span, err := time.ParseDuration(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return span
}

func (d *driver) rate(text string) float64 {
	if text == "" {
		return 0
	}
	r, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// consumer makes a machine, which begins to receive.
func (d *driver) consumer(w words) {
	queue := standard
	s := Settings{
		Concurrency: w.number(d, "concurrency", 1), Prefetch: w.number(d, "prefetch", 9),
		LongPoll: w.span(d, "poll", 20*time.Second), PollTimeout: 42 * time.Second,
		StopBudget: 13 * time.Second, SoftBudget: 10 * time.Second,
		InFlightQuota: w.number(d, "quota", -1), Threshold: w.number(d, "threshold", 3),
		Keyed: w.has("keyed"), HasProbe: w.has("probe"), BreakerOff: w.has("breaker-off"),
		TellSettled: w.has("tell-settled"), AfterDelete: w.has("after-delete"),
		Rate:     d.rate(w.get("rate")),
		Settings: plan.Settings{Lease: w.span(d, "lease", time.Minute), HandlerTimeout: w.span(d, "timeout", 0), Via: vias[w.get("via")]},
		Retry:    retry.Policy{Backoff: retry.Constant(w.span(d, "backoff", 10*time.Second)), Jitter: retry.Percent(0), MaxAttempts: w.number(d, "attempts", 0), MaxAge: w.span(d, "age", 0)},
	}
	if kind := w.get("fifo"); kind != "" {
		queue, s.FIFO = ordered, map[string]FIFO{"hold": FIFOHold, "block": FIFOBlock, "skip": FIFOSkip}[kind]
	}
	if size := w.number(d, "batch", 0); size > 0 {
		s.Batch = Batch{Size: size, Linger: w.span(d, "linger", 0), Bytes: w.number(d, "bytes", 1000)}
	}
	s.Queue, s.CopyTo = queue, queue
	if w.has("lane") {
		s.CopyTo = Queue{URL: "https://sqs/lane", Name: "lane"}
	}
	one := &side{driver: d, Machine: New(s), name: w.get("name"), shows: w.get("shows"), runs: make(map[string][]*End), refuses: make(map[string]Failure)}
	d.sides = append(d.sides, one)
	if w.has("pool") {
		if d.pool == nil {
			d.pool = NewPool(w.number(d, "places", 1))
		}
		d.pool.Join(one.Machine, Share{Priority: w.number(d, "priority", 0), Weight: w.number(d, "weight", 1)}, w.get("concurrency") == "")
	}
	one.section(func() {
		if w.has("pending") {
			one.Unlearned(one.factsOf(w))
		} else {
			one.Learned(one.factsOf(w))
		}
		one.Start(w.has("stopped"))
	})
}

// factsOf returns what is known about a queue.
func (s *side) factsOf(w words) Facts {
	dead := cmp.Or(w.get("dead"), "dead")
	f := Facts{ARN: cmp.Or(w.get("arn"), "arn:"+cmp.Or(s.name, "q")), DeadLetter: Queue{URL: "https://sqs/" + dead, Name: dead}, Largest: w.number(s.driver, "largest", 0)}
	f.Plan = plan.Queue{ARN: f.ARN, FIFO: s.Queue.FIFO, MaxReceives: w.number(s.driver, "receives", 10), Retention: w.span(s.driver, "retention", 96*time.Hour), DeadLetterARN: f.ARN + "-" + dead, KMSKey: w.get("kms")}
	if f.Pending = w.has("pending"); f.Pending || w.has("no-dead") {
		f.DeadLetter, f.Plan.DeadLetterARN, f.Plan.MaxReceives = Queue{}, "", 0
	}
	return f
}

// message makes a message: its id, SQS's count of its receives (r2), and settings.
func (s *side) message(text string) *Delivery {
	w := read(text)
	handle, now := w[0], s.driver.now.Add(s.driver.ahead) // by SQS's clock
	d := &Delivery{
		Cargo: w[0], ID: w[0], OriginID: w[0], GroupID: w.get("group"), Key: w.get("key"), Receives: 1,
		Size: w.number(s.driver, "size", 100), Attributes: w.number(s.driver, "attributes", 0), TraceSize: w.number(s.driver, "trace", 0),
		Received: s.driver.now, FirstReceived: now.Add(-w.span(s.driver, "first", 0)),
	}
	if w.get("sent") != "unknown" {
		d.Sent = now.Add(-w.span(s.driver, "sent", 0))
	}
	for _, one := range w[1:] {
		if n, err := strconv.Atoi(strings.TrimPrefix(one, "r")); err == nil {
			d.Receives = n
			handle = fmt.Sprintf("%s#%d", w[0], n)
		}
	}
	d.Handle = &handle
	d.SetSequence(w.get("sequence"))
	if w.has("copy") {
		h := history.History{
			Origin: cmp.Or(w.get("origin"), "origin-"+w[0]), Attempt: w.number(s.driver, "attempt", 0), Releases: w.number(s.driver, "releases", 0), Generation: w.number(s.driver, "generation", 0),
			Sent: now.Add(-w.span(s.driver, "begun", time.Hour)).UnixMilli(), First: now.Add(-w.span(s.driver, "begun", time.Hour)).UnixMilli(), Error: w.get("error"),
			Alone: w.number(s.driver, "alone", 0), Losses: w.number(s.driver, "losses", 0), Unavailable: w.has("unavailable"), SentAt: now.Add(-w.span(s.driver, "written", 0)).UnixMilli(),
		}
		if due := w.span(s.driver, "due", 0); due != 0 {
			h.NotBefore = now.Add(due).UnixMilli()
		}
		d.Adopt(h, s.driver.ahead)
	}
	if d.Receives > 1 && !s.Queue.FIFO {
		d.CountPossibleAttempts(s.Policy(), s.driver.ahead, s.driver.now)
	}
	return d
}

// opinion reads how the user's code judges an attempt.
func (s *side) opinion(e *End, text string) {
	w := read(text)
	decide := func(err error) retry.Decision {
		return e.Delivery.Decide(s.Policy(), err, s.driver.now, s.driver.ahead)
	}
	wait := func() time.Duration { return s.driver.duration(w[1]) }
	var err error
	switch w[0] {
	case "ok":
		return
	case "fail", "unavailable":
		err = errFails
		if w[0] == "unavailable" {
			err, e.Opinion.Unavailable = errDown, true
		}
	case "after": // the handler asks for this wait
		err = retry.RetryAfter(wait(), errFails)
	case "unavailable-after":
		err, e.Opinion.Unavailable = retry.RetryAfter(wait(), errDown), true
	case "release":
		err = retry.Release(wait(), errFails)
	case "permanent":
		err = retry.Permanent(errFails)
	case "stopping":
		err, e.Opinion.Cut = errFails, CutStopping
	case "lost":
		err, e.Opinion.Cut = errFails, CutLeaseLost
	case "timeout":
		err, e.Opinion.Cut = errFails, CutOther
	case "escaped":
		err, e.Escaped = errFails, true
	default:
		s.driver.t.Fatalf("no attempt ends like %q", text)
	}
	e.Opinion.Err, e.Opinion.Decision = err, decide(err)
	if len(w) > 1 && (w[0] == "fail" || w[0] == "unavailable") {
		if span, err := time.ParseDuration(w[1]); err == nil {
			e.Opinion.Decision = retry.Decision{Action: retry.ActionRetry, At: s.driver.now.Add(span), Reason: retry.ReasonPolicy}
		}
	}
	e.Trail = w.get("trail")
}
