package sqsserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// memoryJournal is a journal in memory. Its sync can be slow, be blocked, or fail. A crash
// leaves the synced commits and some of the others.
type memoryJournal struct {
	delay     func() time.Duration // of each sync; nil: none
	beforeGet func()               // nil: nothing

	mu      sync.Mutex
	data    map[string]string
	commits []commit // since the last crash
	synced  int      // so many of them would survive a crash for sure
	blocked chan struct{}
	failure error
	full    bool
	closed  bool
}

type commit []change

type change struct {
	op         sqsserver.BatchOp
	key, value string
}

func newMemoryJournal() *memoryJournal { return &memoryJournal{data: map[string]string{}} }

func (j *memoryJournal) Scan(prefix []byte, f func(key, value []byte) error) error {
	j.mu.Lock()
	data := maps.Clone(j.data)
	j.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if strings.HasPrefix(key, string(prefix)) {
			if err := f([]byte(key), []byte(data[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *memoryJournal) Get(keys [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if j.beforeGet != nil {
			j.beforeGet()
		}
		if !slices.IsSortedFunc(keys, bytes.Compare) {
			yield(nil, fmt.Errorf("get %q: they do not ascend", keys))
			return
		}
		for _, key := range keys {
			value, err := j.get(key)
			if !yield(value, err) {
				return
			}
		}
	}
}

func (j *memoryJournal) get(key []byte) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	value, found := j.data[string(key)]
	if !found {
		return nil, fmt.Errorf("get %q: %w", key, sqsserver.ErrNotInJournal)
	}
	return []byte(value), nil
}

func (j *memoryJournal) Commit(b *sqsserver.Batch, sync bool) error {
	var c commit
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		c = append(c, change{op, string(key), string(value)})
	})
	j.mu.Lock()
	if j.failure == nil {
		j.commits = append(j.commits, c)
	}
	blocked := j.blocked
	j.mu.Unlock()
	if sync {
		if j.delay != nil {
			time.Sleep(j.delay())
		}
		if blocked != nil {
			<-blocked
		}
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return errors.New("the journal is closed")
	case j.failure != nil:
		return j.failure
	}
	c.apply(j.data)
	if sync {
		j.synced = len(j.commits)
	}
	return nil
}

func (c commit) apply(data map[string]string) {
	for _, change := range c {
		switch change.op {
		case sqsserver.BatchSet:
			data[change.key] = change.value
		case sqsserver.BatchDelete, sqsserver.BatchDeleteOnce:
			delete(data, change.key)
		case sqsserver.BatchDeleteRange:
			maps.DeleteFunc(data, func(key, _ string) bool { return key >= change.key && key < change.value })
		}
	}
}

func (j *memoryJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	return nil
}

func (j *memoryJournal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// sizes returns the bytes of each commit.
func (j *memoryJournal) sizes() (sizes []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.commits {
		size := 0
		for _, change := range c {
			size += len(change.key) + len(change.value)
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func (j *memoryJournal) LowOnSpace() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.full
}

// block holds up every sync from now on, until release is called.
func (j *memoryJournal) block() (release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	blocked := make(chan struct{})
	j.blocked = blocked
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.blocked = nil
		close(blocked)
	}
}

// fail makes every commit fail that has not ended.
func (j *memoryJournal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failure = err
}

// crash makes this journal fail from now on, and returns one with the commits that a crash of
// the machine leaves: those that were synced, and the first n of the others.
func (j *memoryJournal) crash(n func(unsynced int) int) *memoryJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failure = errors.New("the machine has crashed")
	left := newMemoryJournal()
	for _, c := range j.commits[:j.synced+n(len(j.commits)-j.synced)] {
		c.apply(left.data)
		left.commits = append(left.commits, c)
	}
	left.synced = len(left.commits)
	left.delay = j.delay
	return left
}

// reopened is the journal after its server was closed.
func (j *memoryJournal) reopened() *memoryJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &memoryJournal{data: j.data, delay: j.delay}
}

func (j *memoryJournal) keys(kind byte) (keys []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key := range j.data {
		if key[0] == kind {
			keys = append(keys, key)
		}
	}
	return keys
}

// writes returns how many commits there were, and how many of them are synced.
func (j *memoryJournal) writes() (commits, synced int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.commits), j.synced
}
