package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// ConsumersText is a line for each consumer, at most width columns wide, and
// below them their problems.
func ConsumersText(consumers []Consumer, now time.Time, width int) string {
	t := operate.Table{
		Header: []string{"queue", "running", "rate", "waiting", "backoff", "deleted", "retried", "dead", "state"},
		Right:  []bool{false, true, true, true, true, true, true, true, false},
	}
	var problems strings.Builder
	add := func(name string, c *Consumer) {
		t.Rows = append(t.Rows, c.row(name))
		for _, text := range c.Problems(now) {
			fmt.Fprintf(&problems, "%s: %s\n", terminal.Line(name, maxShown), terminal.Line(text, maxShown))
		}
	}
	for i := range consumers {
		add(consumers[i].Queue, &consumers[i])
		if lane := consumers[i].RetryLane; lane != nil {
			add("lane "+lane.Queue, lane)
		}
	}
	return t.WithoutEmpty().Text(width) + problems.String()
}

func (c *Consumer) row(name string) []string {
	rate := ""
	if c.Rate != 0 {
		rate = strconv.FormatFloat(c.Rate, 'g', 6, 64) + "/s"
	}
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		name, fmt.Sprintf("%d/%d", c.Running, c.Concurrency), rate, strconv.Itoa(c.Waiting), strconv.Itoa(c.InBackoff),
		n(c.Counts.Deleted), n(c.Counts.Retried), n(c.Counts.DeadLettered), c.State(),
	}
}

// State is the consumer's state in a word or two: that of its breaker says more than "degraded".
func (c *Consumer) State() string {
	if c.Paused {
		return "paused"
	}
	for _, b := range c.Breakers {
		if b.Key == "" && b.State != "closed" {
			return "breaker " + b.State
		}
	}
	return c.Health
}

// Trouble is something about a consumer that an operator should know, and the action of the API that ends it.
type Trouble struct {
	Text string
	// Action is the action, and Key the key that it is for. Default: nothing can be done, or all messages.
	Action, Key string
	// Open reports that the breaker of all messages is not closed.
	Open bool
}

// Problems returns the consumer's problems, which keys wait, until when, and which command ends it.
func (c *Consumer) Problems(now time.Time) (texts []string) {
	for _, t := range c.troubles(now, c.Queue) {
		texts = append(texts, t.Text)
	}
	return texts
}

// Troubles are the same without commands, for pages that offer the actions themselves.
func (c *Consumer) Troubles(now time.Time) []Trouble { return c.troubles(now, "") }

// troubles names the commands about a queue; empty: none.
func (c *Consumer) troubles(now time.Time, queue string) (all []Trouble) {
	for _, b := range c.Breakers {
		name := "the breaker"
		if b.Key != "" {
			name = "key " + b.Key
		}
		switch {
		case b.Paused:
			all = append(all, Trouble{Text: name + " is paused", Action: "resume", Key: b.Key})
		case b.State != "closed":
			t := Trouble{Text: fmt.Sprintf("%s is %s: %s; %s; last error: %s", name, b.State, b.Outage(now), b.Next(now, queue), b.Problem), Key: b.Key, Open: b.Key == ""}
			if b.State == "open" {
				t.Action = "probe"
			}
			all = append(all, t)
		}
	}
	until, wake := ": nothing is received until it is resumed", "their next attempts come when they are due"
	if queue != "" {
		until, wake = " until reprise resume "+queue, "reprise wake "+queue+" starts their next attempts now"
	}
	if c.Paused {
		all = append(all, Trouble{Text: "paused" + until, Action: "resume"})
	}
	if c.InBackoff > 0 {
		text := plural.Of(c.InBackoff, "message") + " in backoff: " + wake
		if c.BackoffProblem != "" {
			text += "; last error: " + c.BackoffProblem
		}
		all = append(all, Trouble{Text: text, Action: "wake"})
	}
	if len(c.Breakers) == 0 && c.Problem != "" {
		all = append(all, Trouble{Text: c.Problem})
	}
	return all
}

// Outage is since when the dependency is unavailable, and how many messages are held for it. A ramp may
// follow an overload as well.
func (b *Breaker) Outage(now time.Time) string {
	what := "outage"
	if b.State == "ramping" {
		what = "outage or overload"
	}
	return fmt.Sprintf("%s since %s (%s), %s held", what, operate.Clock(b.Since, now), operate.Ago(now.Sub(b.Since)), plural.Of(b.Held, "message"))
}

// Next is what the breaker does by itself, and when; for a queue that is named also the command that has it done now.
func (b *Breaker) Next(now time.Time, queue string) string {
	switch {
	case b.State == "open" && b.NextProbe.IsZero():
		return "a probe is due, and starts with the next message"
	case b.State == "open" && b.NextProbe.Sub(now) < time.Second:
		return "the next probe starts now"
	case b.State == "open" && queue == "":
		return "next probe in " + operate.Ago(b.NextProbe.Sub(now))
	case b.State == "open":
		return fmt.Sprintf("next probe in %s, or now by reprise probe %s", operate.Ago(b.NextProbe.Sub(now)), queue)
	case b.State == "half-open":
		return "a probe runs now"
	}
	return fmt.Sprintf("the dependency answers again: at most %s at once, more as they succeed", plural.Of(b.Level, "handler"))
}
