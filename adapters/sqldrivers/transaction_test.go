package sqldrivers_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// Order is the content of the examples' messages.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// book is a handler whose effect is a row in the database that also keeps the
// idempotency records: both are committed together, so that the process may be
// killed at any point.
func book(db *sql.DB, store *sqlstore.Store) reprise.Handler {
	return reprise.JSON(func(ctx context.Context, o Order) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO bookings VALUES ($1, $2)", o.ID, o.Amount); err != nil {
			return err
		}
		if err := store.CompleteTx(ctx, tx, []byte("booked")); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// bookings is a database of either kind with a table for the effect, and a store in it.
func bookings(t *testing.T, dialect sqlstore.Dialect) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	if dialect == sqlstore.SQLite {
		db := openSQLite(t)
		create(t, db, "CREATE TABLE bookings (id TEXT, amount INTEGER)")
		return db, newStore(t, db, dialect, sqlstore.Config{})
	}
	db := openPostgres(t)
	create(t, db, "DROP TABLE IF EXISTS bookings", "CREATE TABLE bookings (id text, amount bigint)")
	return db, newStore(t, db, dialect, table())
}

func create(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// effects returns how many rows the handler has written.
func effects(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM bookings").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func message(o Order) *reprise.Message {
	body, _ := json.Marshal(o)
	return &reprise.Message{ID: o.ID, OriginID: o.ID, Body: string(body)}
}

var dialectNames = map[string]sqlstore.Dialect{"PostgreSQL": sqlstore.Postgres, "SQLite": sqlstore.SQLite}

// errKilled is the error of a store whose process has been killed.
var errKilled = errors.New("killed")

// killed is a store whose process dies after the handler: nothing is recorded or released.
type killed struct{ idempotency.Store }

func (killed) Complete(context.Context, []idempotency.Completion) ([]bool, error) {
	return nil, errKilled
}

func (killed) Release(context.Context, []idempotency.Claim) ([]bool, error) { return nil, errKilled }

// TestEffectInTheTransactionHappensOnce: the effect happens once, even if the process is killed
// after the commit, before the middleware has recorded anything.
func TestEffectInTheTransactionHappensOnce(t *testing.T) {
	for name, dialect := range dialectNames {
		t.Run(name, func(t *testing.T) {
			db, store := bookings(t, dialect)
			first, err := idempotency.New(killed{store}, idempotency.Config{Lease: time.Second, Patience: -1})
			if err != nil {
				t.Fatal(err)
			}
			order := Order{ID: "order-1", Amount: 10}
			if err := first(book(db, store)).Handle(t.Context(), message(order)); !errors.Is(err, idempotency.ErrUnrecorded) {
				t.Fatalf("the killed process: %v", err)
			}
			var result string
			second, err := idempotency.New(store, idempotency.Config{Duplicate: func(_ context.Context, _ *reprise.Message, r []byte) error {
				result = string(r)
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(1100 * time.Millisecond) // the lease of a claim that was not completed would end
			if err := second(book(db, store)).Handle(t.Context(), message(order)); err != nil {
				t.Errorf("the next process: %v", err)
			}
			if n := effects(t, db); n != 1 || result != "booked" {
				t.Errorf("%d effects, and the duplicate got %q", n, result)
			}
		})
	}
}

// TestOvertakenTransactionIsRolledBack: if another process has taken over the claim, the effect is
// rolled back.
func TestOvertakenTransactionIsRolledBack(t *testing.T) {
	for name, dialect := range dialectNames {
		t.Run(name, func(t *testing.T) {
			db, store := bookings(t, dialect)
			once, err := idempotency.New(store, idempotency.Config{})
			if err != nil {
				t.Fatal(err)
			}
			handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				claim, _, _ := idempotency.ClaimFrom(ctx)
				if held, err := store.Release(ctx, []idempotency.Claim{claim}); err != nil || !held[0] {
					t.Errorf("releasing: %v, %v", held, err)
				}
				if _, err := store.Acquire(ctx, []idempotency.Request{{Key: claim.Key, Lease: time.Hour, Retention: time.Hour}}); err != nil {
					t.Error(err)
				}
				return book(db, store).Handle(ctx, m)
			})
			err = once(handler).Handle(t.Context(), message(Order{ID: "order-1"}))
			if !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("%v, want ErrLost", err)
			}
			if n := effects(t, db); n != 0 {
				t.Errorf("%d effects, want none", n)
			}
		})
	}
}

// TestTransactionOutsideAHandler: outside of a handler there is no claim, and the error says so.
func TestTransactionOutsideAHandler(t *testing.T) {
	db, store := bookings(t, sqlstore.SQLite)
	if err := book(db, store).Handle(t.Context(), message(Order{ID: "order-1"})); err == nil {
		t.Error("no claim, no middleware: no error")
	}
	if n := effects(t, db); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}

// TestPurgeRemovesWhatIsOver: Purge removes records whose retention has ended, and no others.
func TestPurgeRemovesWhatIsOver(t *testing.T) {
	for name, dialect := range dialectNames {
		t.Run(name, func(t *testing.T) {
			_, store := bookings(t, dialect)
			var requests []idempotency.Request
			const over = 2500
			for n := range over {
				requests = append(requests, idempotency.Request{Key: fmt.Sprint("over-", n), Lease: time.Millisecond, Retention: time.Millisecond})
			}
			requests = append(requests,
				idempotency.Request{Key: "lease holds", Lease: time.Hour, Retention: time.Millisecond},
				idempotency.Request{Key: "remembered", Lease: time.Millisecond, Retention: time.Hour})
			if _, err := store.Acquire(t.Context(), requests); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			var removed int64
			var mu sync.Mutex
			var purges sync.WaitGroup
			for range 2 { // side by side
				purges.Go(func() {
					n, err := store.Purge(t.Context())
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					removed += n
				})
			}
			purges.Wait()
			n, err := store.Purge(t.Context()) // what one was about to remove, the other has skipped
			if removed += n; removed != over || err != nil {
				t.Errorf("%d records removed, want %d; %v", removed, over, err)
			}
		})
	}
}

// statements counts the statements that PostgreSQL gets.
type statements struct {
	mu   sync.Mutex
	sent []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, q.SQL)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestBatchIsOneStatement: a batch is one statement, whatever the results of its members are.
func TestBatchIsOneStatement(t *testing.T) {
	openPostgres(t) // or skip
	config, err := pgx.ParseConfig("host=" + postgres.dir + " user=postgres dbname=postgres")
	if err != nil {
		t.Fatal(err)
	}
	sent := &statements{}
	config.Tracer = sent
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	store := newStore(t, db, sqlstore.Postgres, table())

	count := func(what string, call func() error) {
		t.Helper()
		sent.sent = nil
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(sent.sent) != 1 {
			t.Errorf("%s of ten took %d statements, want one", what, len(sent.sent))
		}
	}
	var requests []idempotency.Request
	for n := range 10 {
		requests = append(requests, idempotency.Request{Key: fmt.Sprint(n), Lease: time.Hour, Retention: time.Hour})
	}
	var claims []idempotency.Claim
	var completions []idempotency.Completion
	var extensions []idempotency.Extension
	count("acquiring", func() error {
		answers, err := store.Acquire(t.Context(), requests)
		for n, a := range answers {
			c := idempotency.Claim{Key: fmt.Sprint(n), Token: a.Token}
			claims = append(claims, c)
			completions = append(completions, idempotency.Completion{Claim: c, Retention: time.Hour})
			extensions = append(extensions, idempotency.Extension{Claim: c, Lease: time.Hour})
		}
		return err
	})
	count("acquiring what is in progress", func() error { _, err := store.Acquire(t.Context(), requests); return err })
	count("extending", func() error { _, err := store.Extend(t.Context(), extensions); return err })
	count("completing", func() error { _, err := store.Complete(t.Context(), completions); return err })
	count("acquiring what is completed", func() error { _, err := store.Acquire(t.Context(), requests); return err })
	count("releasing", func() error { _, err := store.Release(t.Context(), claims); return err })
	if len(claims) != 10 {
		t.Errorf("%d claims", len(claims))
	}
}

// TestSchemaMayBeRunAgain: the schema can be run again, and its statements can be run by other
// programs.
func TestSchemaMayBeRunAgain(t *testing.T) {
	for name, dialect := range dialectNames {
		t.Run(name, func(t *testing.T) {
			db, store := bookings(t, dialect)
			create(t, db, store.Schema()...)
			if err := store.Create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
