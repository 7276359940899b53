package stranger_test

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// program is a process of the scenario.
type program struct {
	w        *world
	number   int
	life     *life
	plan     process
	consumer *reprisetest.Consumer // nil: it is a function
	function *mapping

	pool       *reprise.Pool // nil: it has none
	neighbours []*reprisetest.Consumer
}

// start starts a process, and sees to its end.
func (w *world) start(plan process) {
	v := w.s.version(plan)
	w.mu.Lock()
	p := &program{w: w, number: len(w.processes), plan: plan}
	p.life = &life{settings: v, from: w.now(), receiveFailedSince: -1}
	w.processes = append(w.processes, p.life)
	w.mu.Unlock()

	cfg, err := p.config(v, w.places())
	if err != nil {
		w.refuse(err)
		return
	}
	var client reprise.Client = w.q.Direct()
	if v.SDK {
		client = w.q.Client()
	}
	client = wire{client, w, p.number}
	if v.Lambda {
		p.mapTo(client, v, cfg)
		return
	}
	batch := v.batchConfig(cfg)
	if v.Batch {
		_, err = reprise.NewBatchConsumer(client, w.q.URL(), p, batch)
	} else {
		_, err = reprise.New(client, w.q.URL(), p, cfg)
	}
	if err != nil {
		w.refuse(err)
		return
	}
	w.mu.Lock() // no handler begins before the program knows its consumer
	q := w.q
	if v.Pooled {
		q = p.join()
	}
	if v.Batch {
		p.consumer = q.ConsumeBatchWith(client, p, batch)
	} else {
		p.consumer = q.ConsumeWith(client, p, cfg)
	}
	p.life.program = p
	w.mu.Unlock()
	p.endAsPlanned()
}

// endAsPlanned ends the process at its time.
func (p *program) endAsPlanned() {
	w, plan := p.w, p.plan
	if plan.Until == 0 {
		return
	}
	w.busy.Go(func() {
		if !w.sleep(plan.Until - w.now()) {
			return
		}
		if plan.Crash {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.crash()
			return
		}
		p.stop()
	})
}

// stop asks the process to stop, and waits until it has.
func (p *program) stop() {
	w, l := p.w, p.life
	w.mu.Lock()
	if l.crashed || l.stopped > 0 {
		w.mu.Unlock()
		return
	}
	l.stopped = w.now()
	w.mu.Unlock()
	if p.function != nil {
		p.function.stop()
		return
	}
	neighbours := p.stopNeighbours()
	report := p.consumer.Stop()
	ended := w.now()
	<-neighbours
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.crashed {
		return
	}
	l.until = ended
	l.err, l.report = p.consumer.Err(), &report
	if lane := p.consumer.RetryLane(); lane != nil {
		of := lane.Report()
		l.laneReport = &of
	}
}

// crash kills the process. The world's lock is held.
func (p *program) crash() {
	if p.life.until == 0 && !p.life.crashed && p.function != nil {
		p.life.crashed, p.life.until = true, p.w.now()
		p.function.crash()
	}
	if p.life.until == 0 && !p.life.crashed && p.consumer != nil {
		p.life.crashed, p.life.until = true, p.w.now()
		p.consumer.Crash()
		for _, c := range p.neighbours {
			c.Crash()
		}
	}
}

// restart starts a process in the place of one that a message has killed.
func (w *world) restart(p *program, after time.Duration) {
	if !w.sleep(after) {
		return
	}
	plan := p.plan
	if plan.From = w.now(); plan.Until == 0 || plan.Until > plan.From {
		w.start(plan)
	}
}

// status returns what the process says: its lane's health where that is worse.
func (p *program) status() reprise.Status {
	s := p.consumer.Status()
	if lane := p.consumer.RetryLane(); lane != nil && s.Health == reprise.HealthOK {
		of := lane.Status()
		s.Health, s.Problem = of.Health, of.Problem
	}
	return s
}

func receiveAll(url string) *sqs.ReceiveMessageInput {
	return &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: 10, VisibilityTimeout: 600,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
}
