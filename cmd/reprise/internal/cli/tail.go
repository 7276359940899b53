package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

func (a *app) tail() *cobra.Command {
	var f controlFlags
	var types []string
	cmd := &cobra.Command{
		Use:   "tail [QUEUE...]",
		Short: "Show the events of a running process as they happen: attempts, circuit breakers",
		Long: `Show each attempt of a running process at its end, and each change of a circuit breaker, of
all queues or of those that are named, until Ctrl-C. A process that does more than can be
shown leaves events out, and tells how many.

` + aboutControl,
		Example: `  reprise tail
  reprise tail orders -o json | jq 'select(.outcome == "retry")'
  reprise tail --type breaker`,
	}
	cmd.RunE = run(func(queues []string) error { return a.runTail(&f, queues, types) })
	f.register(cmd)
	cmd.Flags().StringSliceVar(&types, "type", []string{admin.EventAttempt, admin.EventBreaker}, "`types` of events: attempt, settled, breaker, job")
	return cmd
}

func (a *app) runTail(f *controlFlags, queues, types []string) error {
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-a.drain:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	as := f.output.as()
	err = client.Watch(ctx, queues, types, func(name string, data json.RawMessage) error {
		if as != asText {
			event := map[string]any{}
			if err := json.Unmarshal(data, &event); err != nil {
				return err
			}
			event["event"] = name
			return a.printValue(as, event)
		}
		text, err := eventLine(name, data)
		if err == nil {
			_, err = fmt.Fprintln(a.stdout, terminal.Line(text, maxAPIText))
		}
		return err
	})
	return stoppedOr(ctx, err)
}

// eventLine is an event for people.
func eventLine(name string, data []byte) (text string, err error) {
	at := func(t time.Time) string { return t.Local().Format(time.TimeOnly) }
	switch name {
	case admin.EventAttempt:
		var e admin.AttemptEvent
		err = json.Unmarshal(data, &e)
		text = fmt.Sprintf("%s %s %s attempt %d took %v: %s", at(e.At), e.Queue, e.Message, e.Attempt, time.Duration(e.DurationMS*float64(time.Millisecond)).Round(time.Millisecond), e.Outcome)
		text += detail(e.Due, e.Error)
	case admin.EventSettled:
		var e admin.SettledEvent
		err = json.Unmarshal(data, &e)
		text = fmt.Sprintf("%s %s %s settled: %s", at(e.At), e.Queue, e.Message, e.Outcome) + detail(e.Due, e.Error)
	case admin.EventBreaker:
		var e admin.BreakerEvent
		err = json.Unmarshal(data, &e)
		whose := "the breaker"
		if e.Key != "" {
			whose += " of key " + e.Key
		}
		text = fmt.Sprintf("%s %s %s is %s, %s held", at(e.At), e.Queue, whose, e.State, plural.Of(e.Held, "message"))
		if !e.NextProbe.IsZero() {
			text += ", next probe at " + at(e.NextProbe)
		}
		text += detail(time.Time{}, e.Error)
	case admin.EventJob:
		var j admin.Job
		err = json.Unmarshal(data, &j)
		text = fmt.Sprintf("%s %s %s %s is %s, %d done of %s", at(time.Now()), j.Queue, j.ID, j.Action, j.State, j.Done, plural.Of(j.Matched, "message")) + detail(time.Time{}, j.Problem)
	case admin.EventLost:
		var e admin.LostEvent
		err = json.Unmarshal(data, &e)
		text = fmt.Sprintf("%s were left out", plural.Of(e.Events, "event"))
	}
	return text, err
}

// detail is when a message is due again, and its error.
func detail(due time.Time, problem string) (text string) {
	if !due.IsZero() {
		text = ", due " + due.Local().Format(time.DateTime)
	}
	if problem != "" {
		text += ": " + problem
	}
	return text
}
