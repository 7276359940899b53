// Package dynamostore keeps idempotency records in a DynamoDB table, in the form of
// Powertools for AWS Lambda: a table can be shared with functions that use it.
//
//	store, err := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Config{Table: "idempotency"})
//	if err != nil {
//		return err
//	}
//	once, err := idempotency.New(store, idempotency.Config{})
//
// The table has the string "id" as its partition key, and no sort key. Let its time
// to live be the attribute "expiration": then DynamoDB removes records within a few
// days of the end of their retention, at no cost. The times of a record decide whether it counts,
// not its presence.
//
// # Cost
//
// DynamoDB has no conditional write of a batch, and a transaction costs twice as
// much and fails as a whole. So each member of a batch is one UpdateItem, with Config.Concurrency
// under way at a time: a message that runs costs two write units for each KiB of its record, one to
// claim it and one to complete it, and one more for each half lease that it takes; a duplicate
// costs one.
//
// # Clocks
//
// DynamoDB provides no clock: times are those of the processes. Their clocks may differ by a tenth
// of [idempotency.Config].Lease, 6 s by default; if they differ by more, a process whose clock is
// ahead can take over a claim that another still keeps.
//
// # Regions
//
// The replicas of a global table learn of each other's writes late, and each permits a claim
// meanwhile: let all processes use the replica of one Region, unless the table has multi-Region
// strong consistency.
//
// # Sharing a table with Powertools
//
// Records have the attributes that Powertools has by default: id, status, expiration
// (Unix seconds), in_progress_expiration (milliseconds), validation and data. Each side reads the
// other's records. Equal work must have equal ids, see [PythonKey] and [TypeScriptKey]. Two
// additional attributes, which Powertools ignores, are reprise_token, the claim's token, and
// reprise_result, a result that is not JSON.
//
// Powertools does not fence: a function that exceeded its lease completes or deletes a record that
// belongs to another run by then. A claim of ours that is overtaken or deleted this way is lost,
// see [idempotency.ErrLost].
package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/reprise-sqs/reprise/idempotency"
)

// Client is the part of a [*dynamodb.Client] that the store needs.
type Client interface {
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Config says where a [Store] keeps its records, and how.
type Config struct {
	// Table is the name of the table, or its ARN. It has to be set.
	Table string

	// Concurrency is how many calls of one batch are under way at a time. By default the SDK's HTTP
	// client keeps ten idle connections; further calls open new connections. Default: 10.
	Concurrency int

	// Base64 keeps digests in base64, as Powertools for TypeScript does, instead of hexadecimal, as
	// Powertools for Python does. It matters only if both sides share a table and compare payloads.
	// Default: hexadecimal.
	Base64 bool
}

// defaultConcurrency is how many idle connections the SDK keeps to a host.
const defaultConcurrency = 10

// Store is an [idempotency.Store] in a DynamoDB table.
type Store struct {
	client Client
	cfg    Config
}

// New returns a store in a table. It makes no call: the table has to exist before the
// first one.
func New(client Client, cfg Config) (*Store, error) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = defaultConcurrency
	}
	var problems []error
	if client == nil {
		problems = append(problems, errors.New("the client is nil: pass what dynamodb.NewFromConfig returns"))
	}
	if cfg.Table == "" {
		problems = append(problems, errors.New("Config.Table is empty: set the name of a table whose partition key is the string id"))
	}
	if cfg.Concurrency < 0 {
		problems = append(problems, fmt.Errorf("Config.Concurrency is %d: set how many calls may be under way at a time, or 0 for %d", cfg.Concurrency, defaultConcurrency))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("making a DynamoDB store: %w", errors.Join(problems...))
	}
	return &Store{client: client, cfg: cfg}, nil
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	answers, err := each(ctx, s.cfg.Concurrency, batch, s.acquire)
	if err == nil {
		return answers, nil
	}
	// The caller does not learn of the claims that the failed trip has acquired. If releasing them
	// fails as well, they become free when their leases end.
	var claims []idempotency.Claim
	for i, a := range answers {
		if a.State == idempotency.Acquired {
			claims = append(claims, idempotency.Claim{Key: batch[i].Key, Token: a.Token})
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime) // what has failed may be the time
	defer cancel()
	_, _ = s.Release(ctx, claims)
	return nil, fmt.Errorf("acquiring: %w", err)
}

// giveBackTime bounds what is done after a trip that has failed.
const giveBackTime = time.Second

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	return all(ctx, "completing", s, batch, s.complete)
}

// Release implements [idempotency.Store]. The item stays, so that the next claim's
// token is larger.
func (s *Store) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	return all(ctx, "releasing", s, batch, s.release)
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	return all(ctx, "extending", s, batch, s.extend)
}

// all makes a call for each member of a batch.
func all[In any](ctx context.Context, doing string, s *Store, batch []In, call func(context.Context, In) (bool, error)) ([]bool, error) {
	held, err := each(ctx, s.cfg.Concurrency, batch, call)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return held, nil
}

// each makes a call for each member of a batch, with the given concurrency. If some fail it returns
// the results of the others, and one of the errors.
func each[In, Out any](ctx context.Context, concurrency int, batch []In, call func(context.Context, In) (Out, error)) ([]Out, error) {
	out := make([]Out, len(batch))
	errs := make([]error, len(batch))
	if len(batch) == 1 { // the usual case
		out[0], errs[0] = call(ctx, batch[0])
		return out, errs[0]
	}
	var calls sync.WaitGroup
	free := make(chan struct{}, concurrency)
	for i, in := range batch {
		free <- struct{}{}
		errs[i] = errNoReturn
		calls.Go(func() {
			defer func() { <-free }()
			defer func() {
				if v := recover(); v != nil { // a Client may be the user's own code
					errs[i] = fmt.Errorf("the client panicked: %v\n%s", v, debug.Stack())
				}
			}()
			out[i], errs[i] = call(ctx, in)
		})
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

var errNoReturn = errors.New("the client called runtime.Goexit")

// unixMilli is the time of an instant in milliseconds, rounded up: a lease is never
// shorter than was asked for.
func unixMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
