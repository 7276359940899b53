package stranger_test

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// record is what a scenario has left: what a user, an operator and a colleague who watches SQS could see. Times
// count from the beginning of the scenario.
type record struct {
	mu       sync.Mutex
	began    time.Time
	over     time.Duration // when the processes that were still alive were stopped
	inTime   bool          // every message had its end by then
	cut      bool          // it took more requests than are worth their time: it was ended before
	requests int
	queueARN string
	queueURL string

	runs        []*run
	invocations []*invocation
	calls       []*call
	arrivals    []arrival
	errands     []*errandRun
	errandsLeft map[errandOf]bool // in their queues at the end
	attempts    []attempt
	settled     []settled
	expiring    []expiring
	copies      []copied
	transits    []transit
	samples     []sample
	processes   []*life
	sent        []sentMessage // by the message's number
	gone        []gone        // what each queue change did away with, seen by looking
	left        []sqsserver.MessageInfo
	letters     []sqsserver.MessageInfo
	known       map[string]bool    // ids that were in a reply
	readings    map[string]reading // of the letters' stories, by id
	stuck       string             // what kept the bubble from ending
	refused     error              // of New, for settings that should work
}

// run is one run of a handler. Of a batch each message has one.
type run struct {
	process            int
	message            int // the number in the scenario; -1: the body is not one of the scenario's
	id, origin, group  string
	attempt, receives  int
	sent, first        time.Time
	began, ended       time.Duration
	done               bool          // it has ended, and its process was alive then
	result             result        // of its step, unless it was interrupted
	err                string        // what the handler returned
	cause              string        // of the end of its context; empty: the context had not ended
	causeAt            time.Duration // when the handler noticed
	nth                int           // of the message's runs, as far as they were not killed or interrupted
	contentOK          bool
	step               step
	interrupted, batch bool
	invocation         *invocation // nil: of no function
}

// call is a call of a handler, of a message or a batch.
type call struct {
	process, queue int // queue: -1, or the number of a neighbour
	began, ended   time.Duration
}

// arrival is an event of Observer.Received.
type arrival struct {
	process, queue    int
	id                string
	at                time.Duration
	attempt, receives int
	duplicate         bool
}

// errandRun is a run of a handler of a neighbour.
type errandRun struct {
	process, neighbour, errand int
	id                         string
	began                      time.Duration
	receives                   int
	succeeded                  bool
}

// errandOf names an errand.
type errandOf struct{ neighbour, errand int }

// neighbourEnd is how a neighbour's consumer has stopped.
type neighbourEnd struct {
	neighbour int
	took      time.Duration
	err       error
	report    reprise.Report
}

// attempt is an event of Observer.Attempt.
type attempt struct {
	process, message int
	at               time.Duration
	n                int
	id, origin       string
	outcome          reprise.Outcome
	reason           retry.Reason
	due              time.Duration // 0: none
	ended            time.Duration
	err              error
	sent, first      time.Time
}

type settled struct {
	process, message int
	id               string
	at               time.Duration
	outcome          reprise.Outcome
	reason           retry.Reason
	due              time.Duration
	requeued         bool
}

type expiring struct {
	process, message int
	at, when         time.Duration
}

// copied is an entry of a SendMessageBatch of a consumer or of the sender.
type copied struct {
	process    int // -1: the sender
	message    int
	at         time.Duration
	letter     bool // to the dead-letter queue
	accepted   bool
	unanswered bool
}

// transit is how many messages with one body the queue and the lane had when a copy had been sent.
type transit struct {
	message, count int
	at             time.Duration
}

// sample is what the status of a process said.
type sample struct {
	process int
	at      time.Duration
	status  reprise.Status
	failing time.Duration // how long its receives have failed
}

// life is one process.
type life struct {
	settings            settings
	from, until         time.Duration // until: when Run returned or the process crashed; 0 while it lives
	stopped             time.Duration // when it was asked to stop
	crashed             bool
	err                 error
	report, laneReport  *reprise.Report
	events              []reprise.Report // of Observer.Stopped
	received            int              // messages in replies that arrived
	calls               reprise.Calls
	observed            reprise.Calls
	receiveFailedSince  time.Duration // -1: the last receive succeeded
	starting, attempted int
	receivedEvents      int // of Observer.Received
	duplicates          int // of those
	outages             []reprise.OutageEvent
	givingUp            []reprise.GivingUp
	pauses              []pauseSwitch
	pools               []reprise.PoolStatus
	neighbours          []neighbourEnd
	refusals            []string // operations that were refused, or not, against what their comments say
	findings            []string
	lossy               int // receives whose reply was lost
	slowestCall         time.Duration
	afterDeletes        []int
	program             *program // nil: New has not made it yet
}

// pauseSwitch is a pause, or its end, of a process or of one key.
type pauseSwitch struct {
	at  time.Duration
	key string // empty: of the whole process
	on  bool
}

// sentMessage is what the sender said of a message.
type sentMessage struct {
	done        bool
	at          time.Duration
	id          string
	err         error
	unconfirmed bool
}

// gone is a message that was in a queue at one look and not at the next.
type gone struct {
	message  int
	id       string
	from, at time.Duration
	received bool
	visible  bool // at the last look
	sent     time.Time
}

type reading struct {
	story     reprise.Story
	trusted   bool
	err       error
	contentOK bool // the letter is what was sent
}

// since returns the time from the beginning; 0 for a zero time.
func (r *record) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(r.began)
}

func (r *record) now() time.Duration { return time.Since(r.began) }

// number returns the number of the message that has this body.
func number(body string) int {
	digits, _, ok := strings.Cut(body, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n
}
