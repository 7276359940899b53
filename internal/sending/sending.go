// Package sending decides which messages a sender sends in which request, and when.
//
// A [Machine] is plain data and functions of the time. It has no clock, timer, goroutine or lock,
// makes no requests and calls no code of the user: its inputs change its state, and produce
// [Effect]s for the shell around it. After each input the shell carries out Effects, takes requests
// from Next until there are none, and calls Due when the time is Deadline. The same inputs give the
// same outputs.
package sending

import (
	"slices"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// SQS's limits of one request. The limit of bytes also applies to one message: bodies, and names,
// types and values of attributes.
const (
	MaxEntries = 10
	MaxBytes   = 1 << 20
)

// Settings are the settings of a [Machine]. None has a default.
type Settings struct {
	FIFO          bool          // messages of a group are sent one after the other
	Linger        time.Duration // how long a message waits for others to share its request
	Requests      int           // most requests under way
	MaxWaiting    int           // most messages that have room; negative: no limit
	MaxBytes      int           // the most bytes of them; negative: no limit
	Tries         int           // a message is given up after so many requests, except one refused because of another message; 0: never
	LastingTries  int           // the same where the last of them failed with Lasting
	ComplainEvery time.Duration // the least time between two Complain effects
	Retry         retry.Policy  // its Backoff and Jitter decide how long a failed message waits
	Seed          string        // of the jitter
}

// Message is one message in a [Machine]. The exported fields are set before Add and not changed
// afterwards.
type Message struct {
	Size  int
	Group string // on FIFO queues
	// Tell means that the shell tells the caller the answer: the message is finished only after
	// Told.
	Tell  bool
	Cargo any // the shell's own

	state      State
	number     uint64
	tries      int
	unsure     bool
	alone      bool      // a batch with it was refused because of the content of one of its messages
	at         time.Time // when it was handed over; in backoff, when it is due
	behind     *list     // FIFO queues: the messages behind the first of its group
	next, prev *Message
}

// State returns where the message is.
func (m *Message) State() State { return m.state }

// Tries returns how many requests with the message have ended.
func (m *Message) Tries() int { return m.tries }

// own returns how many requests with the message have ended, without the one that was refused because of
// another message in it: there is at most one, since the message goes alone from then on.
func (m *Message) own() int {
	if m.alone {
		return m.tries - 1
	}
	return m.tries
}

// Unsure reports whether SQS may have the message although it has not confirmed it.
func (m *Message) Unsure() bool { return m.unsure }

// Flush waits until every message that was handed over before has been answered.
type Flush struct {
	Cargo any // the shell's own

	upTo uint64
	left int
}

// Effect is an action for the shell.
type Effect struct {
	Kind    Kind
	From    State // of Message, before it was answered
	Message *Message
	Flush   *Flush // of Flushed
}

// Kind is what an [Effect] asks for.
type Kind uint8

// The kinds of effects.
const (
	Admitted  Kind = iota + 1 // a message that waited for room has it
	Answered                  // the message is answered by SQS's last reply about it
	GivenUp                   // the message is not sent (again), because of the input
	Abandoned                 // as GivenUp, but a request with the message is under way
	Complain                  // sending fails; the message is an example, and is sent again
	Flushed                   // all messages that Flush waited for are answered
)

// Verdict is the result of a request for a message.
type Verdict uint8

// The verdicts.
const (
	Taken        Verdict = iota // SQS has the message
	Failed                      // it failed, and may be accepted if it is sent again
	Lasting                     // the same, but the reason is likely to last
	Refused                     // it will not be accepted if it is sent again unchanged
	Unacceptable                // the request was refused because of the content of one of its messages
)

// Result is the verdict on a message, and whether the request may have been carried out for it
// without a confirmation.
type Result struct {
	Verdict Verdict
	Unsure  bool
}

// Machine is the order, the room, the batches and the retries of one sender. It is
// made by [New].
type Machine struct {
	set      Settings
	counts   [states]int      // messages in each state
	outside  list             // Outside
	ready    list             // Ready
	backoff  list             // Backoff, by the time when they are due
	groups   map[string]*list // FIFO queues: the messages behind the first of each group
	bytes    int              // of the messages that have room
	handed   uint64           // messages handed over so far: numbers them
	requests int              // under way
	retries  int              // requests with failures so far: numbers their jitter
	flushAt  time.Time        // when the ready messages have lingered enough; zero: none is ready
	flushes  []*Flush
	closing  bool // no more messages are accepted
	stopped  bool // no more messages are sent
	saidAt   time.Time
	effects  []Effect
}

// New returns a machine without messages.
func New(set Settings) *Machine {
	return &Machine{set: set, groups: make(map[string]*list)}
}

// Add accepts a message, or lets it wait until there is room. It must not be called when Closing.
func (m *Machine) Add(now time.Time, msg *Message) {
	m.handed++
	msg.number, msg.at = m.handed, now
	if m.outside.first != nil || !m.hasRoom(msg) {
		m.move(msg, Outside)
	} else {
		m.admit(msg)
	}
	m.follow(now)
}

// Withdraw gives up a message because its caller has gone. It does nothing if the
// message is answered.
func (m *Machine) Withdraw(now time.Time, msg *Message) {
	switch msg.state {
	case Outside, Behind, Ready, Backoff:
		m.answer(msg, GivenUp)
	case Requested:
		msg.unsure = true
		m.effect(Abandoned, msg)
		m.move(msg, Deserted)
	}
	m.follow(now)
}

// Drop gives up a message that Next returned and that is in no request yet. The shell
// takes it out of its batch.
func (m *Machine) Drop(now time.Time, msg *Message) {
	m.answer(msg, GivenUp)
	m.follow(now)
}

// Replied handles the end of a request: results are those of batch, by position.
func (m *Machine) Replied(now time.Time, batch []*Message, results *[MaxEntries]Result) {
	m.requests--
	seed := ""
	var again *Message
	for i, msg := range batch {
		verdict := results[i].Verdict
		msg.tries++
		msg.unsure = msg.unsure || results[i].Unsure
		switch {
		case verdict == Taken:
			m.answer(msg, Answered)
		case m.stopped, msg.state == Deserted:
			m.answer(msg, GivenUp)
		case verdict == Unacceptable && len(batch) > 1:
			msg.alone = true // whichever message it is, it must not fail the others
			m.move(msg, Ready)
		case verdict == Unacceptable, verdict == Refused, m.isSpent(msg, verdict):
			m.answer(msg, Answered)
		default:
			if seed == "" { // messages that have failed equally often share a request again
				m.retries++
				seed = m.set.Seed + " " + strconv.Itoa(m.retries)
			}
			if msg.own() > 1 {
				again = msg
			}
			msg.at = now.Add(m.set.Retry.Wait(seed, msg.own()))
			m.move(msg, Backoff)
		}
	}
	if again != nil && now.Sub(m.saidAt) >= m.set.ComplainEvery {
		m.saidAt = now
		m.effect(Complain, again)
	}
	m.follow(now)
}

// isSpent reports whether a message that failed has been in as many requests as it may.
func (m *Machine) isSpent(msg *Message, verdict Verdict) bool {
	return m.set.Tries > 0 && msg.own() >= m.set.Tries || verdict == Lasting && msg.own() >= m.set.LastingTries
}

// Told notes that the caller knows the answer to the message.
func (m *Machine) Told(now time.Time, msg *Message) {
	m.move(msg, Gone)
	m.follow(now)
}

// Hurry ends the linger of all messages handed over so far. An effect reports when all of them are
// answered.
func (m *Machine) Hurry(now time.Time, f *Flush) {
	f.upTo, f.left = m.handed, m.inside()+m.counts[Outside]+m.counts[Telling]
	if f.left == 0 {
		m.effects = append(m.effects, Effect{Kind: Flushed, Flush: f})
		return
	}
	m.flushes = append(m.flushes, f)
	if m.ready.first != nil {
		m.flushAt = now
	}
	m.follow(now)
}

// Forget notes that no caller waits for f any more.
func (m *Machine) Forget(f *Flush) {
	m.flushes = slices.DeleteFunc(m.flushes, func(other *Flush) bool { return other == f })
}

// Close gives up the messages that wait for room, and hurries the others.
func (m *Machine) Close(now time.Time, f *Flush) {
	for m.outside.first != nil {
		m.answer(m.outside.first, GivenUp)
	}
	m.closing = true
	m.Hurry(now, f)
}

// Closing reports whether Close was called: no more messages are accepted.
func (m *Machine) Closing() bool { return m.closing }

// Stop ends the sending: there is no further request, and messages that fail in the current ones
// are given up.
func (m *Machine) Stop() { m.stopped = true }

// Discard gives up all messages that are in no request, after Stop.
func (m *Machine) Discard(now time.Time) {
	for m.backoff.first != nil {
		m.answer(m.backoff.first, GivenUp)
	}
	for m.ready.first != nil { // the next of a group becomes ready as its first is answered
		m.answer(m.ready.first, GivenUp)
	}
	m.follow(now)
}

// Due notes that the time is Deadline.
func (m *Machine) Due(now time.Time) { m.follow(now) }

// Effects returns the effects of the inputs since the last call of Done.
func (m *Machine) Effects() []Effect { return m.effects }

// Done notes that the Effects have been carried out.
func (m *Machine) Done() {
	clear(m.effects) // they would keep messages in memory
	m.effects = m.effects[:0]
}

// Idle reports whether no message has room.
func (m *Machine) Idle() bool { return m.inside() == 0 }

// Waiting returns how many messages have room, and how many wait for it.
func (m *Machine) Waiting() (inside, outside int) { return m.inside(), m.counts[Outside] }

// Next returns the messages of the next request; nil while there is none to make.
func (m *Machine) Next(now time.Time) []*Message {
	if m.stopped || m.requests >= m.set.Requests || !m.isDue(now) {
		return nil
	}
	m.requests++
	batch := make([]*Message, 0, min(MaxEntries, m.ready.count))
	bytes := 0
	for msg := m.ready.first; msg != nil && len(batch) < MaxEntries && bytes+msg.Size <= MaxBytes; msg = m.ready.first {
		if msg.alone && len(batch) > 0 {
			break
		}
		m.move(msg, Requested)
		batch = append(batch, msg)
		bytes += msg.Size
		if msg.alone {
			break
		}
	}
	return batch
}

// isDue reports whether a request should be made: it would be full, has lingered enough, or a
// message waits for its room.
func (m *Machine) isDue(now time.Time) bool {
	if m.ready.first == nil {
		return false
	}
	return m.ready.count >= MaxEntries || m.ready.bytes >= MaxBytes || m.outside.first != nil || !now.Before(m.flushAt)
}

// Deadline returns when the shell must call Due; zero: never. The shell calls it after Next has
// returned nil; the result is later than the time of that call.
func (m *Machine) Deadline() (at time.Time) {
	if m.stopped {
		return at
	}
	if m.ready.first != nil && m.requests < m.set.Requests {
		at = m.flushAt
	}
	if first := m.backoff.first; first != nil && (at.IsZero() || first.at.Before(at)) {
		at = first.at
	}
	return at
}
