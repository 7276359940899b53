package sqldrivers_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// cluster is a PostgreSQL server of the tests' own, behind a Unix socket.
type cluster struct {
	dir string
	bin string // where its programs are
	as  *syscall.SysProcAttr
}

// postgres returns the cluster, or nil with the reason why there is none.
var (
	postgres       *cluster
	postgresAbsent string
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if postgres, err = startPostgres(); err != nil {
			postgresAbsent = err.Error()
			return m.Run()
		}
		defer postgres.stop()
		return m.Run()
	}())
}

// startPostgres makes a cluster in a temporary folder and starts its server.
func startPostgres() (c *cluster, err error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	c = &cluster{bin: bin}
	if c.dir, err = os.MkdirTemp("", "reprise-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(c.dir)
		}
	}()
	if os.Getuid() == 0 { // as which PostgreSQL does not run
		account, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("the tests run as root, and there is no user postgres: %w", err)
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(c.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := c.run("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"); err != nil {
		return nil, err
	}
	options := "-c listen_addresses='' -c fsync=off -c max_connections=200 -c unix_socket_directories='" + c.dir + "'"
	if err := c.run("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-o", options, "start"); err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		return nil, fmt.Errorf("%w\n%s", err, log)
	}
	return c, nil
}

// postgresBin finds the folder of the server's programs, which Debian keeps outside of PATH.
func postgresBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed: initdb was not found")
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// run runs one of the server's programs. Its output goes to a file: the server that
// pg_ctl starts inherits it, and a pipe would not end before the server does.
func (c *cluster) run(program string, args ...string) error {
	out, err := os.CreateTemp(c.dir, program)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.dir, out, out, c.as
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, bytes.TrimSpace(said))
	}
	return nil
}

func (c *cluster) stop() {
	if err := c.run("pg_ctl", "-D", c.data(), "-m", "immediate", "-w", "stop"); err != nil {
		fmt.Fprintln(os.Stderr, "stopping PostgreSQL:", err)
	}
	os.RemoveAll(c.dir)
}

// openPostgres returns the cluster's database, or skips the test.
func openPostgres(t testing.TB) *sql.DB {
	t.Helper()
	if postgres == nil {
		t.Skip("skipped: " + postgresAbsent)
	}
	db, err := sql.Open("pgx", "host="+postgres.dir+" user=postgres dbname=postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var tables atomic.Int32

// table is a name that no other test uses.
func table() sqlstore.Config {
	return sqlstore.Config{Table: fmt.Sprint("records_", tables.Add(1))}
}

func TestPostgres(t *testing.T) {
	idempotencytest.Run(t, idempotencytest.Config{
		Open: func(t *testing.T) idempotency.Store {
			return newStore(t, openPostgres(t), sqlstore.Postgres, table())
		},
	})
}

// TestCreateBesideOthers: processes that start together create the table together.
func TestCreateBesideOthers(t *testing.T) {
	db := openPostgres(t)
	cfg := table()
	errs := make(chan error)
	for range 10 {
		go func() {
			store, err := sqlstore.New(db, sqlstore.Postgres, cfg)
			if err == nil {
				err = store.Create(context.Background())
			}
			errs <- err
		}()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
