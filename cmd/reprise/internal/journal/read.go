package journal

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Get returns the values of keys, which ascend, as the journal stands when the
// sequence begins.
//
// One iterator reads them all: it opens the tables once, finds a key beside the
// one before, and keeps the block of bodies that it has read for the bodies that
// are next to each other, as those of one receive mostly are.
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
		defer func() { _ = recovered(values.Close) }() // what it failed at has been returned
		for _, key := range keys {
			value, err := j.get(values, key)
			if !yield(value, err) || err != nil && !errors.Is(err, sqsserver.ErrNotInJournal) {
				return
			}
		}
	}
}

// get returns the value of a key, which is valid until the next.
func (j *Journal) get(values *pebble.Iterator, key []byte) (value []byte, err error) {
	found := false
	err = recovered(func() (err error) {
		// With a key as the prefix it stops there, instead of looking through all that
		// was deleted behind a key that is gone.
		if found = values.SeekPrefixGE(key); !found {
			return values.Error()
		}
		value, err = values.ValueAndErr()
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading key %q: %w", key, describe(j.options.Dir, err))
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
	if len(prefix) > 0 { // Pebble has nil for no bound, and trips over an empty one
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
				return fmt.Errorf("reading key %q: %w", iter.Key(), err)
			}
			stopped = f(iter.Key(), value)
		}
		return nil
	})
	// Close reports what ended the iteration early.
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
