package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// StorageError says that the data directory cannot be used: it is another
// process's or damaged, or its disk failed. What was acknowledged is there, as far
// as the disk has kept it. Its text says what to do.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }

// Unwrap returns what failed.
func (e *StorageError) Unwrap() error { return e.Err }

// slowOpening is how long an operator is left to wonder why nothing answers. A
// million messages take about two seconds.
const slowOpening = 2 * time.Second

// openServer makes the SQS server, with what its data directory holds.
func (d *Daemon) openServer() error {
	cfg := sqsserver.Config{Region: d.cfg.Region, Account: Account, Seed: d.cfg.Seed, Logger: d.cfg.Logger}
	d.cfg.Serving.apply(&cfg, d.onRequest)
	if !d.durable() {
		d.sqs = sqsserver.New(cfg)
		return nil
	}
	options := d.cfg.Journal
	options.Logger = d.cfg.Logger
	defer time.AfterFunc(slowOpening, func() {
		options.Logger.Info("reading the journal; requests are answered when that is done", "directory", options.Dir)
	}).Stop()
	j, err := journal.Open(options)
	if err != nil {
		return &StorageError{err}
	}
	d.sqs, err = sqsserver.Open(j, cfg)
	if err != nil {
		_ = j.Close() // would say the same again
		return &StorageError{fmt.Errorf("%s: %w", options.Dir, err)}
	}
	d.journal = j
	d.openControl()
	return nil
}

// durable reports whether what is acknowledged is kept on disk.
func (d *Daemon) durable() bool { return d.cfg.Journal.Dir != "" }

// Waiting is how many queues there are, and how many messages are in them.
func (d *Daemon) Waiting() (queues, messages int) {
	infos := d.sqs.Queues()
	for i := range infos {
		messages += infos[i].Visible + infos[i].InFlight + infos[i].Delayed
	}
	return len(infos), messages
}

// closeServer writes what is left to write, and gives the data directory free.
func (d *Daemon) closeServer() error {
	if err := d.sqs.Close(); err != nil {
		return &StorageError{err}
	}
	return nil
}

// failure is why the server acknowledges nothing any more, if it does not. The server
// learns of a failure of its journal with its next commit.
func (d *Daemon) failure() error {
	err := d.sqs.Err()
	if err == nil && d.durable() {
		err = d.journal.Err()
	}
	return err
}

// watchStorage ends the daemon when its journal fails: it could not keep what it
// would acknowledge, and only a new process can tell what the disk has.
func (d *Daemon) watchStorage(ctx context.Context, fail context.CancelCauseFunc) {
	select {
	case <-d.sqs.Failed():
	case <-d.journal.Failed():
	case <-ctx.Done():
		return
	}
	fail(&StorageError{d.failure()})
}
