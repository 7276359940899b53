package emulator

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// disk is a journal in memory, of which a crash of the machine keeps what was synced.
type disk struct {
	mu           sync.Mutex
	now, synced  map[string][]byte
	full, broken bool
}

func newDisk() *disk { return &disk{now: make(map[string][]byte), synced: make(map[string][]byte)} }

func (d *disk) Scan(prefix []byte, f func(key, value []byte) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(d.now)) {
		if bytes.HasPrefix([]byte(key), prefix) {
			if err := f([]byte(key), d.now[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *disk) Commit(b *sqsserver.Batch, sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errors.New("input/output error")
	}
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		if op == sqsserver.BatchSet {
			d.now[string(key)] = bytes.Clone(value)
		} else {
			delete(d.now, string(key))
		}
	})
	if sync {
		d.synced = maps.Clone(d.now)
	}
	return nil
}

func (d *disk) LowOnSpace() bool { return d.full }

// crash returns the disk as the machine finds it after a crash now.
func (d *disk) crash() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{now: maps.Clone(d.synced), synced: maps.Clone(d.synced)}
}

// kill returns the disk as the next process finds it.
func (d *disk) kill() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{now: maps.Clone(d.now), synced: maps.Clone(d.now)}
}

// newDurableWorld is a world whose events are kept on d.
func newDurableWorld(t *testing.T, d *disk, f Function, function func(n int) (Result, error)) *world {
	t.Helper()
	w := newWorld(t, f, 1, function, nil)
	w.cfg.Journal = d
	events, err := newEvents(w.Lambda)
	if err != nil {
		t.Fatal(err)
	}
	events.invoke = w.events.invoke
	w.events = events
	return w
}

// payloads has w note the payload of each invoke.
func (w *world) payloads() *[]string {
	var payloads []string
	inner := w.events.invoke
	w.events.invoke = func(ctx context.Context, name string, inv *invocation) (Result, error) {
		w.mu.Lock()
		payloads = append(payloads, string(inv.payload))
		w.mu.Unlock()
		return inner(ctx, name, inv)
	}
	return &payloads
}

// TestEventsSurvive a crash of the machine right after they were accepted: all of them
// are invoked by the next process, to the byte, and none by the one after that.
func TestEventsSurvive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		w := newDurableWorld(t, d, Function{}, func(int) (Result, error) {
			time.Sleep(time.Hour)
			return Result{}, errClosing
		})
		want := []string{`{ "n" : 1.0 }`, `"2"`, `[3]`}
		for _, payload := range want {
			w.accept(t, payload)
		}
		crashed := d.crash() // before anything has ended

		next := newDurableWorld(t, crashed, Function{Async: AsyncConfig{OnSuccess: testQueue}}, succeeding)
		got := next.payloads()
		next.Resume()
		next.events.wait()
		slices.Sort(want)
		slices.Sort(*got)
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("invoked after the crash (-want +got):\n%s", diff)
		}
		if len(next.sent) != len(want) {
			t.Errorf("sent %d records of ends, want %d", len(next.sent), len(want))
		}
		next.accept(t, `"later"`) // whose number is new
		next.events.wait()
		if len(crashed.now) != 0 {
			t.Errorf("the disk still has %v", crashed.now)
		}
		for _, w := range []*world{next, w} {
			if err := w.Close(t.Context()); err != nil {
				t.Errorf("Close = %v", err)
			}
		}
	})
}

// TestEventsGoOn where they were: an event that waits for its second retry has made two
// invokes, and makes the third when it is due, in another process.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		began := time.Now()
		w := newDurableWorld(t, d, Function{}, failing)
		w.accept(t, `{}`)
		time.Sleep(90 * time.Second) // invoked at 0 and 1 min; the next is due at 3 min
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close = %v, though nothing is lost", err)
		}
		if last := w.said[len(w.said)-1]; !strings.HasPrefix(last, "the asynchronous event is kept for the next start") || len(w.troubles) > 0 {
			t.Errorf("said %q and %q", w.said, w.troubles)
		}
		next := newDurableWorld(t, d.kill(), Function{Async: AsyncConfig{OnFailure: testQueue}}, failing)
		next.Resume()
		next.events.wait()
		if took := time.Since(began); len(next.invokes) != 1 || took != 3*time.Minute {
			t.Errorf("%d more invokes, the last after %v, want one after 3 minutes", len(next.invokes), took)
		}
		if len(next.sent) != 1 || !strings.Contains(next.sent[0].body, `"condition":"RetriesExhausted","approximateInvokeCount":3`) {
			t.Errorf("sent %+v", next.sent)
		}
		if err := next.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// TestEventsThatEndedStayEnded: one that has ended, and whose record its destination did not take before the stop, is
// not invoked again: the next process delivers the record, and what had been delivered not again.
func TestEventsThatEndedStayEnded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		async    AsyncConfig
		function func(n int) (Result, error)
		want     string
	}{
		{"success", AsyncConfig{OnSuccess: testQueue}, succeeding, `"condition":"Success","approximateInvokeCount":1`},
		{"failure", AsyncConfig{OnFailure: testQueue, DeadLetter: testDead}, failing, `"condition":"RetriesExhausted","approximateInvokeCount":1`},
	} {
		for _, how := range []string{"stop", "crash"} {
			t.Run(test.name+" and "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := newDisk()
					test.async.MaxRetryAttempts = new(0)
					w := newDurableWorld(t, d, Function{Async: test.async}, test.function)
					take := w.cfg.Send
					w.cfg.Send = func(ctx context.Context, arn, body string, attributes []sqsserver.MessageAttribute) error {
						if arn == testDead {
							return take(ctx, arn, body, attributes)
						}
						return errors.New("connection refused")
					}
					w.accept(t, `{}`)
					time.Sleep(time.Minute)
					left := d.crash()
					if err := w.Close(t.Context()); err != nil {
						t.Errorf("Close = %v, though nothing is lost", err)
					}
					if how == "stop" {
						left = d.kill()
					}
					next := newDurableWorld(t, left, Function{Async: test.async}, test.function)
					next.Resume()
					next.events.wait()
					if len(w.invokes) != 1 || len(next.invokes) != 0 {
						t.Errorf("%d invokes, and %d after the restart, want one and none", len(w.invokes), len(next.invokes))
					}
					if len(next.sent) != 1 || next.sent[0].queue != testQueue || !strings.Contains(next.sent[0].body, test.want) {
						t.Errorf("sent %+v after the restart, want one record with %s", next.sent, test.want)
					}
					if n := len(left.now); n != 0 {
						t.Errorf("%d events are kept, want none", n)
					}
					if err := next.Close(t.Context()); err != nil {
						t.Errorf("Close = %v", err)
					}
				})
			})
		}
	}
}

// TestEventsOfNoFunction stay where they are, for a start with a template that has it.
func TestEventsOfNoFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		w := newDurableWorld(t, d, Function{}, failing)
		w.accept(t, `{}`)
		synctest.Wait()
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		next := newDurableWorld(t, d.kill(), Function{}, func(int) (Result, error) { return Result{}, notFound("Function not found") })
		if err := next.Remove("f"); err != nil {
			t.Fatal(err)
		}
		next.Resume()
		next.events.wait()
		if err := next.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(next.cfg.Journal.(*disk).now); n != 1 {
			t.Errorf("%d events are kept, want the one", n)
		}
	})
}

// TestEventsThatCannotBeKept are not accepted.
func TestEventsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]*disk{
		"nearly full": {now: map[string][]byte{}, full: true}, "input/output error": {now: map[string][]byte{}, broken: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDurableWorld(t, d, Function{}, succeeding)
			inv, err := newInvocation("arn", nil, maxAsyncPayload)
			if err != nil {
				t.Fatal(err)
			}
			err = w.events.accept("f", inv)
			if refusal, ok := errors.AsType[*Error](err); !ok || refusal.Status != 500 || !strings.Contains(refusal.Message, want) {
				t.Errorf("accepted with %v, want an error with %q", err, want)
			}
			if err := w.Close(t.Context()); err != nil || len(w.invokes) != 0 {
				t.Errorf("%d invokes, Close = %v", len(w.invokes), err)
			}
		})
	}
}

// TestEventsNotUnderstood: what is not understood is not guessed, and not skipped.
func TestEventsNotUnderstood(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{`{`: "cannot be understood: unexpected end", `{"version":2}`: "it has the format 2"} {
		d := newDisk()
		d.now["e\x00\x00\x00\x00\x00\x00\x00\x01"] = []byte(value)
		_, err := New(Config{Journal: d})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New with %s = %v, want an error with %q", value, err, want)
		}
	}
}
