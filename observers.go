package reprise

import (
	"context"

	"github.com/reprise-sqs/reprise/plan"
)

// Observers returns an observer that calls all of them in order: for example your own, and
// one that makes metrics. Each Starting gets the context that the one before returned; the
// last trail that is not empty is used. If one panics, the others are called all the same.
func Observers(all ...Observer) Observer {
	return Observer{
		Received: tellAll(all, func(o Observer) func(context.Context, Received) { return o.Received }),
		Starting: startAll(all),
		Attempt:  tellAll(all, func(o Observer) func(context.Context, Attempt) { return o.Attempt }),
		Settled:  tellAll(all, func(o Observer) func(context.Context, Settled) { return o.Settled }),
		Call:     tellAll(all, func(o Observer) func(context.Context, Call) { return o.Call }),
		Expiring: tellAll(all, func(o Observer) func(context.Context, Expiring) { return o.Expiring }),
		Finding:  tellAll(all, func(o Observer) func(context.Context, plan.Finding) { return o.Finding }),
		Outage:   tellAll(all, func(o Observer) func(context.Context, OutageEvent) { return o.Outage }),
		GivingUp: tellAll(all, func(o Observer) func(context.Context, GivingUp) { return o.GivingUp }),
		Stopped:  stopAll(all),
	}
}

// tellAll returns a func that calls the observers' funcs for an event; nil if they have none,
// so that an event without a func costs nothing.
func tellAll[E any](all []Observer, event func(Observer) func(context.Context, E)) func(context.Context, E) {
	var told []func(context.Context, E)
	for _, o := range all {
		if f := event(o); f != nil {
			told = append(told, f)
		}
	}
	switch len(told) {
	case 0:
		return nil
	case 1:
		return told[0]
	}
	return func(ctx context.Context, e E) {
		each(len(told), func(i int) { told[i](ctx, e) })
	}
}

func startAll(all []Observer) func(context.Context, *Message) (context.Context, string) {
	var told []func(context.Context, *Message) (context.Context, string)
	for _, o := range all {
		if o.Starting != nil {
			told = append(told, o.Starting)
		}
	}
	if len(told) == 0 {
		return nil
	}
	return func(ctx context.Context, m *Message) (_ context.Context, trail string) {
		each(len(told), func(i int) {
			its, left := told[i](ctx, m)
			if its != nil {
				ctx = its
			}
			if left != "" {
				trail = left
			}
		})
		return ctx, trail
	}
}

func stopAll(all []Observer) func(Report) {
	stopped := tellAll(all, func(o Observer) func(context.Context, Report) {
		if o.Stopped == nil {
			return nil
		}
		return func(_ context.Context, r Report) { o.Stopped(r) }
	})
	if stopped == nil {
		return nil
	}
	return func(r Report) { stopped(context.Background(), r) }
}
