package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise/adapters/redisstore"
)

// server is a Redis server of the tests' own, in a temporary folder.
type server struct {
	dir string
	cmd *exec.Cmd
}

// program is the server's program; absent is the reason why there is none.
var program, absent = findProgram()

func findProgram() (path, absent string) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, ""
		}
	}
	return "", "neither Redis nor Valkey is installed: redis-server and valkey-server were not found"
}

// shared is the server behind a Unix socket that tests share.
var shared *server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if absent != "" {
			return m.Run()
		}
		var err error
		if shared, err = start("--port", "0", "--unixsocket", "socket"); err != nil {
			fmt.Fprintln(os.Stderr, "starting Redis:", err)
			return 1
		}
		defer shared.stop()
		if err := ready(shared.options()); err != nil {
			fmt.Fprintln(os.Stderr, "starting Redis:", err)
			return 1
		}
		return m.Run()
	}())
}

// start starts a server that keeps nothing on disk.
func start(options ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "reprise-redis-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	s.cmd = exec.Command(program, append([]string{"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "log"}, options...)...)
	s.cmd.Dir = dir
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	os.RemoveAll(s.dir)
}

// ready waits until a server answers.
func ready(options *redis.Options) error {
	client := redis.NewClient(options)
	defer client.Close()
	return within10s(func() error { return client.Ping(context.Background()).Err() })
}

// options are those of a client of the shared server.
func (s *server) options() *redis.Options {
	return &redis.Options{Network: "unix", Addr: filepath.Join(s.dir, "socket"), ContextTimeoutEnabled: true}
}

// connect returns a client of the shared server, or skips the test.
func connect(t testing.TB, hooks ...redis.Hook) *redis.Client {
	t.Helper()
	needProgram(t)
	client := redis.NewClient(shared.options())
	for _, hook := range hooks {
		client.AddHook(hook)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func needProgram(t testing.TB) {
	t.Helper()
	if absent != "" {
		t.Skip("skipped: " + absent)
	}
}

var errNotYet = errors.New("not yet")

// eventually repeats a check until it returns no error.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := within10s(check); err != nil {
		t.Fatalf("%s: not within ten seconds: %v", what, err)
	}
}

func within10s(check func() error) (err error) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

var prefixes atomic.Int32

// newPrefix returns a prefix that no other test and no other run of this test uses.
func newPrefix() string { return "test" + strconv.Itoa(int(prefixes.Add(1))) + ":" }

// newStore returns a store under a prefix of its own.
func newStore(t testing.TB, client redisstore.Client) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(client, redisstore.Config{Prefix: newPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
