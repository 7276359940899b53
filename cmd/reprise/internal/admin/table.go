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
		for _, text := range c.wrong(now) {
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
	state, rate := c.Health, ""
	if c.Paused {
		state = "paused"
	}
	if c.Rate != 0 {
		rate = strconv.FormatFloat(c.Rate, 'g', 6, 64) + "/s"
	}
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		name, fmt.Sprintf("%d/%d", c.Running, c.Concurrency), rate, strconv.Itoa(c.Waiting), strconv.Itoa(c.InBackoff),
		n(c.Counts.Deleted), n(c.Counts.Retried), n(c.Counts.DeadLettered), state,
	}
}

// wrong returns the consumer's problems, which keys wait, until when, and which command ends it.
func (c *Consumer) wrong(now time.Time) (texts []string) {
	for _, b := range c.Breakers {
		name := "the breaker"
		if b.Key != "" {
			name = "key " + b.Key
		}
		switch {
		case b.Paused:
			texts = append(texts, name+" is paused")
		case b.State == "open" && !b.NextProbe.IsZero():
			texts = append(texts, fmt.Sprintf("%s is open for %s and holds %s, next probe in %s, or now by reprise probe %s: %s",
				name, operate.Ago(now.Sub(b.Since)), plural.Of(b.Held, "message"), operate.Ago(b.NextProbe.Sub(now)), c.Queue, b.Problem))
		case b.State != "closed":
			texts = append(texts, fmt.Sprintf("%s is %s: %s", name, b.State, b.Problem))
		}
	}
	if c.Paused {
		texts = append(texts, "paused until reprise resume "+c.Queue)
	}
	if c.InBackoff > 0 {
		texts = append(texts, fmt.Sprintf("%s in backoff: reprise wake %s starts their next attempts now", plural.Of(c.InBackoff, "message"), c.Queue))
	}
	if len(c.Breakers) == 0 && c.Problem != "" {
		texts = append(texts, c.Problem)
	}
	return texts
}
