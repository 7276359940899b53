package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// The tests on real databases are in adapters/sqldrivers, beside their drivers.

// nowhere is a connector to no database.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("nowhere") }
func (nowhere) Driver() driver.Driver                        { return nil }

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	_, err := sqlstore.New(nil, 9, sqlstore.Config{Table: "records; --"})
	for _, part := range []string{"database is nil", "dialect is 9", `"records; --"`, "letters, digits"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: want it to mention %q", err, part)
		}
	}
}

// TestTableNames: those that need no quotes, qualified or not; the index is named
// after the table.
func TestTableNames(t *testing.T) {
	db := sql.OpenDB(nowhere{})
	defer db.Close()
	for table, index := range map[string]string{"": "reprise_idempotency_expires", "Records_1": "Records_1_expires", "app.records": " records_expires"} {
		store, err := sqlstore.New(db, sqlstore.Postgres, sqlstore.Config{Table: table})
		if err != nil {
			t.Errorf("%q: %v", table, err)
			continue
		}
		schema := strings.Join(store.Schema(), "\n")
		if !strings.Contains(schema, index) || !strings.Contains(schema, "EXISTS "+table) || strings.Contains(schema, "$") {
			t.Errorf("the schema of %q:\n%s", table, schema)
		}
	}
	for _, table := range []string{"1records", "a.b.c", "a b", `"a"`, ".a", "a.", "a-b", strings.Repeat("a", 49)} {
		if _, err := sqlstore.New(db, sqlstore.Postgres, sqlstore.Config{Table: table}); err == nil {
			t.Errorf("%q was accepted", table)
		}
	}
}

// TestErrorsSayWhatWasTried, beside what went wrong.
func TestErrorsSayWhatWasTried(t *testing.T) {
	db := sql.OpenDB(nowhere{})
	defer db.Close()
	store, err := sqlstore.New(db, sqlstore.SQLite, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context()); err == nil || !strings.Contains(err.Error(), "creating the idempotency table: nowhere") {
		t.Error(err)
	}
	if _, err := store.Purge(t.Context()); err == nil || !strings.Contains(err.Error(), "purging idempotency records: nowhere") {
		t.Error(err)
	}
}

// answering is a connector to a database that answers everything with an error.
type answering struct{ err error }

func (a answering) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a answering) Driver() driver.Driver                        { return nil }
func (a answering) Prepare(string) (driver.Stmt, error)          { return nil, a.err }
func (a answering) Close() error                                 { return nil }
func (a answering) Begin() (driver.Tx, error)                    { return nil, a.err }

// stated is an error as PostgreSQL's drivers have them.
type stated struct{ state string }

func (s stated) Error() string    { return "ERROR: SQLSTATE " + s.state }
func (s stated) SQLState() string { return s.state }

// TestMissingTable: whatever is called first says how the table comes to be. Other errors
// are passed on as they are.
func TestMissingTable(t *testing.T) {
	const remedy = "the table app.records is missing: call Store.Create"
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{stated{"42P01"}, true},
		{errors.New("SQL logic error: no such table: app.records (1)"), true},
		{stated{"42501"}, false},
		{errors.New("no such host"), false},
	} {
		db := sql.OpenDB(answering{tt.err})
		store, err := sqlstore.New(db, sqlstore.Postgres, sqlstore.Config{Table: "app.records"})
		if err != nil {
			t.Fatal(err)
		}
		claim := idempotency.Claim{Key: "key", Token: 1}
		for name, call := range map[string]func() error{
			"Acquire": func() error {
				_, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "key", Lease: time.Second, Retention: time.Hour}})
				return err
			},
			"Complete": func() error {
				_, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: claim, Retention: time.Hour}})
				return err
			},
			"Release": func() error { _, err := store.Release(t.Context(), []idempotency.Claim{claim}); return err },
			"Extend": func() error {
				_, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: claim, Lease: time.Second}})
				return err
			},
			"Purge": func() error { _, err := store.Purge(t.Context()); return err },
		} {
			if err := call(); !errors.Is(err, tt.err) || strings.Contains(err.Error(), remedy) != tt.want {
				t.Errorf("%s: %v, want the remedy: %v", name, err, tt.want)
			}
		}
		_ = db.Close() // nothing to close
	}
}
