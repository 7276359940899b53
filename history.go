package reprise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/plan"
)

// HistoryAttribute is the message attribute in which a message that was requeued,
// which is a copy, carries what happened before it, as JSON. It belongs to the
// consumer: handlers do not see it, dead letters do not carry it, and one that
// was not written for this sending to this queue is ignored; with
// [Config].SigningKeys, so is one that is not signed by one of them.
const HistoryAttribute = "reprise-history"

// history is what a copy says of the messages before it. Without Config.SigningKeys
// whoever may send to the queue can forge it: it can delay or give up the message that
// carries it, and claim another's origin, by which nothing may be settled alone (see
// Message.IdempotencyKey). Times are in milliseconds of SQS's clock.
type history struct {
	Queue      string `json:"queue"`                // its name: a history is worth nothing elsewhere
	Origin     string `json:"origin"`               // the id under which the lineage began
	Generation int    `json:"generation,omitempty"` // how often it was brought back from a dead-letter queue
	Attempt    int    `json:"attempt"`              // runs of the handler made before this copy
	Releases   int    `json:"releases,omitempty"`   // in a row, before this copy
	Sent       int64  `json:"sent"`                 // when the lineage was sent and first received
	First      int64  `json:"first"`
	NotBefore  int64  `json:"notBefore,omitempty"` // when the copy is due; 0: at once
	Error      string `json:"error,omitempty"`     // the last, shortened
	SentAt     int64  `json:"sentAt"`              // when this was written
	Alone      int    `json:"alone,omitempty"`     // 1: it is to run alone, see quarantine.go
	Trail      string `json:"trail,omitempty"`     // of the last attempt, see trail.go
	// It waits for want of what its handler needs.
	Unavailable bool `json:"unavailable,omitempty"`

	enqueued time.Time // SQS's times of the copy itself
	arrived  time.Time //
	due      time.Time // NotBefore on our clock
}

const (
	maxHistory      = 2<<10 + maxSignature // bytes
	maxHistoryError = 200                  // of which JSON makes six times as many at most
	maxOrigin       = 128
	maxCount        = 1_000_000
	// maxHistoryAge is how far from its writing the times in a history are believed.
	// Longer waits and ages are written as so long.
	maxHistoryAge = 366 * 24 * time.Hour
	// sendingTolerance is how far a history's own time may lie from SQS's of its
	// sending: requests take time, and clocks differ. A message that is redriven or
	// sent again by somebody else has a later one, and starts anew.
	sendingTolerance = 2 * time.Minute
)

// codeHistoryIgnored is the code of the finding that histories do not count.
const codeHistoryIgnored = "history-ignored"

// recallHistory takes in the history that d carries, if it carries one. The caller
// does not hold c.mu.
func (c *Consumer) recallHistory(d *delivery) {
	attribute, ok := d.raw.MessageAttributes[HistoryAttribute]
	if !ok {
		return
	}
	d.msg.Attributes = withoutHistory(d.raw.MessageAttributes)
	text := deref(attribute.StringValue)
	h, err := readHistory(text, c.queue.name, d.msg.Sent)
	if err == nil && c.queue.fifo {
		err = errors.New("messages of FIFO queues are never copied")
	}
	var untrusted error
	if err == nil && len(c.cfg.SigningKeys) > 0 {
		untrusted = signed{historyKind, c.queue.place(), d.msg.digest()}.verify(text, c.cfg.SigningKeys)
	}
	if err != nil || untrusted != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ignoreHistory(d, err, untrusted)
		return
	}
	h.enqueued, h.arrived = d.msg.Sent, d.msg.FirstReceived
	if h.NotBefore > 0 {
		h.due = c.clock.local(time.UnixMilli(h.NotBefore))
	}
	d.history = h
	d.msg.OriginID, d.msg.Trail = h.Origin, h.Trail
	d.msg.Sent, d.msg.FirstReceived = time.UnixMilli(h.Sent), time.UnixMilli(h.First)
}

// ignoreHistory reports that d's history does not count: because of err or, if all of it
// is plausible, because it cannot be trusted. The caller holds c.mu.
func (c *Consumer) ignoreHistory(d *delivery, err, untrusted error) {
	c.counts.Untrusted++
	remedy := "none, if it was redriven or sent again; otherwise find out who sends the attribute " + HistoryAttribute + "."
	if err == nil {
		err = untrusted
		remedy = "give all consumers of the queue the same Config.SigningKeys; if they have them, find out who sends the attribute " + HistoryAttribute + "."
		c.complainLater("untrusted", "messages carry a history that none of the signing keys vouches for: they start anew",
			"message", *d.msg, "problem", untrusted, "remedy", remedy)
	}
	c.findLater(plan.Finding{
		Severity: plan.Info,
		Code:     codeHistoryIgnored,
		Problem:  fmt.Sprintf("message %s carries a history that does not count: %v. It starts anew.", d.msg.ID, err),
		Remedy:   remedy,
	})
}

// signHistory signs the history of a copy that is about to be sent. It reads the whole
// body: the caller does not hold c.mu.
func (c *Consumer) signHistory(e *types.SendMessageBatchRequestEntry) {
	if len(c.cfg.SigningKeys) == 0 {
		return
	}
	a := e.MessageAttributes[HistoryAttribute]
	content := contentDigest(deref(e.MessageBody), deref(e.MessageGroupId), e.MessageAttributes, HistoryAttribute)
	a.StringValue = aws.String(signed{historyKind, c.copyTo.place(), content}.sign(deref(a.StringValue), c.cfg.SigningKeys))
	e.MessageAttributes[HistoryAttribute] = a
}

// readHistory reads the history of a message that SQS says was sent at sent to
// the queue of that name. It returns an error unless everything in it is plausible.
func readHistory(text, queue string, sent time.Time) (*history, error) {
	if len(text) > maxHistory {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxHistory)
	}
	h := new(history)
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(h); err != nil {
		return nil, fmt.Errorf("it is not a JSON object of the expected fields: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	year := maxHistoryAge.Milliseconds()
	tolerance := sendingTolerance.Milliseconds()
	switch apart := h.SentAt - sent.UnixMilli(); {
	case h.Queue != queue:
		return nil, errors.New("it is of another queue")
	case sent.IsZero() || h.SentAt <= 0 || apart > tolerance || apart < -tolerance:
		return nil, errors.New("it was written for another sending")
	case !plausibleOrigin(h.Origin):
		return nil, errors.New("its origin is no message id")
	case h.Attempt < 0 || h.Attempt > maxCount, h.Generation < 0 || h.Generation > maxCount, h.Releases < 0 || h.Releases > maxCount, h.Alone < 0 || h.Alone > 1:
		return nil, errors.New("one of its counts is out of bounds")
	case h.Sent > h.First || h.First > h.SentAt || h.Sent < h.SentAt-year:
		return nil, errors.New("its times are out of order, or more than a year ago")
	case len(h.Error) > 3*maxHistoryError: // JSON makes three bytes of one that is no UTF-8
		return nil, errors.New("its error is longer than any that is written")
	case h.Trail != "" && !plausibleTrail(h.Trail):
		return nil, errors.New("its trail is not one that an attempt can have left")
	case h.NotBefore < 0 || h.NotBefore > h.SentAt+year:
		return nil, errors.New("it is due in more than a year")
	}
	return h, nil
}

// plausibleOrigin says that s may be a message id: printable ASCII, not too long.
func plausibleOrigin(s string) bool { return printable(s) && s != "" && len(s) <= maxOrigin }

// printable says that s is printable ASCII without spaces.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// withoutHistory is attributes as the sender attached them. The map itself belongs
// to the client.
func withoutHistory(attributes map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	if _, ok := attributes[HistoryAttribute]; !ok {
		return attributes
	}
	if len(attributes) == 1 {
		return nil
	}
	own := maps.Clone(attributes)
	delete(own, HistoryAttribute)
	return own
}

// historyFor is the history that a copy of d, sent now, carries. The caller holds
// c.mu.
func (c *Consumer) historyFor(d *delivery, now time.Time) types.MessageAttributeValue {
	v := d.verdict
	h := history{
		Queue:    c.copyTo.name,
		Origin:   d.msg.OriginID,
		Attempt:  d.msg.Attempt - 1,
		Releases: c.releases(d, now),
		Trail:    d.msg.Trail,
		SentAt:   c.clock.server(now).UnixMilli(),

		Unavailable: v.unavailable,
	}
	if past := d.history; past != nil {
		h.Generation, h.Error = past.Generation, past.Error
	}
	if v.outcome == OutcomeRetry {
		h.Attempt, h.Releases = d.msg.Attempt, 0
	}
	// What SQS did not say, what lies ahead of the clock as we know it, or what is
	// further away than anybody believes, would make the history implausible.
	year := maxHistoryAge.Milliseconds()
	h.First, h.Sent = h.SentAt, h.SentAt
	if !d.msg.FirstReceived.IsZero() {
		h.First = min(h.SentAt, max(h.SentAt-year, d.msg.FirstReceived.UnixMilli()))
	}
	if !d.msg.Sent.IsZero() {
		h.Sent = min(h.First, max(h.SentAt-year, d.msg.Sent.UnixMilli()))
	}
	if v.due.After(now) {
		due := c.clock.server(v.due.Add(time.Millisecond - 1)).UnixMilli() // rounded up
		h.NotBefore = min(h.SentAt+year, due)
	}
	if v.err != nil {
		h.Error = shorten(forSQS.Replace(v.err.Error()), maxHistoryError)
	}
	if v.alone {
		h.Alone = 1
	}
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(h.String())}
}

// String is h as JSON, in characters that SQS accepts.
func (h *history) String() string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)              // < is one byte, not six
	if err := encoder.Encode(h); err != nil { // strings and integers cannot fail
		return ""
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// seed is what the jitter of d's lineage is drawn from: the same for every copy
// and in every process, another after each redrive.
func (d *delivery) seed() string {
	if d.history == nil || d.history.Generation == 0 {
		return d.msg.OriginID
	}
	return d.msg.OriginID + "#" + strconv.Itoa(d.history.Generation)
}

// made is how many runs of the handler d's history tells of.
func (d *delivery) made() int {
	if d.history == nil {
		return 0
	}
	return d.history.Attempt
}

// enqueued is when d itself was sent, by SQS's clock: its retention counts from
// there. Its lineage may be older.
func (d *delivery) enqueued() time.Time {
	if d.history == nil {
		return d.msg.Sent
	}
	return d.history.enqueued
}

// hops is how many of d's receives were certainly no attempts: a copy that arrives
// before it is due is parked.
func (c *Consumer) hops(d *delivery) int {
	if h := d.history; h != nil && h.due.After(c.clock.local(h.arrived)) {
		return 1
	}
	return 0
}

// countsFrom is the instant, on our clock, since which d's own receives can have
// been attempts: its first receive or, for a copy that was parked, its due time.
func (c *Consumer) countsFrom(d *delivery) time.Time {
	if d.history == nil {
		return c.clock.local(d.msg.FirstReceived)
	}
	from := c.clock.local(d.history.arrived)
	if d.history.due.After(from) {
		return d.history.due
	}
	return from
}
