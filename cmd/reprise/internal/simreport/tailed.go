package simreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// tailed is a line of reprise tail -o json, as far as it is used.
type tailed struct {
	Event      string    `json:"event"`
	Queue      string    `json:"queue"`
	At         time.Time `json:"at"`
	Message    string    `json:"message"`
	Origin     string    `json:"origin"`
	Sent       time.Time `json:"sent"`
	DurationMS float64   `json:"duration_ms"`
	Outcome    string    `json:"outcome"`
	Events     int       `json:"events"` // of a line about events that were left out
}

// tailWidths are the lengths of periods that are chosen, and tailPeriods how many there are at the
// most: each has to have enough attempts to tell the share that fails.
var tailWidths = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour}

const tailPeriods = 240

// mostLost is the share of events that a process may have left out.
const mostLost = 0.01

// isTail reports whether JSON is that of reprise tail.
func isTail(text []byte) bool {
	var first struct {
		Event *string `json:"event"`
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(&first) == nil && first.Event != nil
}

// incidentOfTail counts the attempts that reprise tail -o json has shown, by the periods in which they
// ended. A message that was sent before the first of them arrives in the first period. Messages
// that were never tried are not known.
func incidentOfTail(text []byte) (*Incident, error) {
	var attempts []tailed
	lost := 0
	in := json.NewDecoder(bytes.NewReader(text))
	for line := 1; ; line++ {
		var e tailed
		switch err := in.Decode(&e); {
		case errors.Is(err, io.EOF):
			return countTail(attempts, lost)
		case err != nil:
			return nil, fmt.Errorf("event %d is not as reprise tail -o json writes it: %w", line, err)
		}
		switch e.Event {
		case "lost":
			lost += e.Events
		case "attempt":
			if e.At.IsZero() || e.Message == "" || !(e.DurationMS >= 0 && e.DurationMS < 1e9) {
				return nil, fmt.Errorf("event %d is an attempt without a time, a message or a duration: pass the lines of reprise tail -o json as they are", line)
			}
			if len(attempts) > 0 && e.Queue != attempts[0].Queue {
				return nil, fmt.Errorf("event %d is of queue %q, the first of %q: take the lines of one queue, as of reprise tail %s -o json", line, e.Queue, attempts[0].Queue, attempts[0].Queue)
			}
			attempts = append(attempts, e)
		}
	}
}

func countTail(attempts []tailed, lost int) (*Incident, error) {
	if len(attempts) == 0 {
		return nil, errors.New("no attempt is among the events: record them with reprise tail QUEUE -o json")
	}
	if float64(lost) > mostLost*float64(lost+len(attempts)) {
		return nil, fmt.Errorf("%d events are missing beside %d attempts, because the process did more than it could show: record --type attempt alone, or take your metrics", lost, len(attempts))
	}
	start, end := attempts[0].began(), attempts[0].At
	for _, e := range attempts {
		if began := e.began(); began.Before(start) {
			start = began
		}
		if e.At.After(end) {
			end = e.At
		}
	}
	every := tailWidths[len(tailWidths)-1]
	for _, width := range tailWidths {
		if end.Sub(start)/width < tailPeriods {
			every = width
			break
		}
	}
	start = start.Truncate(every)
	n := int(end.Sub(start)/every) + 1
	if n > 10*tailPeriods {
		return nil, fmt.Errorf("the events are of %v: take those of %v at most", end.Sub(start).Round(time.Hour), 10*tailPeriods*every)
	}
	result := &Incident{Start: start, Every: every, Periods: make([]Period, max(n, 2)), HasTakes: true, HasDead: true}
	known := make(map[string]bool, len(attempts))
	for _, e := range attempts {
		id := e.Message
		if e.Origin != "" {
			id = e.Origin
		}
		if !known[id] {
			known[id] = true
			sent := e.Sent
			if sent.IsZero() || sent.After(e.At) { // SQS's clock may be ahead of the process's
				sent = e.began()
			}
			result.Periods[max(0, sent.Sub(start)/every)].Arrived++
		}
		p := &result.Periods[e.At.Sub(start)/every]
		p.Takes += time.Duration(e.DurationMS * float64(time.Millisecond)) // the sum, at first
		p.Attempts++
		switch e.Outcome {
		case "delete":
			p.Done++
		case "dead-letter":
			p.Dead++
		}
	}
	for i := range result.Periods {
		if p := &result.Periods[i]; p.Attempts > 0 {
			p.Takes /= time.Duration(p.Attempts)
		}
	}
	return result, nil
}

// began is when the attempt began.
func (e *tailed) began() time.Time {
	return e.At.Add(-time.Duration(e.DurationMS * float64(time.Millisecond)))
}
