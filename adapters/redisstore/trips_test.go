package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// odometer is a hook of go-redis that counts round trips on its connections: one for each write
// after a read.
type odometer struct{ trips atomic.Int64 }

func (o *odometer) DialHook(dial redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, odometer: o, read: true}, nil
	}
}

func (o *odometer) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (o *odometer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// countedConn is one connection, which one goroutine uses at a time.
type countedConn struct {
	net.Conn
	odometer *odometer
	read     bool // since the last write
}

func (c *countedConn) Write(b []byte) (int, error) {
	if c.read {
		c.odometer.trips.Add(1)
	}
	c.read = false
	return c.Conn.Write(b)
}

func (c *countedConn) Read(b []byte) (int, error) {
	c.read = true
	return c.Conn.Read(b)
}

// TestTenMessagesAreOneTripEachWay: ten messages take one round trip to claim and one to complete,
// and two if the server does not know the script yet.
func TestTenMessagesAreOneTripEachWay(t *testing.T) {
	for _, size := range []int{10, 256} {
		t.Run(fmt.Sprint(size, " messages"), func(t *testing.T) {
			var counted odometer
			client := connect(t, &counted)
			store := newStore(t, client)
			ping := func(pipe redis.Pipeliner) error { return pipe.Ping(t.Context()).Err() }
			if _, err := client.Pipelined(t.Context(), ping); err != nil { // pipelines have connections of their own
				t.Fatal(err)
			}
			count := func(what string, want int64, call func() error) {
				t.Helper()
				before := counted.trips.Load()
				if err := call(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if n := counted.trips.Load() - before; n != want {
					t.Errorf("%s took %d round trips, want %d", what, n, want)
				}
			}
			requests := make([]idempotency.Request, size)
			claims := make([]idempotency.Claim, size)
			completions := make([]idempotency.Completion, size)
			extensions := make([]idempotency.Extension, size)
			for i := range requests {
				requests[i] = idempotency.Request{Key: strconv.Itoa(i), Lease: time.Hour, Retention: time.Hour}
			}
			acquire := func() error {
				answers, err := store.Acquire(t.Context(), requests)
				for i, a := range answers {
					claims[i] = idempotency.Claim{Key: requests[i].Key, Token: a.Token}
					completions[i] = idempotency.Completion{Claim: claims[i], Result: make([]byte, 100), Retention: time.Hour}
					extensions[i] = idempotency.Extension{Claim: claims[i], Lease: time.Hour}
				}
				return err
			}
			extend := func() error { _, err := store.Extend(t.Context(), extensions); return err }
			complete := func() error { _, err := store.Complete(t.Context(), completions); return err }
			release := func() error { _, err := store.Release(t.Context(), claims); return err }

			for _, c := range []struct {
				flush bool
				want  int64
			}{{true, 2}, {false, 1}} {
				if c.flush {
					if err := client.ScriptFlush(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
				}
				count("acquiring", c.want, acquire)
				count("extending", c.want, extend)
				count("releasing", c.want, release)
				count("completing", c.want, complete)
				count("acquiring what is completed", 1, func() error { _, err := store.Acquire(t.Context(), requests); return err })
				store = newStore(t, client)
			}
		})
	}
}

// TestScriptsThatTheServerForgets: scripts that the server has forgotten are sent again, also in a
// batch of which the server knows some scripts.
func TestScriptsThatTheServerForgets(t *testing.T) {
	client := connect(t)
	store := newStore(t, client)
	for i := range 5 {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		a := ask(t, store, idempotency.Request{Key: strconv.Itoa(i), Lease: time.Hour, Retention: time.Hour})
		held, err := store.Release(t.Context(), []idempotency.Claim{{Key: strconv.Itoa(i), Token: a.Token}})
		if err != nil || !held[0] {
			t.Errorf("releasing claim %v: %v, %v", a, held, err)
		}
	}
}

// BenchmarkTenMessages measures ten new messages at once: the time, and the number of round trips.
func BenchmarkTenMessages(b *testing.B) {
	var counted odometer
	client := connect(b, &counted)
	once, err := idempotency.New(newStore(b, client), idempotency.Config{})
	if err != nil {
		b.Fatal(err)
	}
	h := once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	next := 0
	b.ReportAllocs()
	for b.Loop() {
		var messages sync.WaitGroup
		for range 10 {
			next++
			id := strconv.Itoa(next)
			messages.Go(func() {
				if err := h.Handle(b.Context(), &reprise.Message{ID: id, OriginID: id}); err != nil {
					b.Error(err)
				}
			})
		}
		messages.Wait()
	}
	b.ReportMetric(float64(counted.trips.Load())/float64(b.N), "trips/op")
}
