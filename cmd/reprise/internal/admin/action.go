package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Keys is the body of pause, resume and probe.
type Keys struct {
	// Keys are those that messages have by the consumer's setting. Default: the whole consumer is
	// meant.
	Keys []string `json:"keys,omitempty"`
}

func (k Keys) check() error {
	if k.Keys != nil && len(k.Keys) == 0 {
		return errors.New("keys is empty: name some, or leave it out for the whole consumer")
	}
	return nil
}

// Wake is the body of wake.
type Wake struct {
	Keys
	// Messages are the ids of single messages to wake. Default: all of the keys.
	Messages []string `json:"messages,omitempty"`
}

// maxWoken is how many messages one request names: each is looked for, and goes before all others.
const maxWoken = 1000

func (w Wake) check() error {
	switch {
	case w.Messages == nil:
		return w.Keys.check()
	case w.Keys.Keys != nil:
		return errors.New("it has keys and messages: send one of them")
	case len(w.Messages) == 0 || len(w.Messages) > maxWoken:
		return fmt.Errorf("messages has %d ids: name 1 to %d, or leave it out for all", len(w.Messages), maxWoken)
	}
	return nil
}

// Concurrency is how many handlers may run at once.
type Concurrency struct {
	Concurrency int `json:"concurrency"`
}

// Rate is how many handlers may start a second; 0: any number.
type Rate struct {
	Rate *float64 `json:"rate"`
}

func (r Rate) check() error {
	if r.Rate == nil {
		return errors.New("rate is missing: send how many handlers may start a second, 0 for any number")
	}
	return nil
}

// Done is the reply to an action.
type Done struct {
	// Consumer is the consumer afterwards.
	Consumer Consumer `json:"consumer"`
	// Woken is how many messages wake makes visible, Probing how many breakers probe.
	Woken   int `json:"woken,omitempty"`
	Probing int `json:"probing,omitempty"`
	// NotWoken are the ids that wake was given, of messages that it cannot make visible.
	NotWoken []string `json:"not_woken,omitempty"`
	// CopiesLeft is how many copies of the process's own queues wake has found that wait with a delay, and left so.
	CopiesLeft int `json:"copies_left,omitempty"`
}

// act makes an operation that calls do for a consumer. The log gets one line for each call, also
// for one that fails.
func act[T any](a *API, name string, do func(context.Context, *Running, T) (Done, error)) func(http.ResponseWriter, *http.Request) error {
	return answer(func(r *http.Request) (done Done, err error) {
		var how T
		if err := readBody(r, &how); err != nil {
			return done, err
		}
		c, err := a.find(r.PathValue("queue"))
		if err != nil {
			return done, err
		}
		if done, err = do(r.Context(), &c, how); err != nil {
			err = problem(http.StatusBadRequest, "bad-request", "%s", strings.TrimPrefix(err.Error(), "reprise: "))
		}
		a.audit(r, name, c.URL, how, err)
		done.Consumer = consumerOf(c)
		return done, err
	})
}

func pause(_ context.Context, c *Running, k Keys) (Done, error) {
	return Done{}, eachKey(k, c.Pause, c.PauseKey)
}

func resume(_ context.Context, c *Running, k Keys) (Done, error) {
	return Done{}, eachKey(k, c.Resume, c.ResumeKey)
}

func eachKey(k Keys, whole func(), one func(string) error) error {
	if k.Keys == nil {
		whole()
	}
	for _, key := range k.Keys {
		if err := one(key); err != nil { // of the first already
			return fmt.Errorf("key %q: messages of this queue have no keys: set --outage-key of reprise run, or outage-key in its configuration file", key)
		}
	}
	return nil
}

func setConcurrency(_ context.Context, c *Running, to Concurrency) (Done, error) {
	return Done{}, c.SetConcurrency(to.Concurrency)
}

func setRate(_ context.Context, c *Running, to Rate) (Done, error) {
	return Done{}, c.SetRate(*to.Rate)
}

func (a *API) wake(ctx context.Context, c *Running, w Wake) (done Done, err error) {
	if w.Messages == nil {
		done.Woken = c.Wake(w.Keys.Keys...)
		if w.Keys.Keys == nil { // which key a copy has is not known
			var retried []string
			retried, done.CopiesLeft, err = a.retryCopies(ctx, c, func(string) bool { return true })
			done.Woken += len(retried)
		}
		return done, err
	}
	asleep := make(map[string]bool)
	for _, id := range w.Messages {
		if !c.WakeMessage(id) {
			asleep[id] = true
		}
	}
	if len(asleep) > 0 {
		var retried []string
		retried, _, err = a.retryCopies(ctx, c, func(id string) bool { return asleep[id] })
		for _, id := range retried {
			delete(asleep, id)
		}
	}
	for _, id := range w.Messages {
		if asleep[id] {
			done.NotWoken = append(done.NotWoken, id)
		} else {
			done.Woken++
		}
	}
	return done, err
}

func probe(_ context.Context, c *Running, k Keys) (Done, error) {
	return Done{Probing: c.Probe(k.Keys...)}, nil
}

// readBody reads the body of a request: one JSON value, without members that into does not have.
func readBody[T any](r *http.Request, into *T) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("it has text after its JSON value")
		}
	}
	if err == nil {
		if checked, ok := any(*into).(interface{ check() error }); ok {
			err = checked.check()
		}
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return problem(http.StatusRequestEntityTooLarge, "too-large", "the body has more than %d bytes: no request needs so many", maxBody)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty: send at least {}")
	}
	if err != nil {
		return problem(http.StatusBadRequest, "bad-request", "the body cannot be used: %v", err)
	}
	return nil
}
