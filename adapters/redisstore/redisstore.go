// Package redisstore keeps idempotency records in Redis or Valkey, through go-redis.
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Config{})
//	if err != nil {
//		return err
//	}
//	once, err := idempotency.New(store, idempotency.Config{})
//
// Each record is a hash under its own key, and each request about a record is a script. A batch of
// requests is one pipeline of scripts, so it takes one round trip. A server that has just started
// or become the primary does not know a script yet and refuses it; a second round trip then sends
// the script's text. Each script uses one key: in Redis Cluster the client sends every node the
// part of the pipeline for its slots, to all nodes at the same time.
//
// All times are the server's, so the clocks of the processes do not matter. The
// server drops a record when its retention ends, so no purging is needed.
//
// If Redis loses a record, its work is done again. So configure it to keep acknowledged records:
//
//   - Set maxmemory-policy to noeviction. Every other policy drops records when
//     memory is full, and some services have another default.
//   - A server that is killed loses the records that were not on its disk: with
//     appendfsync everysec those of about a second, without an append-only file
//     all since the last snapshot.
//   - A failover loses the records that the replica had not received, because
//     replication is asynchronous.
//
// If that is not acceptable, use a store that does not lose acknowledged records.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise/idempotency"
)

// Client is the part of a go-redis client that the store needs: every [redis.UniversalClient] has
// it, for one server, a Sentinel's primary, or a cluster.
//
// Set ContextTimeoutEnabled in its options. Without it a call does not end when its context
// does, after [idempotency.Config].Timeout, but only after the client's own timeouts and retries.
type Client interface {
	Pipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// Config configures where a [Store] keeps its records.
type Config struct {
	// Prefix is put before the key of each record, to separate them from other keys of the server.
	// Default: "reprise:idempotency:".
	Prefix string
}

// Store is an [idempotency.Store] in Redis, from version 5, or Valkey. The tests run on
// Redis 7.0.
type Store struct {
	client Client
	prefix string
}

// New returns a store in the server or cluster of client. It makes no call.
func New(client Client, cfg Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("making a Redis store: the client is nil: pass what redis.NewClient or redis.NewClusterClient returns")
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "reprise:idempotency:"
	}
	return &Store{client: client, prefix: cfg.Prefix}, nil
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	calls := make([]call, len(batch))
	for i, r := range batch {
		calls[i] = call{r.Key, []any{r.Digest, milliseconds(r.Lease), milliseconds(max(r.Lease, r.Retention))}}
	}
	replies, err := s.trip(ctx, acquire, calls)
	if err != nil {
		s.giveBack(ctx, batch, replies)
		return nil, fmt.Errorf("acquiring: %w", err)
	}
	answers := make([]idempotency.Answer, len(batch))
	for i, reply := range replies {
		if answers[i], err = answer(reply); err != nil {
			s.giveBack(ctx, batch, replies)
			return nil, fmt.Errorf("acquiring key %q: %w", batch[i].Key, err)
		}
	}
	return answers, nil
}

// giveBackTime limits the time for giving back claims after a failed round trip.
const giveBackTime = time.Second

// giveBack releases the claims that a failed round trip has acquired, because the caller gets only
// the error: one node of a cluster may be down, while the others have answered. If releasing fails
// too, the claims become free when their leases end.
func (s *Store) giveBack(ctx context.Context, batch []idempotency.Request, replies []*redis.Cmd) {
	var claims []idempotency.Claim
	for i, reply := range replies {
		if reply == nil {
			continue
		}
		if a, err := answer(reply); err == nil && a.State == idempotency.Acquired {
			claims = append(claims, idempotency.Claim{Key: batch[i].Key, Token: a.Token})
		}
	}
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime) // ctx may have ended
	defer cancel()
	_, _ = s.Release(ctx, claims)
}

// answer reads a reply of the script acquire: a state, and its values.
func answer(reply *redis.Cmd) (idempotency.Answer, error) {
	parts, err := reply.Slice()
	if err != nil {
		return idempotency.Answer{}, err
	}
	parts = append(parts, nil, nil)
	number, _ := parts[1].(int64)
	text, _ := parts[1].(string)
	switch parts[0] {
	case "acquired":
		return idempotency.Answer{State: idempotency.Acquired, Token: idempotency.Token(number)}, nil
	case "in progress":
		return idempotency.Answer{State: idempotency.InProgress, Wait: time.Duration(number) * time.Microsecond}, nil
	case "completed":
		return idempotency.Answer{State: idempotency.Completed, Result: []byte(text)}, nil
	case "mismatched":
		return idempotency.Answer{State: idempotency.Mismatched}, nil
	}
	return idempotency.Answer{}, fmt.Errorf("the server answered %v, which the script never returns", reply.Val())
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	calls := make([]call, len(batch))
	for i, c := range batch {
		calls[i] = call{c.Key, []any{int64(c.Token), c.Result, milliseconds(c.Retention)}}
	}
	return s.change(ctx, "completing", complete, calls)
}

// Release implements [idempotency.Store]. The record stays until its retention ends,
// so that the next claim's token is larger.
func (s *Store) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	calls := make([]call, len(batch))
	for i, c := range batch {
		calls[i] = call{c.Key, []any{int64(c.Token)}}
	}
	return s.change(ctx, "releasing", release, calls)
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	calls := make([]call, len(batch))
	for i, e := range batch {
		calls[i] = call{e.Key, []any{int64(e.Token), milliseconds(e.Lease)}}
	}
	return s.change(ctx, "extending", extend, calls)
}

// change makes a round trip whose replies report whether each claim was still held.
func (s *Store) change(ctx context.Context, doing string, script *redis.Script, calls []call) ([]bool, error) {
	replies, err := s.trip(ctx, script, calls)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	held := make([]bool, len(calls))
	for i, reply := range replies {
		if held[i], err = reply.Bool(); err != nil {
			return nil, fmt.Errorf("%s key %q: %w", doing, calls[i].key, err)
		}
	}
	return held, nil
}

// milliseconds rounds up: a lease is never shorter than requested.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// call is a script's key and arguments.
type call struct {
	key  string
	args []any
}

// trip runs a script once for each call, in one pipeline. If a server does not know the script, a
// second pipeline sends its text.
func (s *Store) trip(ctx context.Context, script *redis.Script, calls []call) ([]*redis.Cmd, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	replies := make([]*redis.Cmd, len(calls))
	missing, err := s.pipeline(ctx, script.EvalSha, calls, replies)
	if err == nil && missing > 0 {
		_, err = s.pipeline(ctx, script.Eval, calls, replies)
	}
	return replies, err
}

// pipeline sends the calls that have no reply yet or were refused because the server does not know
// the script, which is named by its hash or sent as text. It returns how many were refused for that
// reason.
func (s *Store) pipeline(ctx context.Context, send func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd, calls []call, replies []*redis.Cmd) (missing int, err error) {
	if len(calls) == 0 {
		return 0, nil
	}
	_, failed := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range calls {
			if replies[i] == nil || unknownScript(replies[i]) {
				replies[i] = send(ctx, pipe, []string{s.prefix + c.key}, c.args...)
			}
		}
		return nil
	})
	for _, reply := range replies {
		switch {
		case unknownScript(reply):
			missing++
		case reply.Err() != nil:
			return 0, reply.Err()
		}
	}
	if missing == 0 && failed != nil {
		return 0, failed // of no reply
	}
	return missing, nil
}

func unknownScript(reply *redis.Cmd) bool { return redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") }
