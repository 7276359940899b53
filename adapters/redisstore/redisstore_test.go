package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise/adapters/redisstore"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	client := connect(t)
	idempotencytest.Run(t, idempotencytest.Config{
		Open: func(t *testing.T) idempotency.Store { return newStore(t, client) },
	})
}

// ask acquires one key.
func ask(t testing.TB, s idempotency.Store, r idempotency.Request) idempotency.Answer {
	t.Helper()
	answers, err := s.Acquire(t.Context(), []idempotency.Request{r})
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

// TestTimesAreTheServers: claims end by the clock of the server, also where ours stands still in
// the year 2000, in a bubble.
func TestTimesAreTheServers(t *testing.T) {
	needProgram(t)
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(shared.options())
		defer client.Close()
		store := newStore(t, client)
		began := time.Now()
		var first idempotency.Answer
		waits := 0
		for try := 0; waits == 0; try++ { // on a busy machine a lease may end before it is looked at
			request := idempotency.Request{Key: fmt.Sprint("key ", try), Lease: 300 * time.Millisecond, Retention: time.Hour}
			first = ask(t, store, request)
			again := ask(t, store, request)
			for ; again.State == idempotency.InProgress; again = ask(t, store, request) {
				waits++
			}
			if first.State != idempotency.Acquired || again.State != idempotency.Acquired {
				t.Fatalf("the key was %v, then %v after %d times in progress", first.State, again.State, waits)
			}
		}
		if tokenTime := time.UnixMicro(int64(first.Token)); tokenTime.Year() < 2026 {
			t.Errorf("the token was made at %v, which is not the server's time", tokenTime)
		}
		if passed := time.Since(began); passed != 0 {
			t.Errorf("%v passed in the bubble: the store waits by the process's clock", passed)
		}
	})
}

// TestServerDropsRecords: the server drops records when their retention ends: those of completed
// keys, of released keys, and of claims whose process died.
func TestServerDropsRecords(t *testing.T) {
	client := connect(t)
	prefix := newPrefix()
	store, err := redisstore.New(client, redisstore.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	const short = 200 * time.Millisecond
	request := func(key string, retention time.Duration) idempotency.Claim {
		a := ask(t, store, idempotency.Request{Key: key, Lease: short, Retention: retention})
		return idempotency.Claim{Key: key, Token: a.Token}
	}
	done := request("completed", time.Hour)
	if held, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: done, Result: []byte("result"), Retention: 2 * short}}); err != nil || !held[0] {
		t.Fatalf("completing: %v, %v", held, err)
	}
	if _, err := store.Release(t.Context(), []idempotency.Claim{request("released", 2*short)}); err != nil {
		t.Fatal(err)
	}
	request("dead", 2*short)
	for extended := false; !extended; { // it may have gone before that, on a busy machine
		kept := request("kept", 2*short)
		held, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: kept, Lease: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		extended = held[0]
	}
	eventually(t, "one record is left", func() error {
		keys, err := client.Keys(t.Context(), prefix+"*").Result()
		if err == nil && cmp.Diff([]string{prefix + "kept"}, keys) != "" {
			err = errNotYet
		}
		return err
	})
}

// TestTokensGrowThoughTheClockDoesNot: tokens grow while the record exists, also after a failover
// to a server whose clock is behind.
func TestTokensGrowThoughTheClockDoesNot(t *testing.T) {
	client := connect(t)
	store, err := redisstore.New(client, redisstore.Config{Prefix: "ahead:"})
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Now().Add(time.Hour).UnixMicro()
	if err := client.HSet(t.Context(), "ahead:key", "token", ahead, "until", 0, "digest", "").Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // claims, each of which is released
		a := ask(t, store, idempotency.Request{Key: "key", Lease: time.Hour, Retention: time.Hour})
		if int64(a.Token) != ahead+1 {
			t.Errorf("token %d came after %d, want one more", a.Token, ahead)
		}
		if held, err := store.Release(t.Context(), []idempotency.Claim{{Key: "key", Token: a.Token}}); err != nil || !held[0] {
			t.Errorf("releasing: %v, %v", held, err)
		}
		ahead++
	}
}

// TestSilentServerDoesNotHoldCallersUp: if the server does not answer, calls end with their
// context.
func TestSilentServerDoesNotHoldCallersUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), ContextTimeoutEnabled: true})
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = newStore(t, client).Acquire(ctx, []idempotency.Request{{Key: "key", Lease: time.Hour, Retention: time.Hour}})
	if ctx.Err() == nil || err == nil || !strings.Contains(err.Error(), "acquiring: ") {
		t.Errorf("the call ended with %v, its context with %v", err, ctx.Err())
	}
}

// TestForeignKeyIsAnError: the trip fails if a key under the prefix belongs to another program.
func TestForeignKeyIsAnError(t *testing.T) {
	client := connect(t)
	store, err := redisstore.New(client, redisstore.Config{Prefix: "foreign:"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Set(t.Context(), "foreign:key", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	claim := idempotency.Claim{Key: "key", Token: 1}
	for doing, call := range map[string]func() error{
		"acquiring": func() error {
			_, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "free", Lease: 1, Retention: 1}, {Key: "key", Lease: 1, Retention: 1}})
			return err
		},
		"completing": func() error {
			_, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: claim}})
			return err
		},
		"releasing": func() error { _, err := store.Release(t.Context(), []idempotency.Claim{claim}); return err },
		"extending": func() error {
			_, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: claim}})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), doing+": ") || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: %v, want WRONGTYPE", doing, err)
		}
	}
}

// TestFailedTripLeavesNoClaims: if a trip fails, the claims that it has acquired are released,
// because the caller does not learn of them; otherwise their messages would wait for the leases to
// end. That holds even if the context has ended.
func TestFailedTripLeavesNoClaims(t *testing.T) {
	for name, failed := range map[string]func(*redis.Client, context.CancelFunc) redisstore.Client{
		"refused":    func(c *redis.Client, _ context.CancelFunc) redisstore.Client { return c },
		"time is up": func(c *redis.Client, stop context.CancelFunc) redisstore.Client { return stopping{c, stop} },
	} {
		t.Run(name, func(t *testing.T) {
			client := connect(t)
			prefix := newPrefix()
			if err := client.Set(t.Context(), prefix+"foreign", "text", 0).Err(); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			store, err := redisstore.New(failed(client, stop), redisstore.Config{Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			free := idempotency.Request{Key: "free", Lease: time.Hour, Retention: time.Hour}
			if answers, err := store.Acquire(ctx, []idempotency.Request{free, {Key: "foreign", Lease: time.Hour, Retention: time.Hour}}); err == nil {
				t.Fatalf("answers %v, want an error", answers)
			}
			if a := ask(t, store, free); a.State != idempotency.Acquired {
				t.Errorf("after a trip that failed the key is %v, want it free", a.State)
			}
		})
	}
}

// stopping is a client that ends the context of a call after the reply.
type stopping struct {
	*redis.Client
	stop context.CancelFunc
}

func (s stopping) Pipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
	defer s.stop()
	return s.Client.Pipelined(ctx, fill)
}

// stand is a client that answers each call of a pipeline with the same reply.
type stand struct {
	reply any
	err   error
}

func (s stand) Pipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
	pipe := redis.NewClient(&redis.Options{}).Pipeline() // which is never sent
	_ = fill(pipe)
	cmds := pipe.Cmds()
	for _, cmd := range cmds {
		cmd.(*redis.Cmd).SetVal(s.reply)
	}
	return cmds, s.err
}

// TestStrangeRepliesLetNothingRun: an unknown reply of the script is an error, and nothing runs.
func TestStrangeRepliesLetNothingRun(t *testing.T) {
	errLimited := errors.New("limited")
	for name, client := range map[string]stand{
		"unknown":  {reply: []any{"locked", int64(1)}},
		"empty":    {reply: []any{}},
		"no array": {reply: "acquired"},
		"none":     {err: errLimited},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := newStore(t, client).Acquire(t.Context(), []idempotency.Request{{Key: "key", Lease: time.Hour, Retention: time.Hour}})
			if err == nil || client.err != nil && !errors.Is(err, client.err) {
				t.Errorf("Acquire: %v, %v; want an error", answers, err)
			}
		})
	}
	if held, err := newStore(t, stand{reply: []any{}}).Release(t.Context(), []idempotency.Claim{{Key: "key", Token: 1}}); err == nil {
		t.Errorf("Release: %v, want an error", held)
	}
}

// TestDefaults: the client is required; the prefix has a default.
func TestDefaults(t *testing.T) {
	if _, err := redisstore.New(nil, redisstore.Config{}); err == nil || !strings.Contains(err.Error(), "redis.NewClient") {
		t.Errorf("a nil client: %v", err)
	}
	client := connect(t)
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, store, idempotency.Request{Key: "key", Digest: bytes.Repeat([]byte{0xff}, 64), Lease: time.Second, Retention: time.Second})
	if n := client.Exists(t.Context(), "reprise:idempotency:key").Val(); n != 1 {
		t.Error("the record is not under the default prefix")
	}
}
