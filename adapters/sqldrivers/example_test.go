package sqldrivers_test

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// The effect and its record are in one transaction on PostgreSQL: the process may be killed at any
// point.
func Example_transaction() {
	run := func(ctx context.Context, client reprise.Client, queueURL string) error {
		db, err := sql.Open("pgx", "postgres://localhost/shop")
		if err != nil {
			return err
		}
		store, err := sqlstore.New(db, sqlstore.Postgres, sqlstore.Config{})
		if err != nil {
			return err
		}
		if err := store.Create(ctx); err != nil { // or put store.Schema() among your migrations
			return err
		}
		once, err := idempotency.New(store, idempotency.Config{})
		if err != nil {
			return err
		}
		go purge(ctx, store)
		consumer, err := reprise.New(client, queueURL, once(book(db, store)), reprise.Config{})
		if err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	_ = run // it needs a server and a queue: the tests of this package run book on both databases
}

// purge removes records whose retention has ended, every hour.
func purge(ctx context.Context, store *sqlstore.Store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Hour):
		}
		if _, err := store.Purge(ctx); err != nil {
			slog.WarnContext(ctx, "purging failed; trying again in an hour", "error", err)
		}
	}
}
