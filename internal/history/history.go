// Package history reads and writes what a copy of a message carries of the messages
// before it: how many attempts were made, when the first of these messages was sent,
// when the copy is due.
//
// SQS keeps no such notes, so they travel with the message, as JSON in one of its
// attributes. Anybody who may send to the queue can write them too. [Read] therefore
// believes a text only if all of it is plausible and was written for this queue at the
// time of this sending; what else to demand, such as a signature, is the caller's.
//
// The package is plain data and functions of what they are given. It has no clock: all
// times are SQS's.
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

// History is what a copy tells of the messages before it. Times are in milliseconds
// since 1970 by SQS's clock.
type History struct {
	Queue      string `json:"queue"`                // the name of the queue that the copy was sent to
	Origin     string `json:"origin"`               // the id of the first of these messages
	Generation int    `json:"generation,omitempty"` // how often one was brought back from a dead-letter queue
	Attempt    int    `json:"attempt"`              // runs of the handler before this copy
	Releases   int    `json:"releases,omitempty"`   // in a row, before this copy
	Sent       int64  `json:"sent"`                 // when the first message was sent and received
	First      int64  `json:"first"`
	NotBefore  int64  `json:"notBefore,omitempty"` // when the copy is due; 0: at once
	Error      string `json:"error,omitempty"`     // the last one, at most MaxError bytes
	SentAt     int64  `json:"sentAt"`              // when this was written
	Alone      int    `json:"alone,omitempty"`     // 1: nothing else is to run beside the message
	Trail      string `json:"trail,omitempty"`     // what an observer left of the last attempt
	// Unavailable reports that the message waits for a dependency that was unavailable.
	Unavailable bool `json:"unavailable,omitempty"`
}

const (
	// SignatureRoom is how many bytes a signature may add to what String returns.
	SignatureRoom = 92
	// MaxSize is how many bytes a history has at most, its signature included.
	MaxSize = 2<<10 + SignatureRoom
	// MaxError is how many bytes of an error are written. JSON makes six times as many
	// of them at most.
	MaxError = 200
	// MaxTrail is how many bytes a trail has at most.
	MaxTrail = 128
	// MaxOrigin is how many bytes the id of a message has at most.
	MaxOrigin = 128
	// MaxCount is the largest number of attempts, generations and releases that is
	// believed.
	MaxCount = 1_000_000
	// MaxAge is how far from its writing the times in a history are believed. Longer
	// waits and ages are written as this long.
	MaxAge = 366 * 24 * time.Hour
	// SendingTolerance is how far the time of writing may lie from the time at which SQS
	// says the message was sent: requests take time, and clocks differ. A message that
	// is redriven, or sent again by somebody else, was sent later than that.
	SendingTolerance = 2 * time.Minute
)

// Read returns the history that text tells, for a message that SQS says was sent at
// sent to the queue of that name. It returns an error unless all of it is plausible.
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
		return errors.New("its origin is no message id")
	case outside(h.Attempt, MaxCount) || outside(h.Generation, MaxCount) || outside(h.Releases, MaxCount) || outside(h.Alone, 1):
		return errors.New("one of its counts is out of bounds")
	case h.Sent > h.First || h.First > h.SentAt || h.Sent < h.SentAt-year:
		return errors.New("its times are out of order, or more than a year ago")
	case len(h.Error) > 3*MaxError: // JSON makes three bytes of one that is not UTF-8
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

// PlausibleTrail reports whether s may be what an observer has left of an attempt.
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
// message was sent and first received, both zero if SQS has not told. A due that is
// zero is at once. Times in the wrong order, or further away than Read believes, are
// moved to the nearest that it believes.
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

// String returns h as JSON. It has no characters that SQS refuses if h's texts have
// none.
func (h *History) String() string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)              // < is one byte, not six
	if err := encoder.Encode(h); err != nil { // strings and integers cannot fail
		return ""
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// Seed returns what the jitter of these messages is drawn from: the same for every copy
// and in every process, another after each redrive.
func (h *History) Seed() string {
	if h.Generation == 0 {
		return h.Origin
	}
	return h.Origin + "#" + strconv.Itoa(h.Generation)
}
