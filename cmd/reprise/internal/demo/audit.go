package demo

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// evidence is what the service, the consumer and the queues have recorded at the end.
type evidence struct {
	bodies []string
	// threshold and concurrency are settings of the consumer.
	threshold, concurrency int
	service                []serviceRecord
	consumer               consumerRecords
	waiting                []sqsserver.MessageInfo // in the queue itself
	dead                   []sqsserver.MessageInfo // in the dead-letter queue
}

// deadLetter is one dead letter with the story it carries.
type deadLetter struct {
	event event
	story reprise.Story
}

// finding is one promise with the cases in which it was broken.
type finding struct {
	promise string
	broken  []string // one line each; empty: the promise was kept
}

// audit checks the evidence against the promises.
func (ev evidence) audit() (findings []finding, letters []deadLetter) {
	var accounted, intact, told, early, counted, spared finding
	accounted.promise = "every message is accounted for, once"
	intact.promise = "every body arrived byte for byte"
	told.promise = "every dead letter tells its story"
	early.promise = "no attempt came before it was due"
	counted.promise = "no attempt went uncounted"
	spared.promise = "the outage cost no more attempts than opened the breaker, plus the canaries"

	dead, waiting := make(map[event]int), make(map[event]int)
	for _, m := range ev.waiting {
		if e, ok := infoEvent(m); ok {
			waiting[e]++
		}
	}
	for _, m := range ev.dead {
		e, ok := infoEvent(m)
		if !ok || int(e) >= len(ev.bodies) {
			continue
		}
		dead[e]++
		if m.Body != ev.bodies[e] {
			intact.fails("message %d is not the same in the dead-letter queue", e)
		}
		story, err := storyOf(m)
		switch {
		case err != nil:
			told.fails("message %d: %v", e, err)
		case story.Attempts != ev.consumer.records[e].attempts || story.Error == "":
			told.fails("message %d says %s, after %d, and the error %q", e, plural.Of(story.Attempts, "attempt"), ev.consumer.records[e].attempts, story.Error)
		}
		letters = append(letters, deadLetter{e, story})
	}
	for i, p := range ev.service {
		e, r := event(i), ev.consumer.records[i]
		ends := r.successes + dead[e] + waiting[e]
		if ends != 1 || r.successes == 1 && p.accepted == 0 {
			accounted.fails("message %d: handled %s, accepted by the service %s, %s, %d left in the queue",
				e, plural.Of(r.successes, "time"), plural.Of(p.accepted, "time"), plural.Of(dead[e], "dead letter"), waiting[e])
		}
		if p.mangled > 0 {
			intact.fails("message %d reached the service changed %s", e, plural.Of(p.mangled, "time"))
		}
		if p.early > 0 {
			early.fails("message %d came back %s before its Retry-After", e, plural.Of(p.early, "time"))
		}
		if p.requests > r.runs {
			counted.fails("message %d: the service saw %s, the consumer ran %s", e, plural.Of(p.requests, "request"), plural.Of(r.runs, "time"))
		}
		if r.number != r.attempts {
			counted.fails("message %d: the handler was told of %s, and there were %d", e, plural.Of(r.number, "attempt"), r.attempts)
		}
	}
	if n := ev.consumer.tooEarly(); n > 0 {
		early.fails("%s began before the time that the policy had set", plural.Of(n, "attempt"))
	}
	ev.spared(&spared)
	return []finding{accounted, intact, told, early, counted, spared}, letters
}

// spared compares the outage's cost with what is permitted. After each attempt that ends in
// another way, the breaker needs as many failures as the threshold again to open; and attempts
// that are under way when it opens run to their end.
func (ev *evidence) spared(f *finding) {
	c := ev.cost()
	if most := c.openers + c.canaries; c.attempts > most {
		f.fails("it cost %s: %d opened the breaker, and %d were canaries", plural.Of(c.attempts, "attempt"), c.openers, c.canaries)
	}
	if most := ev.threshold*(c.others+1) + ev.concurrency; c.openers > most {
		f.fails("%s failed before the breaker opened, beside %s: %d should have been enough", plural.Of(c.openers, "attempt"), plural.Of(c.others, "other"), most)
	}
}

func (f *finding) fails(format string, args ...any) {
	f.broken = append(f.broken, fmt.Sprintf(format, args...))
}

// infoEvent returns the number of a message in a queue.
func infoEvent(m sqsserver.MessageInfo) (event, bool) {
	return parseEvent(attribute(m, eventAttribute))
}

func storyOf(m sqsserver.MessageInfo) (reprise.Story, error) {
	var story reprise.Story
	text := attribute(m, reprise.StoryAttribute)
	if text == "" {
		return story, fmt.Errorf("it has no attribute %s", reprise.StoryAttribute)
	}
	err := json.Unmarshal([]byte(text), &story)
	return story, err
}

func attribute(m sqsserver.MessageInfo, name string) string {
	for _, a := range m.Attributes {
		if a.Name == name {
			return a.StringValue
		}
	}
	return ""
}
