package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/retry"
)

// Stage is where a message stands with a consumer and, if it waits, for what. It is a closed set,
// fit for a metric label.
type Stage uint8

// The stages. The messages of all but StageBackoff and StageGivenUp are held under lease.
const (
	// StageRunning: its handler runs.
	StageRunning = Stage(consumer.StageRunning)
	// StageSettling: SQS has not yet acknowledged what follows from its attempt.
	StageSettling = Stage(consumer.StageSettling)
	// StageBackoff: it is hidden in the queue until its retry is due.
	StageBackoff = Stage(consumer.StageBackoff)
	// StageDue: it is held until it is due.
	StageDue = Stage(consumer.StageDue)
	// StageGroup: it waits behind another message of its FIFO group.
	StageGroup = Stage(consumer.StageGroup)
	// StageBreaker: it waits until its circuit breaker lets it through.
	StageBreaker = Stage(consumer.StageBreaker)
	// StageKey: its key is paused.
	StageKey = Stage(consumer.StageKey)
	// StagePaused: the consumer is paused.
	StagePaused = Stage(consumer.StagePaused)
	// StageStopping: the consumer stops, and starts no handler any more.
	StageStopping = Stage(consumer.StageStopping)
	// StageAlone: it seems to crash the process, and runs when nothing else does.
	StageAlone = Stage(consumer.StageAlone)
	// StageOthers: another message runs alone, or is next to.
	StageOthers = Stage(consumer.StageOthers)
	// StagePlace: as many handlers run as may run at once.
	StagePlace = Stage(consumer.StagePlace)
	// StageRate: as many handlers have started as Config.Rate permits.
	StageRate = Stage(consumer.StageRate)
	// StageBatch: its batch is neither full nor due.
	StageBatch = Stage(consumer.StageBatch)
	// StageGivenUp: it is given up, and no dead-letter queue has accepted it.
	StageGivenUp = Stage(consumer.StageGivenUp)

	stages = StageGivenUp + 1
)

var stageNames = [stages]string{
	"running", "settling", "backoff", "due", "group", "breaker", "paused-key", "paused", "stopping", "alone", "others-alone", "place", "rate", "batch", "given-up",
}

// String returns the stage's name, fit for a metric label.
func (s Stage) String() string { return nameOf(stageNames[:], uint8(s), "Stage") }

// Standing is what a consumer knows of one message. Times are of this process's clock.
type Standing struct {
	// ID is the message's id, OriginID that of the first message if it is a copy.
	ID, OriginID string
	// GroupID is its FIFO group or, on a standard queue, its fair-queue group.
	GroupID string
	// Stage is where it stands.
	Stage Stage
	// Attempt is the number of its run: of the present one, of the last one if it is given up or
	// settling, else of the next. MaxAttempts is the policy's limit, the queue's included; zero:
	// there is none.
	Attempt, MaxAttempts int
	// Receives is SQS's count of receives when it was received last.
	Receives int
	// Since is when its run or the outage began. Zero: the stage has no beginning that is known.
	Since time.Time
	// Until is when its wait ends: when it is due, when the next probe is, when its batch is due,
	// when the rate permits its start. Zero: that is not known.
	Until time.Time
	// LeaseEnd is until when the message is held; the lease is renewed before. Zero: it is not held.
	LeaseEnd time.Time
	// Key is that of its breaker: see Outage.Key.
	Key string
	// Head is the id of the message of its FIFO group that it waits for. Empty: it waits for none.
	Head string
	// Outcome is what happens to it in StageSettling; otherwise it has no meaning.
	Outcome Outcome
	// Reason is why it comes again, or why it is given up. Zero: it has not failed, or this process
	// does not know.
	Reason retry.Reason
	// Problem is the beginning of the last error's text, or of that of its breaker. Empty: none is
	// known.
	Problem string
}

// Standing reports where a message stands that this process holds or has hidden until its retry,
// given the id that SQS has given it, or the id of the first message if it is a copy. It reports
// false for every other message: those that wait in the queue, those of other processes, and those
// beyond the 50,000 that are remembered. It may be called at any time from any goroutine.
func (c *Consumer) Standing(messageID string) (Standing, bool) {
	var s consumer.Standing
	var known bool
	c.look(func(m *consumer.Machine) { s, known = m.Standing(messageID, m.Now()) })
	if !known && c.retryLane != nil {
		return c.retryLane.Standing(messageID)
	}
	return Standing{
		ID: s.ID, OriginID: s.OriginID, GroupID: s.GroupID, Stage: Stage(s.Stage), Attempt: s.Attempt, MaxAttempts: s.MaxAttempts, Receives: s.Receives,
		Since: s.Since, Until: s.Until, LeaseEnd: s.LeaseEnd, Key: s.Key, Head: s.Head, Outcome: Outcome(s.Outcome), Reason: s.Reason, Problem: s.Problem,
	}, known
}
