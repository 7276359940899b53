package failures_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/process"
)

var postgresFailures = []failure{
	{"PostgreSQL", "stopped under load, fast", "SQLSTATE 57P01", true, func(t *testing.T) error {
		return postgresStopped(t, syscall.SIGINT, func(err error) bool { return strings.Contains(err.Error(), "SQLSTATE 57P01") })
	}},
	{"PostgreSQL", "stopped under load, immediately", "unexpected EOF", true, func(t *testing.T) error {
		return postgresStopped(t, syscall.SIGQUIT, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) })
	}},
	{"PostgreSQL", "stopped", "connect: connection refused", true, func(t *testing.T) error {
		db := openPostgres(t, closedAddr(t))
		return db.PingContext(t.Context())
	}},
	{"PostgreSQL", "cut during a query", "driver: bad connection", true, func(t *testing.T) error {
		return query(t, openPostgres(t, cutting(t, startPostgres(t).Addr, "pg_sleep")), "SELECT pg_sleep(10)")
	}},
	{"PostgreSQL", "too many connections", "SQLSTATE 53300", true, func(t *testing.T) error {
		db := openPostgres(t, startPostgres(t, "-c", "max_connections=4", "-c", "superuser_reserved_connections=0").Addr)
		for {
			conn, err := db.Conn(t.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
		}
	}},
	{"PostgreSQL", "a statement's timeout", "SQLSTATE 57014", true, func(t *testing.T) error {
		return query(t, openPostgres(t, startPostgres(t).Addr), "SET statement_timeout = 10; SELECT pg_sleep(10)")
	}},
	{"PostgreSQL", "a handler's deadline", "context deadline exceeded", true, func(t *testing.T) error {
		db := openPostgres(t, startPostgres(t).Addr)
		if err := db.PingContext(t.Context()); err != nil { // so that there is a connection
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "SELECT pg_sleep(10)")
		return err
	}},
	{"PostgreSQL", "a duplicate key", "SQLSTATE 23505", false, func(t *testing.T) error {
		return query(t, openPostgres(t, startPostgres(t).Addr), "CREATE TEMPORARY TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (1)")
	}},
	{"PostgreSQL", "no rows", "no rows in result set", false, func(*testing.T) error { return sql.ErrNoRows }},
}

var redisFailures = []failure{
	{"Redis", "stopped under load", "connect: connection refused", true, func(t *testing.T) error {
		server := startRedis(t)
		client := openRedis(t, server.Addr)
		return underLoad(t, server.Stop, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, func() error {
			return client.Incr(t.Context(), "n").Err()
		})
	}},
	{"Redis", "loading its data", "LOADING", true, redisReplies("-LOADING Redis is loading the dataset in memory")},
	{"Redis", "a replica after a failover", "READONLY", true, redisReplies("-READONLY You can't write against a read only replica.")},
	{"Redis", "no answer in time", "i/o timeout", true, func(t *testing.T) error {
		client := redis.NewClient(&redis.Options{Addr: accepting(t, func(net.Conn) { <-t.Context().Done() }),
			ReadTimeout: 20 * time.Millisecond, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		defer client.Close()
		return client.Get(t.Context(), "n").Err()
	}},
	{"Redis", "every connection in use", "redis: connection pool timeout", true, func(t *testing.T) error {
		client := redis.NewClient(&redis.Options{Addr: startRedis(t).Addr, PoolSize: 1, PoolTimeout: time.Millisecond, MaxRetries: -1})
		defer client.Close()
		busy := client.Conn()
		defer busy.Close()
		if err := busy.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return client.Get(t.Context(), "n").Err()
	}},
	{"Redis", "cut before the answer, with retries off", "EOF", false, func(t *testing.T) error {
		client := redis.NewClient(&redis.Options{Addr: accepting(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<10)) }),
			MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		defer client.Close()
		return client.Get(t.Context(), "n").Err()
	}},
	{"Redis", "no such key", "redis: nil", false, func(t *testing.T) error {
		return openRedis(t, startRedis(t).Addr).Get(t.Context(), "n").Err()
	}},
	{"Redis", "a wrong type", "WRONGTYPE", false, func(t *testing.T) error {
		client := openRedis(t, startRedis(t).Addr)
		if err := client.LPush(t.Context(), "n", 1).Err(); err != nil {
			t.Fatal(err)
		}
		return client.Get(t.Context(), "n").Err()
	}},
}

// underLoad calls call from eight goroutines, stops the server during the calls, and goes on until
// each goroutine has failed three times. Every failure must count as unavailable. It returns one of
// the expected failures.
func underLoad(t *testing.T, stop func(), wanted func(error) bool, call func() error) error {
	t.Helper()
	const callers, failures = 8, 3
	var (
		mu      sync.Mutex
		calling sync.WaitGroup
		warm    sync.WaitGroup
		found   error
	)
	warm.Add(callers)
	for range callers {
		calling.Go(func() {
			if err := call(); err != nil {
				t.Errorf("before the stop: %v", err)
			}
			warm.Done()
			for failed := 0; failed < failures && t.Context().Err() == nil; {
				err := call()
				if err == nil {
					continue
				}
				failed++
				if !reprise.IsUnavailable(err) {
					t.Errorf("does not count: %s", chain(err))
				}
				mu.Lock()
				if wanted(err) {
					found = err
				}
				mu.Unlock()
			}
		})
	}
	warm.Wait()
	stop()
	calling.Wait()
	if found == nil {
		t.Error("no call failed as wanted")
		return errors.New("none")
	}
	return found
}

func postgresStopped(t *testing.T, how syscall.Signal, wanted func(error) bool) error {
	server := startPostgres(t)
	db := openPostgres(t, server.Addr)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return underLoad(t, func() { server.Signal(how) }, wanted, func() error { return query(t, db, "SELECT pg_sleep(0.02)") })
}

func query(t *testing.T, db *sql.DB, text string) error {
	_, err := db.ExecContext(t.Context(), text)
	return err
}

func openPostgres(t *testing.T, addr string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// startPostgres starts the PostgreSQL of the tests, or skips the test. One runs at a time, because
// making its files takes longer than the rest of the test.
func startPostgres(t *testing.T, options ...string) *process.Process {
	t.Helper()
	c, err := newCluster()
	if errors.Is(err, errNoPostgres) {
		t.Skipf("skipped: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	server := startProcess(t, func(host, port string) *exec.Cmd {
		return c.command("postgres", append([]string{"-D", c.data(), "-h", host, "-p", port, "-k", c.dir, "-c", "fsync=off"}, options...)...)
	})
	t.Cleanup(func() { server.Signal(syscall.SIGINT) }) // without waiting for queries to end
	db := openPostgres(t, server.Addr)
	defer db.Close()
	for db.PingContext(t.Context()) != nil { // it may be recovering from an immediate stop
		if t.Context().Err() != nil {
			t.Fatal("PostgreSQL does not get ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return server
}

// cluster has the files of a PostgreSQL server.
type cluster struct {
	dir string
	bin string // where its programs are
	as  *syscall.SysProcAttr
}

var errNoPostgres = errors.New("PostgreSQL cannot be run here")

var newCluster = sync.OnceValues(func() (*cluster, error) {
	bin := postgresBin()
	if bin == "" {
		return nil, fmt.Errorf("%w: initdb was not found", errNoPostgres)
	}
	c := &cluster{bin: bin}
	var err error
	if c.dir, err = os.MkdirTemp("", "reprise-failures-"); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // as which PostgreSQL does not run
		account, err := user.Lookup("postgres")
		if err != nil {
			return c, fmt.Errorf("%w: the tests run as root, and there is no user postgres: %w", errNoPostgres, err)
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(c.dir, uid, gid); err != nil {
			return c, err
		}
	}
	if out, err := c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		return c, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return c, nil
})

func TestMain(m *testing.M) {
	redis.SetLogger(new(logging.VoidLogger)) // it prints a line for each failure
	code := m.Run()
	if c, _ := newCluster(); c != nil {
		os.RemoveAll(c.dir)
	}
	os.Exit(code)
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, c.as
	return cmd
}

// postgresBin finds the folder of the server's programs, which Debian keeps outside of PATH.
func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// startRedis starts a Redis of the test's own, or skips the test.
func startRedis(t *testing.T) *process.Process {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if program, err = exec.LookPath("valkey-server"); err != nil {
			t.Skip("skipped: neither Redis nor Valkey is installed")
		}
	}
	return startProcess(t, func(host, port string) *exec.Cmd {
		return exec.Command(program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no")
	})
}

func openRedis(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return client
}

// redisReplies calls a server that greets as Redis does, and then sends this reply.
func redisReplies(reply string) func(*testing.T) error {
	return func(t *testing.T) error {
		addr := accepting(t, func(conn net.Conn) {
			for command := make([]byte, 1<<10); ; {
				if _, err := conn.Read(command); err != nil {
					return
				}
				if _, err := io.WriteString(conn, reply+"\r\n"); err != nil {
					return
				}
			}
		})
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		defer client.Close()
		return client.Set(t.Context(), "n", 1, 0).Err()
	}
}

func startProcess(t *testing.T, command func(host, port string) *exec.Cmd) *process.Process {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(addr, command(host, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// cutting forwards connections to addr, and closes a connection when its client sends a text that
// contains at.
func cutting(t *testing.T, addr, at string) string {
	return accepting(t, func(client net.Conn) {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(client, server) }()
		for buf := make([]byte, 4<<10); ; {
			n, err := client.Read(buf)
			if err != nil || bytes.Contains(buf[:n], []byte(at)) {
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}
