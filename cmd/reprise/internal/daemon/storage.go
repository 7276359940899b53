package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// StorageError is the error of a data directory that cannot be used: another process uses
// it, it is damaged, or its disk failed. What was acknowledged is still there, as far as
// the disk has kept it. The text says what to do.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }

// Unwrap returns what failed.
func (e *StorageError) Unwrap() error { return e.Err }

// slowOpening is the time after which a log line explains why the server does not answer
// yet. Reading a million messages takes about two seconds.
const slowOpening = 2 * time.Second

// openServer makes the SQS server, with the messages of its data directory.
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
		options.Logger.Info("reading the journal; requests will be answered when this is done", "directory", options.Dir)
	}).Stop()
	j, err := journal.Open(options)
	if err != nil {
		return &StorageError{err}
	}
	d.sqs, err = sqsserver.Open(j, cfg)
	if err != nil {
		_ = j.Close() // its error would repeat this one
		return &StorageError{fmt.Errorf("%s: %w", options.Dir, err)}
	}
	d.journal = j
	d.openControl()
	return nil
}

// durable reports whether messages are kept on disk.
func (d *Daemon) durable() bool { return d.cfg.Journal.Dir != "" }

// Waiting returns how many queues there are, and how many messages are in them.
func (d *Daemon) Waiting() (queues, messages int) {
	infos := d.sqs.Queues()
	for i := range infos {
		messages += infos[i].Visible + infos[i].InFlight + infos[i].Delayed
	}
	return len(infos), messages
}

// closeServer writes what is not written yet, and releases the data directory.
func (d *Daemon) closeServer() error {
	if err := d.sqs.Close(); err != nil {
		return &StorageError{err}
	}
	return nil
}

// failure returns why the server acknowledges nothing any more; nil if it does. The
// journal is asked too, because the server learns of its failure only at the next commit.
func (d *Daemon) failure() error {
	err := d.sqs.Err()
	if err == nil && d.durable() {
		err = d.journal.Err()
	}
	return err
}

// watchStorage ends the daemon when its journal fails: nothing could be acknowledged any
// more, and only a new process can find out what the disk has kept.
func (d *Daemon) watchStorage(ctx context.Context, fail context.CancelCauseFunc) {
	select {
	case <-d.sqs.Failed():
	case <-d.journal.Failed():
	case <-ctx.Done():
		return
	}
	fail(&StorageError{d.failure()})
}
