package sqldrivers_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// openSQLite returns a database in a file of the test's own.
func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	name := filepath.Join(t.TempDir(), "records.db")
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newStore returns a store with its table created.
func newStore(t *testing.T, db *sql.DB, dialect sqlstore.Dialect, cfg sqlstore.Config) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.New(db, dialect, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSQLite(t *testing.T) {
	idempotencytest.Run(t, idempotencytest.Config{
		Open: func(t *testing.T) idempotency.Store {
			return newStore(t, openSQLite(t), sqlstore.SQLite, sqlstore.Config{})
		},
		Virtual: true,
		Games:   20,
	})
}

// TestSQLiteInASchema: a table may be qualified by the name of a database, where an index is named otherwise than in
// other SQL.
func TestSQLiteInASchema(t *testing.T) {
	db := openSQLite(t)
	store := newStore(t, db, sqlstore.SQLite, sqlstore.Config{Table: "main.records"})
	claim := idempotency.Claim{Key: "key"}
	for _, want := range []idempotency.State{idempotency.Acquired, idempotency.InProgress} {
		answers, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "key", Lease: time.Minute, Retention: time.Hour}})
		if err != nil || answers[0].State != want {
			t.Fatalf("%v, %v; want %v", answers, err, want)
		}
		claim.Token = max(claim.Token, answers[0].Token)
	}
	if held, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: claim, Retention: time.Hour}}); err != nil || !held[0] {
		t.Errorf("completing: %v, %v", held, err)
	}
	if _, err := store.Release(t.Context(), []idempotency.Claim{claim}); err != nil {
		t.Errorf("releasing: %v", err)
	}
	if _, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: claim, Lease: time.Minute}}); err != nil {
		t.Errorf("extending: %v", err)
	}
	if _, err := store.Purge(t.Context()); err != nil {
		t.Errorf("purging: %v", err)
	}
	for _, statement := range store.Schema() { // as with migrations
		if _, err := db.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	var on string
	if err := db.QueryRow("SELECT tbl_name FROM main.sqlite_schema WHERE name = 'records_expires'").Scan(&on); err != nil || on != "records" {
		t.Errorf("the index is on %q, %v", on, err)
	}
}

// TestSQLiteWithoutItsTable: the error of the first message says how to create the table.
func TestSQLiteWithoutItsTable(t *testing.T) {
	store, err := sqlstore.New(openSQLite(t), sqlstore.SQLite, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Acquire(t.Context(), []idempotency.Request{{Key: "key", Lease: time.Minute, Retention: time.Hour}})
	if err == nil || !strings.Contains(err.Error(), "the table reprise_idempotency is missing: call Store.Create") {
		t.Errorf("without the table: %v", err)
	}
}
