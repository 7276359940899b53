package operating

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// FuzzConfigs sets several numbers of a consumer's settings at once. What a constructor refuses it must
// name; without what it names, the consumer must do its job: see drawnConsumer.
func FuzzConfigs(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range race.Fewer(300, 30) {
		choices := make([]byte, 80)
		for i := range choices {
			// Half of the seeds set few numbers, so that what one of them does is not hidden by others.
			if choices[i] = byte(r.Uint32()); i >= kinds && n%2 == 0 && r.IntN(4) > 0 {
				choices[i] = 0
			}
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) < kinds || len(choices) > 300 {
			return
		}
		synctest.Test(t, func(t *testing.T) { drawConsumer(t, choices).run(t) })
	})
}

// kinds is how many of the choices say what kind of consumer it is.
const kinds = 6

// drawnConsumer is a consumer whose numbers are drawn, and the messages that it gets.
type drawnConsumer struct {
	*reprise.Consumer
	cfg    drawnSettings
	queues []*reprisetest.Queue // the queue, and its retry lane
	dead   *reprisetest.Queue
	fifo   bool
	outage time.Time // when it ends
	early  bool      // whether the stop may begin before that
	log    *lockedBuffer

	mu        sync.Mutex
	tried     map[string]int
	succeeded map[string]int
}

// drawnSettings are the numbers to draw.
type drawnSettings struct {
	reprise.BatchConfig
	Pool         reprise.PoolConfig
	Share, Other reprise.Share
	Exponential  retry.Exponential
	Linear       retry.Linear
	Polynomial   retry.Polynomial
	Constant     retry.Constant
	List         [2]time.Duration
	Error        time.Duration // of RetryAfter and Release
}

// lockedBuffer is a log that goroutines share.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// drawConsumer makes a consumer without the settings that its constructor refuses and names.
func drawConsumer(t *testing.T, choices []byte) *drawnConsumer {
	t.Helper()
	kind, choices := choices[:kinds], choices[kinds:]
	d := &drawnConsumer{log: new(lockedBuffer), tried: make(map[string]int), succeeded: make(map[string]int)}
	d.fifo = kind[0]%4 == 0
	attributes := make(map[string]string)
	if d.fifo {
		attributes["FifoQueue"] = "true"
	}
	q := reprisetest.NewQueue(t, attributes)
	d.queues = append(d.queues, q)
	drawn := extremes.Draw(&d.cfg, choices)
	d.cfg.Logger = slog.New(slog.NewTextHandler(d.log, nil))
	lane := kind[3]%3 == 0 && !d.fifo
	if kind[1]%2 == 0 && !lane { // a lane has no dead-letter queue but that of the configuration
		d.dead = q.NewDeadLetterQueue(1 + int(kind[1]/2))
	} else {
		d.dead = q.NewQueue(attributes)
		d.cfg.DeadLetterURL = d.dead.URL()
	}
	if kind[2]%3 == 0 {
		d.outage, d.early = time.Now().Add(time.Duration(kind[2])*10*time.Second), kind[2]%2 == 1
	}
	if lane {
		d.queues = append(d.queues, q.NewQueue(nil))
		d.cfg.RetryLane.URL = d.queues[1].URL()
	} else {
		d.cfg.RetryLane = reprise.RetryLane{}
	}
	for {
		d.cfg.Retry.Backoff = []retry.Backoff{nil, d.cfg.Exponential, d.cfg.Linear, d.cfg.Polynomial, d.cfg.Constant, retry.List(d.cfg.List[:])}[kind[4]%6]
		c, err := d.build(q, kind[5]%3)
		if err == nil {
			d.Consumer = c
			return d
		}
		d.leaveOut(t, drawn, err)
	}
}

// leaveOut makes the numbers zero that err names; every line of err must name one.
func (d *drawnConsumer) leaveOut(t *testing.T, drawn []extremes.Drawn, err error) {
	t.Helper()
	for line := range strings.Lines(err.Error()) {
		named := false
		for _, n := range drawn {
			backoff := n.Field == "Constant" || n.Field == "List" // policies call them so
			if n.Named(line) || backoff && strings.Contains(line, "Backoff") {
				n.Reset()
				named = true
			}
		}
		if !named {
			t.Fatalf("no setting is named by %q; set are %v", line, drawn)
		}
	}
}

func (d *drawnConsumer) build(q *reprisetest.Queue, kind byte) (*reprise.Consumer, error) {
	switch kind {
	case 0:
		return reprise.New(q.Direct(), q.URL(), d, d.cfg.Config)
	case 1:
		return reprise.NewBatchConsumer(q.Direct(), q.URL(), kit.Together(d), d.cfg.BatchConfig)
	}
	pool, err := reprise.NewPool(d.cfg.Pool)
	if err != nil {
		return nil, err
	}
	other := q.NewQueue(nil)
	if _, err := pool.Add(other.Direct(), other.URL(), d, d.cfg.Other, reprise.Config{}); err != nil {
		return nil, err
	}
	return pool.Add(q.Direct(), q.URL(), d, d.cfg.Share, d.cfg.Config)
}

// The messages. Those of other bodies succeed at once.
const (
	failsOnce, failsAlways, failsForGood, retryAfter, release = "fails once", "fails always", "fails for good", "retry after", "release"
)

// Handle works on a message as its body says. While the outage lasts, every first attempt fails.
func (d *drawnConsumer) Handle(ctx context.Context, m *reprise.Message) error {
	time.Sleep(100 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried[m.Body]++
	if time.Now().Before(d.outage) {
		return reprise.Unavailable(errors.New("connection refused"))
	}
	err := errors.New("not yet")
	switch first := d.tried[m.Body] == 1; {
	case m.Body == failsForGood:
		return reprise.Permanent(err)
	case m.Body == failsAlways, m.Body == failsOnce && first:
		return err
	case m.Body == retryAfter && first:
		return reprise.RetryAfter(d.cfg.Error, err)
	case m.Body == release && first:
		return reprise.Release(d.cfg.Error, err)
	}
	d.succeeded[m.Body]++
	return nil
}

// run runs the consumer until it has done its job, then stops it while handlers run. Its job: each message
// is handled once and deleted, or is in one queue, and the consumer is never failing.
func (d *drawnConsumer) run(t *testing.T) {
	t.Helper()
	const good = 25
	bodies := append(kit.Numbered(good), failsOnce, failsAlways, failsForGood, retryAfter, release)
	for i, body := range bodies {
		d.send(body, i)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- d.Run(ctx) }()
	limit := max(time.Until(d.outage), 0)*3 + 15*time.Minute + max(min(d.cfg.Linger, time.Hour), 0)*5
	var slow time.Duration // between two starts
	if d.cfg.Rate > 0 {
		slow = time.Duration(float64(time.Second) / d.cfg.Rate)
	}
	limit += 200 * slow
	var problem string
	for step := time.Second; ; step = max(step, time.Since(began)/20) {
		time.Sleep(step)
		d.checkStatus(t)
		if problem = d.problem(bodies[:good]); problem == "" && (d.early || time.Now().After(d.outage)) || time.Since(began) > limit {
			break
		}
	}
	if problem != "" {
		t.Errorf("after %v: %s: %+v", time.Since(began), problem, d.Status())
	}

	d.send("stopped 1", 0)
	d.send("stopped 2", 1)
	time.Sleep(50 * time.Millisecond)
	budget := d.cfg.StopBudget
	if budget == 0 {
		budget = 25 * time.Second
	}
	stop()
	stopped := time.Now()
	err := <-ended
	if took := time.Since(stopped); took > min(budget, time.Minute+20*slow) {
		t.Errorf("the stop took %v of its budget of %v", took, budget)
	}
	if err != nil && (!errors.Is(err, reprise.ErrDrainTimeout) || budget > time.Minute+20*slow) {
		t.Errorf("the stop: %v", err)
	}
	d.checkStatus(t)
	time.Sleep(time.Minute) // handlers that the stop did not wait for return
	if negative := negativeDuration.FindString(d.log.String()); negative != "" {
		t.Errorf("the log has %q: %s", negative, d.log.String())
	}
	if t.Failed() {
		t.Logf("settings: %+v\n%s", d.cfg, d.log.String())
	}
}

// negativeDuration is one in a text.
var negativeDuration = regexp.MustCompile(`[^\w.:]-\d[\d.]*(ns|µs|ms|s|m|h)\b`)

func (d *drawnConsumer) send(body string, i int) {
	m := sqsserver.SendMessageEntry{MessageBody: body}
	if d.fifo {
		m.MessageDeduplicationId, m.MessageGroupId = strconv.Itoa(i)+strings.ReplaceAll(body, " ", "-"), strings.ReplaceAll(body, " ", "-")
		if _, err := strconv.Atoi(body); err == nil {
			m.MessageGroupId = "group" + strconv.Itoa(i%5)
		}
	}
	d.queues[0].SendMessage(m)
}

// checkStatus fails the test if the consumer's state is not that of one that works.
func (d *drawnConsumer) checkStatus(t *testing.T) {
	t.Helper()
	s := d.Status()
	if s.Health == reprise.HealthFailing || negativeDuration.MatchString(s.Problem) {
		t.Errorf("the consumer is %v: %s", s.Health, s.Problem)
	}
	for what, n := range map[string]int{"running": s.Running, "waiting": s.Waiting, "settling": s.Settling, "in backoff": s.InBackoff, "polling": s.Pollers} {
		if n < 0 {
			t.Errorf("%d messages are %s", n, what)
		}
	}
	_ = fmt.Sprint(s)
}

// problem says what has not become of the messages what should, empty if all is well.
func (d *drawnConsumer) problem(good []string) string {
	synctest.Wait()
	waiting, dead := make(map[string]int), make(map[string]int)
	for _, q := range d.queues {
		for _, m := range q.Messages() {
			waiting[m.Body]++
		}
	}
	for _, m := range d.dead.Messages() {
		dead[m.Body]++
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, body := range append(good, failsOnce, failsAlways, failsForGood, retryAfter, release) {
		places := d.succeeded[body] + waiting[body] + dead[body]
		state := fmt.Sprintf("the message %q was tried %d times and succeeded %d times, %d wait, %d are dead letters", body, d.tried[body], d.succeeded[body], waiting[body], dead[body])
		switch {
		case places != 1, d.tried[body] == 0 && (!d.fifo || d.outage.IsZero()): // its group may wait
			return state
		case body == failsForGood && dead[body] == 0 && d.outage.IsZero():
			return state
		case d.outage.IsZero() && d.succeeded[body] == 0 && (!strings.Contains(failsAlways+failsForGood+retryAfter+release, body) && body != failsOnce || body == failsOnce && d.retriedSoon()):
			return state
		}
	}
	return ""
}

// retriedSoon reports whether the policy tries a message again that has failed once, within minutes.
func (d *drawnConsumer) retriedSoon() bool {
	p := d.cfg.Retry
	if d.fifo && d.cfg.FIFO == reprise.FIFOSkip {
		return false
	}
	_, longest := p.Bounds(1)
	return longest <= 5*time.Minute && (p.MaxAttempts < 0 || p.MaxAttempts > 1 || p.MaxAttempts == 0 && d.cfg.DeadLetterURL != "") && (p.MaxAge <= 0 || p.MaxAge > time.Hour)
}
