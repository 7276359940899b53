// Package turns decides which of several users of a scarce resource has it next.
//
// A user of a higher priority goes first. Those of one priority take turns by start-time
// fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996): each use
// advances a user's virtual time by 1/Weight, and the user with the smallest goes first.
//
// An [Order] is plain data: it has no clock, and does not know what its users do.
package turns

import (
	"cmp"
	"slices"
)

// Order is the users of one resource. The zero value has none. Its methods must not be
// called at the same time.
type Order[T any] struct {
	tiers []*tier[T] // by priority, the highest first
}

// User is one of an [Order].
type User[T any] struct {
	Cargo    T   // by which the caller knows the user
	Priority int // users of a higher priority go first
	Weight   int // its share of the uses by users of its priority; at least 1
	Lag      int // uses that it may be behind its share, and catch up with, after it had none

	tier *tier[T]
	time float64 // when its next use starts, in virtual time
}

// tier is the users of one priority.
type tier[T any] struct {
	priority int
	users    []*User[T]
	clock    float64 // when the latest use started, in virtual time
}

// Join makes u, which has no order yet, one of o's. It has no claim to turns from before.
func (o *Order[T]) Join(u *User[T]) {
	at, found := slices.BinarySearchFunc(o.tiers, u.Priority, func(t *tier[T], priority int) int { return cmp.Compare(priority, t.priority) })
	if !found {
		o.tiers = slices.Insert(o.tiers, at, &tier[T]{priority: u.Priority})
	}
	u.tier = o.tiers[at]
	u.tier.users = append(u.tier.users, u)
	u.time = u.tier.clock
}

// Leave takes u, which is one of its users, out of o.
func (o *Order[T]) Leave(u *User[T]) {
	u.tier.users = slices.DeleteFunc(u.tier.users, func(other *User[T]) bool { return other == u })
}

// All yields the users, those of the highest priority first, and those of one priority in
// the order in which they joined.
func (o *Order[T]) All(yield func(T) bool) {
	for _, t := range o.tiers {
		for _, u := range t.users {
			if !yield(u.Cargo) {
				return
			}
		}
	}
}

// Next is the user whose turn it is among those that want one; nil if none does.
func (o *Order[T]) Next(wants func(T) bool) (first *User[T]) {
	for _, t := range o.tiers {
		for _, u := range t.users {
			if wants(u.Cargo) && (first == nil || u.start() < first.start()) {
				first = u
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// Outranks reports whether a user of a higher priority than u's wants a turn.
func (o *Order[T]) Outranks(u *User[T], wants func(T) bool) bool {
	for _, t := range o.tiers {
		if t == u.tier {
			break
		}
		for _, other := range t.users {
			if wants(other.Cargo) {
				return true
			}
		}
	}
	return false
}

// Used counts a use by u.
func (u *User[T]) Used() {
	start := u.start()
	u.tier.clock = max(u.tier.clock, start)
	u.time = start + 1/float64(u.Weight)
}

// start is when u's next use starts, in virtual time.
func (u *User[T]) start() float64 {
	return max(u.time, u.tier.clock-float64(u.Lag)/float64(u.Weight))
}
