package repriseotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/reprise-sqs/reprise"
)

// Watch makes gauges of the consumer's [reprise.Status], which is read whenever metrics are
// collected: the messages that it holds, those in backoff, its breakers and its health. Call stop to
// end this. After the consumer has stopped, its health says so. With several watched consumers each
// gauge is the sum over them.
//
// The counts are this process's own. Status.InFlight, the count of the whole queue, is not among
// them: CloudWatch has it.
func (t *Telemetry) Watch(c *reprise.Consumer) (stop func() error, err error) {
	if t.metrics == nil {
		return func() error { return nil }, nil
	}
	if c == nil {
		return nil, errors.New("watching the consumer: it is nil: pass what reprise.New returns")
	}
	w, err := newWatch(t.metrics, c.Status)
	if err != nil {
		return nil, fmt.Errorf("watching the consumer: %w", err)
	}
	return w.Unregister, nil
}

// watch reads one consumer.
type watch struct {
	inFlight metric.Int64ObservableUpDownCounter
	breakers metric.Int64ObservableUpDownCounter
	health   metric.Int64ObservableUpDownCounter
	givingUp metric.Int64ObservableUpDownCounter

	processing, backoff metric.ObserveOption
	ofQueue             metric.ObserveOption
	ofBreaker           values[reprise.BreakerState, metric.ObserveOption]
	ofHealth            values[reprise.Health, metric.ObserveOption]
}

// newWatch reads a consumer, by its Status.
func newWatch(m *metrics, status func() reprise.Status) (_ metric.Registration, err error) {
	in := func(state string) metric.ObserveOption {
		return metric.WithAttributes(m.ofQueue.with(keyState.String(state)).all...)
	}
	w := &watch{processing: in(stateProcessing), backoff: in(stateBackoff), ofQueue: metric.WithAttributes(m.ofQueue.all...)}
	w.ofBreaker = valuesTo(reprise.BreakerRamping, func(s reprise.BreakerState) metric.ObserveOption { return in(s.String()) })
	w.ofHealth = valuesTo(reprise.HealthStopped, func(h reprise.Health) metric.ObserveOption { return in(h.String()) })
	w.inFlight, err = m.meter.Int64ObservableUpDownCounter(metricInFlight, metric.WithUnit("{message}"),
		metric.WithDescription("Messages that this process has in its hands, and those that it has put into backoff."))
	if err != nil {
		return nil, err
	}
	w.breakers, err = m.meter.Int64ObservableUpDownCounter(metricBreakers, metric.WithUnit("{breaker}"),
		metric.WithDescription("Circuit breakers that are not closed, by their state."))
	if err != nil {
		return nil, err
	}
	w.health, err = m.meter.Int64ObservableUpDownCounter(metricHealth, metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers of this process, by the state that they are in."))
	if err != nil {
		return nil, err
	}
	w.givingUp, err = m.meter.Int64ObservableUpDownCounter(metricGivingUp, metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers of this process that give up many messages while hardly one succeeds."))
	if err != nil {
		return nil, err
	}
	return m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		w.observe(o, status())
		return nil
	}, w.inFlight, w.breakers, w.health, w.givingUp)
}

func (w *watch) observe(o metric.Observer, s reprise.Status) {
	o.ObserveInt64(w.inFlight, int64(s.Processing), w.processing)
	o.ObserveInt64(w.inFlight, int64(s.InBackoff), w.backoff)
	states := len(w.ofBreaker.known)
	for _, b := range s.Breakers {
		states = max(states, int(b.State)+1) // a newer library may have more states
	}
	breakers := make([]int64, states)
	for _, b := range s.Breakers {
		breakers[b.State]++
	}
	for state := reprise.BreakerOpen; int(state) < len(breakers); state++ { // closed breakers are not counted
		o.ObserveInt64(w.breakers, breakers[state], w.ofBreaker.of(state))
	}
	givingUp := int64(0)
	if s.GivingUp != nil {
		givingUp = 1
	}
	o.ObserveInt64(w.givingUp, givingUp, w.ofQueue)
	for health := range max(len(w.ofHealth.known), int(s.Health)+1) {
		is := int64(0)
		if reprise.Health(health) == s.Health {
			is = 1
		}
		o.ObserveInt64(w.health, is, w.ofHealth.of(reprise.Health(health)))
	}
}
