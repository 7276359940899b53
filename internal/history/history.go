// Package history reads and writes the history that a copy of a message carries: how many attempts
// were made before, when the first message was sent, when the copy is due.
//
// SQS does not store these facts, so they are in the message, as JSON in one of its attributes.
// Anybody who may send to the queue can write them too. [Read] therefore accepts a text only if all
// of it is plausible and was written for this queue at the time of this send; further checks, such
// as of a signature, are the caller's.
//
// The package is plain data and functions of their arguments. It has no clock: all times are SQS's.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// History is what a copy carries about the messages before it. Times are in milliseconds since 1970
// by SQS's clock.
type History struct {
	Queue      string `json:"queue"`                // the name of the queue that the copy was sent to
	Origin     string `json:"origin"`               // the id of the first of these messages
	Generation int    `json:"generation,omitempty"` // how often a message was brought back from a dead-letter queue
	Attempt    int    `json:"attempt"`              // runs of the handler before this copy
	Releases   int    `json:"releases,omitempty"`   // in a row, before this copy
	Sent       int64  `json:"sent"`                 // when the first message was sent and received
	First      int64  `json:"first"`
	NotBefore  int64  `json:"notBefore,omitempty"` // when the copy is due; 0: at once
	Error      string `json:"error,omitempty"`     // the last one, at most MaxError bytes
	SentAt     int64  `json:"sentAt"`              // when this was written
	Alone      int    `json:"alone,omitempty"`     // 1: the message must run alone
	Trail      string `json:"trail,omitempty"`     // the observer's trail of the last attempt
	// Unavailable reports that the copy waits for a dependency that was unavailable when it was
	// sent: the wait may be cut short when the dependency answers again.
	Unavailable bool `json:"unavailable,omitempty"`
	// Losses is how many of a thousand receives came to nothing, although no process died, where the
	// message was found to have to run alone. The process that receives the copy may just have
	// started, and have measured nothing yet. Versions that do not know it leave it out.
	Losses int `json:"losses,omitempty"`
}

// Attribute is the message attribute in which a copy carries its history.
const Attribute = "reprise-history"

const (
	// SignatureRoom is how many bytes a signature may add to what String returns.
	SignatureRoom = 92
	// MaxSize is how many bytes a history has at most, its signature included.
	MaxSize = 2<<10 + SignatureRoom
	// MaxError is how many bytes of an error are written. In JSON they take at most six times as
	// many.
	MaxError = 200
	// MaxTrail is how many bytes a trail has at most.
	MaxTrail = 128
	// MaxOrigin is how many bytes the id of a message has at most.
	MaxOrigin = 128
	// MaxCount is the largest number of attempts, generations and releases that is accepted.
	MaxCount = 1_000_000
	// MaxLosses is the largest share of receives that come to nothing, in thousandths.
	MaxLosses = 1000
	// MaxAge is the largest accepted distance of the times in a history from the time of its
	// writing. Longer waits and ages are written as this long.
	MaxAge = 366 * 24 * time.Hour
	// SendingTolerance is how far the time of writing may be from SQS's time of the send: requests
	// take time, and clocks differ. A message that is redriven, or sent again by another sender,
	// was sent later than that.
	SendingTolerance = 2 * time.Minute
)

// Read returns the history in text, for a message that was sent at sent, by SQS's clock, to the
// queue of that name. It returns an error unless all of it is plausible.
func Read(text, queue string, sent time.Time) (History, error) {
	if len(text) > MaxSize {
		return History{}, fmt.Errorf("it has %d bytes, more than %d", len(text), MaxSize)
	}
	h := new(History)
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(h); err != nil {
		return History{}, fmt.Errorf("it is not a JSON object of the expected fields: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return History{}, errors.New("something follows the JSON object")
	}
	if err := h.check(queue, sent); err != nil {
		return History{}, err
	}
	return *h, nil
}

// check returns an error unless everything in h is plausible.
func (h *History) check(queue string, sent time.Time) error {
	year := MaxAge.Milliseconds()
	tolerance := SendingTolerance.Milliseconds()
	switch apart := h.SentAt - sent.UnixMilli(); {
	case h.Queue != queue:
		return errors.New("it is of another queue")
	case sent.IsZero() || h.SentAt <= 0 || apart > tolerance || apart < -tolerance:
		return errors.New("it was written for another sending")
	case !printable(h.Origin, MaxOrigin):
		return errors.New("its origin is not a message id")
	case outside(h.Attempt, MaxCount) || outside(h.Generation, MaxCount) || outside(h.Releases, MaxCount) || outside(h.Alone, 1) || outside(h.Losses, MaxLosses):
		return errors.New("one of its counts is out of bounds")
	case h.Sent > h.First || h.First > h.SentAt || h.Sent < h.SentAt-year:
		return errors.New("its times are out of order, or more than a year ago")
	case len(h.Error) > 3*MaxError: // JSON replaces a byte that is not UTF-8 by three
		return errors.New("its error is longer than any that is written")
	case h.Trail != "" && !PlausibleTrail(h.Trail):
		return errors.New("its trail is not one that an attempt can have left")
	case h.NotBefore < 0 || h.NotBefore > h.SentAt+year:
		return errors.New("it is due in more than a year")
	}
	return nil
}

// outside reports whether n is not one of 0 to most.
func outside(n, most int) bool { return n < 0 || n > most }

// PlausibleTrail reports whether s may be an observer's trail.
func PlausibleTrail(s string) bool { return printable(s, MaxTrail) }

// printable reports whether s is one to most characters of printable ASCII, none of
// them a space.
func printable(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// Date sets h's times for a copy that is sent at now and is due at due: when the first
// message was sent and first received, both zero if SQS has not reported them. A zero due means at
// once. Times in the wrong order, or further away than Read accepts, are moved to the nearest
// accepted time.
func (h *History) Date(now, sent, firstReceived, due time.Time) {
	year := MaxAge.Milliseconds()
	h.SentAt = now.UnixMilli()
	h.First, h.NotBefore = h.SentAt, 0
	if !firstReceived.IsZero() {
		h.First = min(h.SentAt, max(h.SentAt-year, firstReceived.UnixMilli()))
	}
	h.Sent = h.First
	if !sent.IsZero() {
		h.Sent = min(h.First, max(h.SentAt-year, sent.UnixMilli()))
	}
	if !due.IsZero() {
		h.NotBefore = min(h.SentAt+year, due.Add(time.Millisecond-1).UnixMilli()) // rounded up
	}
}

// String returns h as JSON. It has characters that SQS refuses only if h's texts have some.
func (h *History) String() string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)              // < is one byte, not six
	if err := encoder.Encode(h); err != nil { // strings and integers cannot fail
		return ""
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// Seed returns the seed of the jitter for these messages: the same for every copy and in every
// process, but another after each redrive.
func (h *History) Seed() string {
	if h.Generation == 0 {
		return h.Origin
	}
	return h.Origin + "#" + strconv.Itoa(h.Generation)
}
