package stranger_test

import (
	"fmt"
	"time"
)

// act does what an operator does to a process.
func (w *world) act(a act) {
	w.mu.Lock()
	var p *program
	if a.Process >= 0 && a.Process < len(w.processes) {
		p = w.processes[a.Process].program
	}
	alive := p != nil && p.consumer != nil && !p.life.crashed && p.life.stopped == 0
	w.mu.Unlock()
	if !alive {
		return
	}
	v := p.life.settings
	switch a.Do {
	case doWake:
		p.consumer.Wake()
	case doWakeKey:
		p.consumer.Wake(v.key(a.Key))
	case doProbe:
		p.consumer.Probe()
	case doProbeKey:
		p.consumer.Probe(v.key(a.Key))
	case doPause:
		p.consumer.Pause()
		p.switched("", true)
		w.busy.Go(func() {
			w.sleep(time.Duration(a.N) * time.Second)
			p.switched("", false)
			p.consumer.Resume()
		})
	case doPauseKey:
		p.pauseKey(v.key(a.Key), time.Duration(a.N)*time.Second)
	case doWakeMessage, doRetryMessage:
		for _, m := range w.waiting() {
			if number(m.Body) != a.N {
				continue
			}
			if a.Do == doWakeMessage {
				p.consumer.WakeMessage(m.ID)
			} else if p.consumer.RetryOnReceive(m.ID) {
				w.endDelay(m.ID)
			}
		}
	case doSetPlaces:
		if p.pool == nil {
			return
		}
		if err := p.pool.SetConcurrency(max(1, a.N)); err != nil {
			w.refuse(err)
		}
	case doSetConcurrency:
		if v.Batch {
			return // its limit is the batches'
		}
		if err := p.consumer.SetConcurrency(max(1, a.N)); err != nil {
			w.refuse(err)
		}
	case doSetRate:
		if err := p.consumer.SetRate(float64(max(0, a.N))); err != nil {
			w.refuse(err)
		}
	}
}

// pauseKey pauses a key for a while.
func (p *program) pauseKey(key string, d time.Duration) {
	w := p.w
	err := p.consumer.PauseKey(key)
	if keyed := p.life.settings.Keys > 0; keyed != (err == nil) {
		w.mu.Lock()
		p.life.refusals = append(p.life.refusals, fmt.Sprintf("PauseKey(%q) returned %v, and the consumer has keys: %v", key, err, keyed))
		w.mu.Unlock()
	}
	if err != nil {
		return
	}
	p.switched(key, true)
	w.busy.Go(func() {
		w.sleep(d)
		p.switched(key, false)
		if err := p.consumer.ResumeKey(key); err != nil {
			w.refuse(err)
		}
	})
}

// switched notes a pause or its end.
func (p *program) switched(key string, on bool) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.life.pauses = append(p.life.pauses, pauseSwitch{p.w.now(), key, on})
}

// endDelay makes a message visible whose delay has not ended, where there is such a message: in the queue or the lane.
func (w *world) endDelay(id string) {
	if w.server.EndDelay(w.q.ARN(), id) != nil && w.lane != nil {
		_ = w.server.EndDelay(w.lane.ARN(), id) // it may be hidden, and not delayed
	}
}
