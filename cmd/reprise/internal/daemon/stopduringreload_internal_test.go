package daemon

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestStopDuringAReload: a stop that comes while a replaced consumer drains waits for it too. Else its handler
// would be cut off by the end of the program, and its message would run again.
func TestStopDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		w, err := NewWorker(WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		begun, finish := make(chan struct{}, 1), make(chan struct{})
		consume := func(settings string) []Consume {
			return []Consume{{Client: q.Client(), QueueURL: q.URL(), Settings: settings, Config: reprise.Config{Logger: slog.New(slog.DiscardHandler)},
				Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					begun <- struct{}{}
					<-finish
					return nil
				}),
			}}
		}
		if err := w.Consume(consume("before")); err != nil {
			t.Fatal(err)
		}
		drain, ended, replaced := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() { ended <- w.Run(t.Context(), drain) }()
		q.Send("work")
		<-begun
		go func() { replaced <- w.Consume(consume("after")) }()
		synctest.Wait()
		close(drain)
		time.Sleep(5 * time.Second) // less than the stop budget
		select {
		case err := <-ended:
			t.Errorf("the worker ended (%v) while a handler of the replaced consumer was at work", err)
		default:
		}
		close(finish)
		for _, err := range []error{<-replaced, <-ended} {
			if err != nil {
				t.Error(err)
			}
		}
		if left := q.Messages(); len(left) != 0 {
			t.Errorf("%d messages are left of one whose handler succeeded", len(left))
		}
		if all := w.all(); len(all) != 0 {
			t.Errorf("%d consumers began after the stop", len(all))
		}
	})
}
