// Package sqlstore keeps idempotency records in a table of a SQL database, through database/sql and
// a driver of the caller's choice.
//
//	store, err := sqlstore.New(db, sqlstore.Postgres, sqlstore.Config{})
//	if err != nil {
//		return err
//	}
//	if err := store.Create(ctx); err != nil { // or run store.Schema() with your migrations
//		return err
//	}
//	once, err := idempotency.New(store, idempotency.Config{})
//
// Each batch is one statement. On PostgreSQL all times are the server's, so the
// clocks of the processes do not matter. SQLite has no server: it uses the times of the processes,
// which share a file and so a machine.
//
// If a handler's effect is in the same database, [Store.CompleteTx] records it in the effect's own
// transaction: both happen or neither, and a process that is killed in between has changed nothing.
package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
)

// Config is where a [Store] keeps its records.
type Config struct {
	// Table is the name of the table, which may be qualified by a schema: letters,
	// digits and underscores. Default: reprise_idempotency.
	Table string
}

// Store is an [idempotency.Store] in a table of a SQL database.
type Store struct {
	db         *sql.DB
	dialect    Dialect
	table      string
	schema     []string
	statements statements
}

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,47}$`)

// New returns a store in a table of db, a database of the given dialect. It makes no call: the
// table has to exist before the first call, see [Store.Create].
func New(db *sql.DB, dialect Dialect, cfg Config) (*Store, error) {
	if cfg.Table == "" {
		cfg.Table = "reprise_idempotency"
	}
	var problems []error
	if db == nil {
		problems = append(problems, errors.New("the database is nil: pass the *sql.DB of sql.Open"))
	}
	if dialect >= dialects {
		problems = append(problems, fmt.Errorf("the dialect is %d: pass Postgres or SQLite", dialect))
	}
	if !tableName.MatchString(cfg.Table) {
		problems = append(problems, fmt.Errorf("Config.Table is %q: set at most 48 letters, digits and underscores, behind a schema and a dot if need be", cfg.Table))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("making a SQL store: %w", errors.Join(problems...))
	}
	s := &Store{db: db, dialect: dialect, table: cfg.Table, statements: texts[dialect].about(cfg.Table)}
	dot := strings.IndexByte(cfg.Table, '.') + 1
	schema, name := cfg.Table[:dot], cfg.Table[dot:]
	replacer := strings.NewReplacer("$table", cfg.Table, "$schema", schema, "$name", name, "$index", name+"_expires")
	for _, statement := range schemas[dialect] {
		s.schema = append(s.schema, replacer.Replace(statement))
	}
	return s, nil
}

// Schema returns the statements that create the table and its index. They may be
// run again.
func (s *Store) Schema() []string { return append([]string(nil), s.schema...) }

// Create runs the statements of [Store.Schema] in a transaction.
func (s *Store) Create(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("creating the idempotency table: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it does nothing after a commit
	if s.dialect == Postgres {
		// CREATE TABLE IF NOT EXISTS fails if another process does the same meanwhile.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(8246135709)"); err != nil {
			return fmt.Errorf("creating the idempotency table: %w", err)
		}
	}
	for _, statement := range s.schema {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("creating the idempotency table: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("creating the idempotency table: %w", err)
	}
	return nil
}

// undefinedTable is the SQLSTATE of PostgreSQL for a table that does not exist.
const undefinedTable = "42P01"

// explain adds the remedy to err if the table does not exist. The drivers' own types are not known
// here.
func (s *Store) explain(err error) error {
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if ok && state.SQLState() == undefinedTable || strings.Contains(err.Error(), "no such table") {
		return fmt.Errorf("%w: the table %s is missing: call Store.Create before the first message, or run the statements of Store.Schema with your migrations", err, s.table)
	}
	return err
}

// row is a member of a batch, as the statements read it. Bytes are in hexadecimal and times in
// milliseconds, which every driver can pass on.
type row struct {
	N         int     `json:"n"`
	Key       string  `json:"key"`
	Token     int64   `json:"token,omitempty"`
	Digest    *string `json:"digest,omitempty"`
	Result    *string `json:"result,omitempty"`
	Lease     int64   `json:"lease,omitempty"`
	Retention int64   `json:"retention,omitempty"`
}

func hexadecimal(b []byte) *string {
	if len(b) == 0 {
		return nil
	}
	text := hex.EncodeToString(b)
	return &text
}

// milliseconds rounds up: a lease is never shorter than requested.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	answers := make([]idempotency.Answer, len(batch))
	rows := make([]row, len(batch))
	for i, r := range batch {
		rows[i] = row{N: i, Key: r.Key, Digest: hexadecimal(r.Digest), Lease: milliseconds(r.Lease), Retention: milliseconds(r.Retention)}
	}
	if err := s.answer(ctx, s.statements.acquire, rows, answers); err != nil {
		return nil, fmt.Errorf("acquiring: %w", s.explain(err))
	}
	if s.statements.look == "" {
		return answers, nil
	}
	rest := rows[:0]
	for i, a := range answers {
		if a.State == 0 {
			rest = append(rest, rows[i])
		}
	}
	if err := s.answer(ctx, s.statements.look, rest, answers); err != nil {
		return nil, fmt.Errorf("looking at claims: %w", s.explain(err))
	}
	for i := range answers {
		if answers[i].State == 0 { // released between the statements
			answers[i].State = idempotency.InProgress
		}
	}
	return answers, nil
}

// answer fills in the answers from the result of a statement about rows.
func (s *Store) answer(ctx context.Context, statement string, rows []row, answers []idempotency.Answer) error {
	if len(rows) == 0 {
		return nil
	}
	args, err := s.args(rows)
	if err != nil {
		return err
	}
	found, err := s.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	positions := make(map[string]int, len(rows))
	for _, r := range rows {
		positions[r.Key] = r.N
	}
	for found.Next() {
		var key string
		var token, wait int64
		var done, mismatched bool
		var result []byte
		if err := found.Scan(&key, &token, &done, &mismatched, &wait, &result); err != nil {
			return err
		}
		answer := idempotency.Answer{State: idempotency.InProgress, Wait: time.Duration(max(wait, 0)) * time.Millisecond}
		switch {
		case token != 0:
			answer = idempotency.Answer{State: idempotency.Acquired, Token: idempotency.Token(token)}
		case mismatched:
			answer = idempotency.Answer{State: idempotency.Mismatched}
		case done:
			answer = idempotency.Answer{State: idempotency.Completed, Result: result}
		}
		answers[positions[key]] = answer
	}
	return found.Err()
}

// args are the arguments of a statement about rows.
func (s *Store) args(rows []row) ([]any, error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	return s.dialect.args(string(text)), nil
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	held, err := s.complete(ctx, s.db, batch)
	if err != nil {
		return nil, fmt.Errorf("completing: %w", s.explain(err))
	}
	return held, nil
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) complete(ctx context.Context, in querier, batch []idempotency.Completion) ([]bool, error) {
	rows := make([]row, len(batch))
	for i, c := range batch {
		rows[i] = row{N: i, Key: c.Key, Token: int64(c.Token), Result: hexadecimal(c.Result), Retention: milliseconds(c.Retention)}
	}
	return s.change(ctx, in, s.statements.complete, rows)
}

// CompleteTx completes the claim of the handler whose context is ctx, with result, in the handler's
// own transaction on the same database: the record and the effect are then committed together. The
// handler commits, and returns nil. If the claim was overtaken, the error is [idempotency.ErrLost]:
// roll back.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	// the effect, in tx
//	if err := store.CompleteTx(ctx, tx, result); err != nil {
//		return err
//	}
//	return tx.Commit()
//
// The record is locked until the transaction ends: make this its last statement.
func (s *Store) CompleteTx(ctx context.Context, tx *sql.Tx, result []byte) error {
	claim, retention, ok := idempotency.ClaimFrom(ctx)
	if !ok {
		return errors.New("completing in a transaction: the context has no claim: pass on the one that the handler was given by the middleware of package idempotency, which has none while the store fails under RunWithoutStore")
	}
	held, err := s.complete(ctx, tx, []idempotency.Completion{{Claim: claim, Result: result, Retention: retention}})
	switch {
	case err != nil:
		return fmt.Errorf("completing in a transaction: %w", s.explain(err))
	case !held[0]:
		return fmt.Errorf("completing key %q in a transaction: %w", claim.Key, idempotency.ErrLost)
	}
	return nil
}

// Release implements [idempotency.Store]. The record stays, so that the next claim's
// token is larger.
func (s *Store) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	rows := make([]row, len(batch))
	for i, c := range batch {
		rows[i] = row{N: i, Key: c.Key, Token: int64(c.Token)}
	}
	held, err := s.change(ctx, s.db, s.statements.release, rows)
	if err != nil {
		return nil, fmt.Errorf("releasing: %w", s.explain(err))
	}
	return held, nil
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	rows := make([]row, len(batch))
	for i, e := range batch {
		rows[i] = row{N: i, Key: e.Key, Token: int64(e.Token), Lease: milliseconds(e.Lease)}
	}
	held, err := s.change(ctx, s.db, s.statements.extend, rows)
	if err != nil {
		return nil, fmt.Errorf("extending: %w", s.explain(err))
	}
	return held, nil
}

// change runs a statement that returns the keys of the rows that it found, and reports for each of
// rows whether it is among them.
func (s *Store) change(ctx context.Context, in querier, statement string, rows []row) ([]bool, error) {
	held := make([]bool, len(rows))
	if len(rows) == 0 {
		return held, nil
	}
	args, err := s.args(rows)
	if err != nil {
		return nil, err
	}
	changed, err := in.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer changed.Close()
	positions := make(map[string]int, len(rows))
	for _, r := range rows {
		positions[r.Key] = r.N
	}
	for changed.Next() {
		var key string
		if err := changed.Scan(&key); err != nil {
			return nil, err
		}
		held[positions[key]] = true
	}
	return held, changed.Err()
}

// purgeAtOnce is how many records one statement removes, so that it holds no lock for long.
const purgeAtOnce = 1000

// Purge removes the records whose time has ended, a thousand at a time until fewer are left, and
// returns how many. Nothing else removes them: call it every hour or so, from any process;
// concurrent calls do not disturb each other.
func (s *Store) Purge(ctx context.Context) (removed int64, err error) {
	for {
		result, err := s.db.ExecContext(ctx, s.statements.purge, s.dialect.args(purgeAtOnce)...)
		if err != nil {
			return removed, fmt.Errorf("purging idempotency records: %w", s.explain(err))
		}
		n, err := result.RowsAffected()
		if err != nil {
			return removed, fmt.Errorf("purging idempotency records: %w", s.explain(err))
		}
		if removed += n; n < purgeAtOnce {
			return removed, nil
		}
	}
}
