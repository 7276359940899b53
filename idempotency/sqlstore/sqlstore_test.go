package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

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
