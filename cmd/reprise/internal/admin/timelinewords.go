package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
)

// What consumers, operators and jobs do, in the sentences of the timeline.

// maxSaid bounds the text of an error within a sentence, and maxKey that of a key, in bytes.
const (
	maxSaid = 400
	maxKey  = 80
)

// said is the text of an error at the end of a sentence; empty: there is none.
func said(before string, err error) string {
	if err == nil {
		return ""
	}
	return before + terminal.Line(err.Error(), maxSaid)
}

// outage adds the opening and the closing of a breaker. Probes in between are as they should be.
func (t *timeline) outage(url string, o *reprise.OutageEvent) {
	name := "The circuit breaker"
	if o.Key != "" {
		name += " of key " + terminal.Line(o.Key, maxKey)
	}
	text := ""
	switch {
	case o.State == reprise.BreakerOpen && o.Previous == reprise.BreakerClosed:
		text = name + " opened" + said(": ", o.Err)
	case o.State == reprise.BreakerOpen && o.Previous == reprise.BreakerRamping:
		text = name + " opened again" + said(": ", o.Err)
	case o.State == reprise.BreakerRamping && o.Previous == reprise.BreakerClosed:
		text = name + " limits how many handlers run, because what they need is overloaded" + said(": ", o.Err)
	case o.State == reprise.BreakerClosed:
		text = fmt.Sprintf("%s closed after %s%s", name, operate.Ago(o.At.Sub(o.Since)), said("; last error: ", o.Err))
	default:
		return
	}
	t.add(url, TimelineEntry{At: o.At, Kind: KindBreaker, Text: text})
}

// givingUp adds the beginning and the end of a time in which many messages are given up.
func (t *timeline) givingUp(url string, g *reprise.GivingUp) {
	text := "Many messages are given up: " + g.String()
	if g.Over {
		text = fmt.Sprintf("Messages are no longer given up in large numbers: %s in %s", plural.Of(g.Total, "message"), operate.Ago(g.At.Sub(g.Since)))
	}
	t.add(url, TimelineEntry{At: g.At, Kind: KindFinding, Text: text})
}

// found adds a conflict between a policy and its queue.
func (t *timeline) found(url string, f *plan.Finding) {
	if f.Severity >= plan.Warning {
		t.add(url, TimelineEntry{Kind: KindFinding, Text: "The consumer found a problem: " + f.Problem})
	}
}

// quietFor is how long no message must have been given up, or none for such a reason and error, for the next one to be
// an entry.
const quietFor = 10 * time.Minute

// settled adds the first message that was given up for a while, and the first for a reason and an error that are new.
func (t *timeline) settled(url string, of *tally, s *reprise.Settled) {
	if s.Outcome != reprise.OutcomeDeadLetter && s.Outcome != reprise.OutcomeKeep {
		return
	}
	now := time.Now()
	err := of.lastError(s.Message.ID)
	before, unusual := of.gaveUp(s.Reason.String()+said(" ", err), now)
	quiet := now.Sub(before)
	if !before.IsZero() && quiet < quietFor && (!unusual || err == nil) {
		return
	}
	text := "A message was dead-lettered"
	if s.Outcome == reprise.OutcomeKeep {
		text = "A message was given up, and there is no dead-letter queue for it"
	}
	switch {
	case before.IsZero():
		text += ", the first since the process began"
	case quiet < quietFor:
		text += ", the first of its kind"
	default:
		text += ", the first for " + operate.Ago(quiet)
	}
	text += ": reason " + s.Reason.String() + said("; last error: ", err)
	t.add(url, TimelineEntry{At: now, Kind: KindDeadLetters, Text: text})
}

// deeds are what the actions of the audit log are in the timeline.
var deeds = map[string]struct{ kind, text string }{
	"pause":           {KindPause, "paused the consumer"},
	"resume":          {KindPause, "resumed the consumer"},
	"concurrency":     {KindLimits, "changed the concurrency"},
	"rate":            {KindLimits, "changed the rate"},
	"wake":            {KindAction, "had waiting messages retried now"},
	"probe":           {KindAction, "asked open breakers to probe now"},
	"send":            {KindAction, "sent a message"},
	"purge":           {KindAction, "purged the queue"},
	"faults":          {KindAction, "set the faults of the server"},
	"advance":         {KindAction, "moved the time of the server on"},
	MessageRelease:    {KindAction, "made a message visible"},
	MessageDelete:     {KindAction, "deleted a message"},
	MessageDeadLetter: {KindAction, "dead-lettered a message"},
	MessageDelay:      {KindAction, "delayed a message"},
	"cancel":          {KindJob, "cancelled a job"},
	"sign-in":         {KindSignIn, "signed in to the dashboard"},
}

// acted adds an action that the audit log has: with is what it was asked for with there, in JSON, and more are its
// further keys and values.
func (t *timeline) acted(name, queue, with, remote string, err error, more []any) {
	deed, known := deeds[name]
	if !known {
		deed.kind, deed.text = KindAction, name
	}
	e := TimelineEntry{}
	for i := 0; i+1 < len(more); i += 2 {
		id, _ := more[i+1].(string)
		switch more[i] {
		case "job":
			e.Job = id
		case "message":
			e.Message = id
		}
	}
	e.Kind = deed.kind
	e.Text = "An operator at " + remote + " " + deed.text
	if err != nil {
		e.Text = "An operator at " + remote + " asked for " + name + ", which failed"
	}
	if words := withWords(with); words != "" {
		e.Text += ", with " + terminal.Line(words, maxSaid)
	}
	e.Text += said(": ", err)
	t.add(queue, e)
}

// withWords is what an action was asked for with, which the audit log has in JSON, in words: without what is empty.
func withWords(with string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(with), &members); err != nil {
		return with
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		switch value := members[name].(type) {
		case nil:
		case []any:
			for _, one := range value {
				text += fmt.Sprint(" ", one)
			}
		case map[string]any: // none has one that people need
		default:
			text = strings.TrimSuffix(" "+fmt.Sprint(value), " ")
		}
		if text != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+text)
		}
	}
	return strings.Join(parts, ", ")
}

// jobBegan adds the beginning of a job, with what it was asked for with, and nothing of what it writes into messages.
func (t *timeline) jobBegan(j *Job) {
	deed := j.Action
	if j.DryRun {
		deed = "count what it would " + j.Action
	}
	parts := []string{fmt.Sprintf("An operator at %s began a job: %s", j.Remote, deed)}
	if words := j.With.Words(); words != "" {
		parts = append(parts, words)
	} else {
		parts = append(parts, "all messages")
	}
	if j.To != "" {
		parts = append(parts, "to "+operate.NameOf(j.To))
	}
	if words := j.Edit.WithoutContent().Words(); words != "" {
		parts = append(parts, words)
	}
	if j.Limit > 0 {
		parts = append(parts, fmt.Sprintf("at most %d", j.Limit))
	}
	if j.Rate > 0 {
		parts = append(parts, fmt.Sprintf("at most %g a second", j.Rate))
	}
	t.add(j.URL, TimelineEntry{At: j.Created, Kind: KindJob, Text: terminal.Line(strings.Join(parts, "; "), maxEntryText), Job: j.ID})
}

// jobEnded adds the end of a job, with its counts.
func (t *timeline) jobEnded(j *Job) {
	text := "The job " + j.Action
	if j.DryRun {
		text = "The count of what it would " + j.Action
	}
	text += map[string]string{JobDone: " ended", JobCancelled: " was cancelled", JobFailed: " failed"}[j.State]
	text += fmt.Sprintf(": %d looked at, %d matched", j.Looked, j.Matched)
	if !j.DryRun {
		text += fmt.Sprintf(", %d done", j.Done)
	}
	if j.Failed > 0 {
		text += fmt.Sprintf(", %d left", j.Failed)
	}
	if j.Problem != "" {
		text += ": " + terminal.Line(j.Problem, maxSaid)
	}
	t.add(j.URL, TimelineEntry{At: j.Ended, Kind: KindJob, Text: text, Job: j.ID})
}

// Reloaded notes that the process has read its settings again, and how many of its queues are as before; or why not.
func (e *Events) Reloaded(queues, unchanged int, err error) {
	text := fmt.Sprintf("The configuration was read again: %s, of which %d unchanged", plural.Of(queues, "queue"), unchanged)
	if err != nil {
		text = "The configuration was not read again, or not as a whole" + said(": ", err)
	}
	e.timeline.add("", TimelineEntry{Kind: KindReload, Text: text})
}
