package world_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// sqs is a service with a process that has a link to it without latency.
type sqs struct {
	*world.Service
	t    *testing.T
	loop *world.Loop
	link *world.Link
}

func newSQS(t *testing.T) *sqs {
	l := world.NewLoop(epoch, 1)
	return &sqs{l.NewService(), t, l, l.Start("node", 0, 0).NewLink(world.Latency{}, time.Minute)}
}

// reply is what a receive has got.
type reply struct {
	after time.Duration // since the loop's start
	ids   []engine.ID
	err   error
}

// receive asks for one message, and returns where the reply will be.
func (s *sqs) receive(q *world.Queue, visibility, wait time.Duration) *reply {
	r := &reply{after: -1}
	q.Receive(s.link, 1, visibility, wait, func(got []engine.Delivery, err error) {
		if r.after >= 0 {
			s.t.Error("a receive has two replies")
		}
		r.after, r.err = s.loop.Since(), err
		for _, d := range got {
			r.ids = append(r.ids, d.ID)
		}
	})
	return r
}

func (s *sqs) run(end time.Duration) { run(s.t, s.loop, end) }

func (s *sqs) want(what string, r *reply, after time.Duration, ids ...engine.ID) {
	s.t.Helper()
	if r.after != after || r.err != nil || !slices.Equal(r.ids, ids) {
		s.t.Errorf("%s: %v after %v, %v; want %v after %v", what, r.ids, r.after, r.err, ids, after)
	}
}

var a, b = engine.ID{'a'}, engine.ID{'b'}

func TestPollsEnd(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{})
	s.run(time.Second)
	long, short, next := s.receive(q, -1, 20*time.Second), s.receive(q, -1, 0), s.receive(q, -1, 30*time.Second)
	s.run(time.Hour)
	s.want("a long poll", long, 21*time.Second)
	s.want("a short poll", short, time.Second)
	s.want("a longer poll", next, 31*time.Second)
}

// TestPollsGetWhatComes: each as soon as there is something for it.
func TestPollsGetWhatComes(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{Visibility: time.Hour})
	first, second := s.receive(q, -1, 20*time.Second), s.receive(q, -1, 20*time.Second)
	s.loop.After(time.Second, "test", func() { q.Put(engine.Message{ID: a}) })
	s.loop.After(2*time.Second, "test", func() {
		q.Send(s.link, []world.Entry{{Message: engine.Message{ID: b}}}, func(got []world.Entry, err error) {
			if err != nil || got[0].Err != nil || got[0].Sent.ID != b {
				t.Errorf("sent: %+v, %v", got, err)
			}
		})
	})
	s.run(time.Hour)
	s.want("the first poll", first, time.Second, a)
	s.want("the second poll", second, 2*time.Second, b)
}

// TestPollsWaitForLeases: for one after the other, and for a group's first message.
func TestPollsWaitForLeases(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{})
	q.Put(engine.Message{ID: a})
	q.Put(engine.Message{ID: b})
	s.receive(q, 10*time.Second, 0)
	s.receive(q, 15*time.Second, 0)
	s.run(time.Second)
	first, second := s.receive(q, time.Hour, 20*time.Second), s.receive(q, time.Hour, 20*time.Second)
	s.run(time.Hour)
	s.want("the first poll", first, 10*time.Second, a)
	s.want("the second poll", second, 15*time.Second, b)

	s = newSQS(t)
	q = s.Create("q", engine.Settings{FIFO: true})
	q.Put(engine.Message{ID: a, Group: "g", Dedup: "a"})
	q.Put(engine.Message{ID: b, Group: "g", Dedup: "b"})
	var held engine.Receipt
	q.Receive(s.link, 1, time.Hour, 0, func(got []engine.Delivery, _ error) { held = got[0].Receipt })
	s.run(time.Second)
	behind := s.receive(q, -1, 20*time.Second)
	s.run(2 * time.Second)
	q.Delete(s.link, []world.Entry{{Receipt: held}}, func([]world.Entry, error) {})
	s.run(time.Hour)
	s.want("a poll for the message behind", behind, 2*time.Second, b)
}

// TestPollsOfADeadLetterQueue get what receives of the other queue give up.
func TestPollsOfADeadLetterQueue(t *testing.T) {
	s := newSQS(t)
	q, dead := s.Create("q", engine.Settings{MaxReceives: 1, DeadLetter: "dead"}), s.Create("dead", engine.Settings{})
	q.Put(engine.Message{ID: a})
	s.receive(q, time.Second, 0)
	s.run(2 * time.Second)
	letter := s.receive(dead, -1, 20*time.Second)
	s.run(3 * time.Second)
	empty := s.receive(q, -1, 0)
	s.run(time.Hour)
	s.want("a receive of the queue", empty, 3*time.Second)
	s.want("the poll of the dead-letter queue", letter, 3*time.Second, a)

	s = newSQS(t)
	q, dead = s.Create("q", engine.Settings{MaxReceives: 1, DeadLetter: "dead"}), s.Create("dead", engine.Settings{})
	q.Put(engine.Message{ID: a})
	s.receive(q, 10*time.Second, 0)
	s.run(time.Second)
	empty, letter = s.receive(q, -1, 20*time.Second), s.receive(dead, -1, 20*time.Second)
	s.run(time.Hour)
	s.want("a long poll of the queue", empty, 21*time.Second)
	s.want("the poll of the dead-letter queue beside it", letter, 10*time.Second, a)
}

// TestServiceClock: what becomes visible when the service's clock is set forwards is received at once, queue by
// queue in the order of their names.
func TestServiceClock(t *testing.T) {
	s := newSQS(t)
	var order []string
	for _, name := range []string{"d", "b", "a", "c", "e"} {
		q := s.Create(name, engine.Settings{MaxReceives: map[string]int{"c": 1}[name], DeadLetter: "a"})
		if name != "a" {
			q.Put(engine.Message{Delay: time.Minute})
		}
		if name == "c" { // its message goes to the queue a
			q.Receive(s.link, 1, 30*time.Second, 0, func([]engine.Delivery, error) {})
			q.Put(engine.Message{})
			s.run(time.Second)
		}
		q.Receive(s.link, 1, -1, 20*time.Second, func(got []engine.Delivery, _ error) {
			if len(got) > 0 {
				order = append(order, name)
			}
		})
	}
	s.run(2 * time.Second)
	s.SetClock(-time.Hour) // which changes nothing
	s.SetClock(time.Hour)
	if now := s.loop.Now().Add(time.Hour); !s.Now().Equal(now) {
		t.Errorf("the service's clock shows %v, want %v", s.Now(), now)
	}
	s.run(2 * time.Second)
	if want := []string{"b", "c", "d", "e", "a"}; !slices.Equal(order, want) {
		t.Errorf("answered are the polls of %v, want %v", order, want)
	}
	if n := s.loop.Noted()["sets its clock by"]; n != 2 {
		t.Errorf("it is noted %d times, want twice", n)
	}
}

// TestPollNeedsOneEvent for the time at which something becomes visible, however often that is looked up.
func TestPollNeedsOneEvent(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{})
	q.Put(engine.Message{ID: a, Delay: 10 * time.Second})
	poll := s.receive(q, -1, 20*time.Second)
	s.run(time.Second)
	for range 2 * world.MostAtOnce {
		s.SetClock(0)
	}
	s.run(time.Hour)
	s.want("the poll", poll, 10*time.Second, a)
}

func TestPutGivesIDs(t *testing.T) {
	q := newSQS(t).Create("q", engine.Settings{})
	first, second, own := q.Put(engine.Message{}).ID, q.Put(engine.Message{}).ID, q.Put(engine.Message{ID: a}).ID
	if none := (engine.ID{}); first == none || second == none || first == second || own != a {
		t.Errorf("the ids are %v, %v and %v, want two that differ and %v", first, second, own, a)
	}
}

func TestRedrive(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{MaxReceives: 1, DeadLetter: "dead"})
	dead, other := s.Create("dead", engine.Settings{}), s.Create("other", engine.Settings{})
	for range 5 {
		q.Put(engine.Message{})
		s.receive(q, 0, 0)
		s.receive(q, 0, 0)
		s.run(s.loop.Since() + time.Second)
	}
	poll, second := s.receive(q, time.Hour, 20*time.Second), s.receive(other, time.Hour, 20*time.Second)
	s.run(s.loop.Since() + time.Second)
	for _, r := range []struct {
		to           *world.Queue
		limit, moved int
		err          error
	}{{nil, 2, 2, nil}, {other, 1, 1, nil}, {nil, 10, 2, nil}, {nil, 10, 0, nil}} {
		if moved, err := dead.Redrive(r.to, r.limit); moved != r.moved || err != r.err {
			t.Errorf("a redrive of %d: %d, %v, want %d", r.limit, moved, err, r.moved)
		}
		if poll.after < 0 && r.limit == 2 {
			s.run(s.loop.Since())
			if len(poll.ids) != 1 {
				t.Error("a poll does not get what was redriven")
			}
		}
	}
	s.run(s.loop.Since())
	if len(second.ids) != 1 {
		t.Error("a poll of another queue does not get what was redriven to it")
	}
	ids := make(map[engine.ID]bool)
	for _, d := range slices.Concat(q.Messages(), other.Messages()) {
		ids[d.ID] = true
	}
	if len(ids) != 5 || len(q.Messages()) != 4 {
		t.Errorf("%d messages in the queue and %d ids in all, want 4 and 5", len(q.Messages()), len(ids))
	}
	dead.Put(engine.Message{})
	if moved, err := dead.Redrive(nil, 1); moved != 0 || err != engine.ErrNoSource {
		t.Errorf("a redrive of what was not given up: %d, %v", moved, err)
	}
}

// TestRedriveOfLessThanAsked: polls get what there was.
func TestRedriveOfLessThanAsked(t *testing.T) {
	s := newSQS(t)
	q, dead := s.Create("q", engine.Settings{}), s.Create("dead", engine.Settings{})
	poll := s.receive(q, time.Hour, 20*time.Second)
	s.run(time.Second)
	dead.Put(engine.Message{})
	if moved, err := dead.Redrive(q, 5); moved != 1 || err != nil {
		t.Errorf("a redrive of one message: %d, %v", moved, err)
	}
	s.run(time.Hour)
	if poll.after != time.Second || len(poll.ids) != 1 {
		t.Errorf("the poll got %v after %v, want the message after 1s", poll.ids, poll.after)
	}
}

func TestRefusedEntries(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{})
	s.link.Faults = map[world.Action]world.Faults{world.Send: {FailEntry: 1}}
	q.Send(s.link, []world.Entry{{}, {}}, func(got []world.Entry, err error) {
		if err != nil || got[0].Err != world.ErrRefused || got[1].Err != world.ErrRefused {
			t.Errorf("%+v, %v", got, err)
		}
	})
	s.run(time.Second)
	if n := len(q.Messages()); n != 0 {
		t.Errorf("%d refused messages are in the queue", n)
	}
}

// TestReceiveErrors: a receive that fails gives nothing, whatever it has received.
func TestReceiveErrors(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{InFlightLimit: 1})
	q.Put(engine.Message{ID: a})
	q.Put(engine.Message{ID: b})
	s.link.Faults = map[world.Action]world.Faults{world.Receive: {LoseReply: 1}}
	lost := s.receive(q, time.Hour, 0)
	s.run(2 * time.Minute)
	s.link.Faults = nil
	refused := s.receive(q, time.Hour, 0)
	s.run(3 * time.Minute)
	if !errors.Is(lost.err, world.ErrLost) || len(lost.ids) != 0 {
		t.Errorf("without a reply: %v, %v", lost.ids, lost.err)
	}
	if !errors.Is(refused.err, engine.ErrOverLimit) || len(refused.ids) != 0 {
		t.Errorf("at the quota: %v, %v", refused.ids, refused.err)
	}
}

// TestTakes: a queue that does not take a message refuses its entry, or the whole request.
func TestTakes(t *testing.T) {
	for _, unacceptable := range []bool{false, true} {
		s := newSQS(t)
		q := s.Create("q", engine.Settings{})
		refusal := world.ErrRefused
		if unacceptable {
			refusal = world.ErrUnacceptable
		}
		q.Takes = func(m engine.Message) error {
			if m.ID == b {
				return refusal
			}
			return nil
		}
		replies := 0
		q.Send(s.link, []world.Entry{{Message: engine.Message{ID: a}}, {Message: engine.Message{ID: b}}}, func(got []world.Entry, err error) {
			replies++
			if unacceptable {
				if !errors.Is(err, refusal) {
					t.Errorf("a request that is not acceptable: %v", err)
				}
			} else if err != nil || got[0].Err != nil || !errors.Is(got[1].Err, refusal) {
				t.Errorf("a request with an entry that is not taken: %+v, %v", got, err)
			}
		})
		s.run(time.Second)
		want := 1
		if unacceptable {
			want = 0
		}
		if n := len(q.Messages()); n != want || replies != 1 {
			t.Errorf("%d messages and %d replies, want %d and one", n, replies, want)
		}
		if n := s.loop.Noted()["has a request refused for what is in it"]; n != 1-want {
			t.Errorf("%d refused requests are noted, want %d", n, 1-want)
		}
	}
}

// TestServiceDown: a service that is down carries nothing out and answers with an error, until it is up.
func TestServiceDown(t *testing.T) {
	s := newSQS(t)
	q := s.Create("q", engine.Settings{})
	q.Put(engine.Message{ID: a})
	s.Down = true
	var sent error
	q.Send(s.link, []world.Entry{{Message: engine.Message{ID: b}}}, func(_ []world.Entry, err error) { sent = err })
	down := s.receive(q, time.Hour, 0)
	s.run(time.Second)
	if !errors.Is(sent, world.ErrServer) || !errors.Is(down.err, world.ErrServer) || len(q.Messages()) != 1 {
		t.Errorf("down: a send %v, a receive %v, %d messages; want errors of the service and 1", sent, down.err, len(q.Messages()))
	}
	if n := s.loop.Noted()["finds the service down"]; n != 2 {
		t.Errorf("noted %d times, want 2", n)
	}
	s.Down = false
	up := s.receive(q, time.Hour, 0)
	s.run(2 * time.Second)
	if up.err != nil || len(up.ids) != 1 {
		t.Errorf("up again: %v, %v", up.ids, up.err)
	}
}
