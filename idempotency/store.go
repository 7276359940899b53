package idempotency

import (
	"context"
	"fmt"
	"time"
)

// Store keeps a record for each key: claimed by one run, or completed with a
// result. Package idempotencytest tests its contract.
//
// Every method takes a batch, answers by position, and makes one trip to the place of the records.
// An error concerns the trip, never one member of the batch, and leaves open what happened, because
// only the reply may be lost. Each call may be repeated with the same arguments: Acquire then finds
// its own claim in progress, the others return the same answers. No key is twice in a batch. A key
// is valid UTF-8 of 1 to 255 bytes without control characters, compared byte by byte.
//
// This interface has durations, never instants: a store measures them with one clock, that of its
// server if there is one, so the clocks of its callers do not matter. A store that depends on its
// callers' clocks documents this, and how far they may differ.
//
// Methods are called concurrently, and return soon after ctx ends.
type Store interface {
	// Acquire claims keys. A key is free if it has no record, if its record's
	// claim was released or its lease has ended, or if the retention of a
	// completed one has ended.
	Acquire(ctx context.Context, batch []Request) ([]Answer, error)

	// Complete records that a claim's work is done, and reports whether it did: not if the key has
	// been acquired since, or is unknown. It also succeeds after the end of the lease if no other
	// claim has acquired the key, and again for the claim that completed it; the first result
	// stays.
	Complete(ctx context.Context, batch []Completion) ([]bool, error)

	// Release frees the keys of claims whose work was not done, and reports whether it did: not if
	// the key has been acquired since, is completed, or is unknown.
	Release(ctx context.Context, batch []Claim) ([]bool, error)

	// Extend begins leases anew, and reports whether it did: not if the key has been acquired
	// since, is completed, or is unknown. A record is kept for as long as its lease, whatever its
	// retention. Extend also succeeds after the end of the lease if no other claim has acquired the
	// key.
	Extend(ctx context.Context, batch []Extension) ([]bool, error)
}

// Token names one claim of a key. It is positive, and a later claim of the same
// key has a larger one, so that the receiver of an effect can refuse requests of a claim that has
// been overtaken.
type Token int64

// Claim is the right to work on a key.
type Claim struct {
	Key   string
	Token Token
}

// Request asks for a key.
type Request struct {
	Key string
	// Digest identifies the payload of the message, at most 64 bytes. It is kept with the claim.
	// Empty if payloads are not compared.
	Digest []byte
	// Lease is how long the claim holds unless it is extended.
	Lease time.Duration
	// Retention is the time after which the record may be forgotten. It is not shorter than Lease.
	Retention time.Duration
}

// Answer is the result of a request.
type Answer struct {
	State State
	// Token is the new claim's, if the State is Acquired.
	Token Token
	// Wait is how long the lease of the current claim still holds, if the State is InProgress. It
	// may be 0.
	Wait time.Duration
	// Result is the result with which the key was completed, if the State is Completed.
	Result []byte
}

// Completion ends a claim whose work is done.
type Completion struct {
	Claim
	// Result is the result that later duplicates get.
	Result []byte
	// Retention is how long the record is kept.
	Retention time.Duration
}

// Extension begins a claim's lease anew.
type Extension struct {
	Claim
	// Lease is how long the claim holds from now on.
	Lease time.Duration
}

// State is a store's answer to a request. The zero State is not an answer, so that a missing answer
// lets no handler run.
type State uint8

// The states that a request can find.
const (
	// Acquired: the key was free and is now claimed by the request.
	Acquired State = iota + 1
	// InProgress: another claim's lease holds.
	InProgress
	// Completed: the work was done, with the request's payload or one that was not
	// compared: either has no digest.
	Completed
	// Mismatched: the work was done, with another payload.
	Mismatched
)

var stateNames = [...]string{Acquired: "acquired", InProgress: "in progress", Completed: "completed", Mismatched: "mismatched"}

// String returns the state's name.
func (s State) String() string {
	if s == 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}
