package dashboard

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

var workersPage = page{
	path: Path + "workers", template: "workers", nav: "Workers", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		now, before, err := v.samples.latest(v.Context())
		if err != nil {
			return "", nil, err
		}
		return "Workers", newWorkers(now, before), nil
	},
	actions: map[string]func(*view) (string, error){
		"pause": func(v *view) (string, error) {
			return v.act("pause", v.keys(), "%s is paused: it receives nothing more, and what runs ends.")
		},
		"resume": func(v *view) (string, error) { return v.act("resume", v.keys(), "%s goes on.") },
		"wake": func(v *view) (string, error) {
			done, err := v.api.Act(v.Context(), v.PostFormValue("queue"), "wake", v.keys())
			v.samples.forget()
			said := fmt.Sprintf("%s: %s to be retried, as fast as the handlers can work them off.", done.Consumer.Queue, plural.Of(done.Woken, "message"))
			if left := done.LeftText(); left != "" {
				said += " " + left + "."
			}
			return said, err
		},
		"probe": func(v *view) (string, error) {
			done, err := v.api.Act(v.Context(), v.PostFormValue("queue"), "probe", v.keys())
			v.samples.forget()
			if done.Probing == 0 {
				return done.Consumer.Queue + ": there is nothing to probe: no breaker is open.", err
			}
			return fmt.Sprintf("%s: %s started. If the target answers, messages are delivered again; if not, the breaker stays open, with the new error.", done.Consumer.Queue, plural.Of(done.Probing, "probe")), err
		},
		"concurrency": func(v *view) (string, error) {
			n, err := strconv.Atoi(v.PostFormValue("concurrency"))
			if err != nil {
				return "", errors.New("The concurrency is not a whole number: give how many handlers may run at once.")
			}
			return v.act("concurrency", admin.Concurrency{Concurrency: n}, "%s: at most "+plural.Of(n, "handler")+" at once from now on, until the process ends or reads its settings again.")
		},
		"rate": func(v *view) (string, error) {
			rate, err := strconv.ParseFloat(v.PostFormValue("rate"), 64)
			if err != nil {
				return "", errors.New("The rate is not a number: give how many handlers may start a second, 0 for any number.")
			}
			if rate == 0 {
				return v.act("rate", admin.Rate{Rate: &rate}, "%s: any number of handlers may start a second from now on.")
			}
			return v.act("rate", admin.Rate{Rate: &rate}, "%s: the rate is "+v.PostFormValue("rate")+"/s from now on.")
		},
	},
}

// keys are those of a form; none: the whole consumer is meant.
func (v *view) keys() admin.Keys {
	if err := v.ParseForm(); err != nil || len(v.PostForm["key"]) == 0 {
		return admin.Keys{}
	}
	return admin.Keys{Keys: v.PostForm["key"]}
}

// act has something done to the consumer of a form, and says so with its queue's name.
func (v *view) act(action string, how any, said string) (string, error) {
	done, err := v.api.Act(v.Context(), v.PostFormValue("queue"), action, how)
	if err != nil {
		return "", err
	}
	v.samples.forget()
	return fmt.Sprintf(said, done.Consumer.Queue), nil
}

// workers are the consumers of the process.
type workers struct {
	At        time.Time
	Consumers []worker
}

// worker is a consumer.
type worker struct {
	admin.ConsumerStats
	At      time.Time
	Key     string // that names the queue in links
	Level   level
	Trouble []admin.Trouble
	PerMinute,
	CallsPerMessage *float64
}

func newWorkers(now, before *admin.Stats) *workers {
	ws, keys := &workers{At: now.At}, keysOf(admin.Rows(now, nil))
	for i := range now.Consumers {
		c := worker{ConsumerStats: now.Consumers[i], At: now.At}
		if c.Key = keys[c.Consumer.URL]; c.Key == "" { // the row has the server's own URL of the queue
			c.Key = c.Consumer.Queue
		}
		c.Trouble = c.Consumer.Troubles(now.At)
		if len(c.Trouble) > 0 {
			c.Level = levelOfState(c.Consumer.State())
		}
		if c.Cost.Messages > 0 {
			per := float64(c.Cost.Requests) / float64(c.Cost.Messages)
			c.CallsPerMessage = &per
		}
		if old := consumerAt(before, c.Consumer.URL); old != nil {
			if c.PerMinute = perSecond(c.Consumer.Counts.Attempts-old.Counts.Attempts, now.At.Sub(before.At).Seconds()); c.PerMinute != nil {
				*c.PerMinute *= 60
			}
		}
		ws.Consumers = append(ws.Consumers, c)
	}
	return ws
}

// Leased is how many messages the consumer holds.
func (w *worker) Leased() int { return w.Consumer.Running + w.Consumer.Waiting + w.Consumer.Settling }

// Outage and Next say what a breaker does, as the commands do.
func (w *worker) Outage(b admin.Breaker) string { return b.Outage(w.At) }

func (w *worker) Next(b admin.Breaker) string { return b.Next(w.At, "") }
