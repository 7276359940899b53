package journal

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Get returns the values of keys, which ascend, as the journal stands when the sequence begins.
//
// One iterator reads them all: it opens the tables once, finds each key from the key before it,
// and keeps the block of bodies that it has read, since the bodies of one receive are mostly
// adjacent.
func (j *Journal) Get(keys [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := j.guard.failure(); err != nil {
			yield(nil, err)
			return
		}
		var values *pebble.Iterator
		err := recovered(func() (err error) {
			values, err = j.db.NewIter(nil)
			return err
		})
		if err != nil {
			yield(nil, describe(j.options.Dir, err))
			return
		}
		defer func() { _ = recovered(values.Close) }() // the error has been returned already
		for _, key := range keys {
			value, err := j.get(values, key)
			if !yield(value, err) || err != nil && !errors.Is(err, sqsserver.ErrNotInJournal) {
				return
			}
		}
	}
}

// get returns the value of a key. It is valid until the next get.
func (j *Journal) get(values *pebble.Iterator, key []byte) (value []byte, err error) {
	found := false
	err = recovered(func() (err error) {
		// With the whole key as the prefix the search ends there. Otherwise it would pass all
		// deleted keys behind a missing one.
		if found = values.SeekPrefixGE(key); !found {
			return values.Error()
		}
		value, err = values.ValueAndErr()
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading key %q: %w", key, describe(j.options.Dir, readError(err)))
	case !found:
		return nil, fmt.Errorf("journal %s: key %q: %w", j.options.Dir, key, sqsserver.ErrNotInJournal)
	}
	return value, nil
}

// Scan calls f for every key that begins with prefix.
func (j *Journal) Scan(prefix []byte, f func(key, value []byte) error) error {
	if err := j.guard.failure(); err != nil {
		return err
	}
	bounds := &pebble.IterOptions{UpperBound: after(prefix)}
	if len(prefix) > 0 { // to Pebble nil is no bound, and an empty bound is an error
		bounds.LowerBound = prefix
	}
	iter, err := j.db.NewIter(bounds)
	if err != nil {
		return describe(j.options.Dir, err)
	}
	var stopped error // by f
	err = recovered(func() error {
		for iter.First(); iter.Valid() && stopped == nil; iter.Next() {
			value, err := iter.ValueAndErr()
			if err != nil {
				return fmt.Errorf("reading key %q: %w", iter.Key(), readError(err))
			}
			stopped = f(iter.Key(), value)
		}
		return nil
	})
	// Close returns the error that ended the iteration early.
	if err := errors.Join(err, iter.Close()); err != nil {
		return describe(j.options.Dir, err)
	}
	return stopped
}

// after returns the first key beyond those that begin with prefix, nil if there
// is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
