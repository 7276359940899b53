// Package simreport reads scenarios, varies them, and writes the results of package simulate as text, JSON,
// CSV, SVG or a page of HTML. It makes no calls and reads no files.
package simreport

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/yamltext"
	"github.com/reprise-sqs/reprise/simulate"
)

// Report is what is shown.
type Report struct {
	Runs []Run
	// Find has the conditions that are looked for, if any.
	Find Conditions
	// Replay is the incident that the runs repeat, the first one as it was; nil: there is none.
	Replay *Fit
}

// Run is a simulation of a report.
type Run struct {
	// Label tells it from the others; empty if it is alone.
	Label  string
	Result *simulate.Result
}

// ReadScenario reads a scenario from YAML, of which JSON is a part. Unknown keys are errors.
func ReadScenario(text []byte) (simulate.Scenario, error) {
	var s simulate.Scenario
	if _, err := yamltext.Parse(text); err != nil {
		return s, err
	}
	err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict())
	return s, err
}

// title is the scenario in a line or two.
func title(s simulate.Scenario) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Name != "" {
		add("%s", s.Name)
	}
	parts = append(parts, arriving(s.Traffic)...)
	for _, one := range s.Pool {
		add("%s: %s", one.Name, strings.Join(arriving(one.Traffic), " and "))
	}
	h := s.Handler
	add("runs of %v", h.Takes)
	if text := failingText(h); text != "" {
		add("%s", text)
	}
	if h.Permanent > 0 {
		add("%s permanently", percent(h.Permanent))
	}
	if h.Always > 0 {
		add("%s at every attempt", percent(h.Always))
	}
	if c := s.Dependency.Capacity; c > 0 {
		add("a capacity of %s a second", number(c))
	}
	for _, o := range s.Dependency.Outages {
		add("an outage of %s at %s", short(o.For), short(o.At))
	}
	fleet := fmt.Sprintf("%d × %d handlers", s.Fleet.Consumers, s.Fleet.Concurrency)
	if n := s.Fleet.Batch.Size; n > 1 {
		fleet += fmt.Sprintf(" of batches of %d", n)
	}
	if s.Fleet.RetryLane.Weight > 0 {
		fleet += " with a retry lane"
	}
	if len(s.Pool) > 0 {
		fleet += " that " + queueNames(s) + " share"
	}
	if s.Fleet.NoBreaker {
		fleet += " without a breaker"
	}
	add("%s", fleet)
	return strings.Join(parts, "; ")
}

// arriving lists which messages arrive.
func arriving(t simulate.Traffic) (parts []string) {
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if t.Backlog > 0 {
		add("%s messages at the start", grouped(t.Backlog))
	}
	if t.Rate > 0 {
		text := fmt.Sprintf("%s messages a second", number(t.Rate))
		if t.For > 0 {
			text += " for " + short(t.For)
		}
		add("%s", text)
	}
	for _, b := range t.Bursts {
		add("%s more at %s", grouped(b.Messages), short(b.At))
	}
	if len(t.Series) > 0 {
		add("arrivals of %d periods of %s", len(t.Series), short(t.Every))
	}
	return parts
}

// policyText is the policy of a scenario that was simulated.
func policyText(s simulate.Scenario) string {
	text, err := s.Policy.MarshalText()
	if err != nil {
		return err.Error() // only if a backoff is a function, which no text can make
	}
	return string(text)
}

// short is d as tables show it: "80ms", "1.5s", "12m", "1h30m", "4d6h".
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "never"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	d = d.Round(time.Second)
	text := ""
	if days := d / (24 * time.Hour); days > 0 {
		text, d = fmt.Sprintf("%dd", days), d%(24*time.Hour)
	}
	if d > 0 || text == "" {
		text += d.String()
	}
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// grouped is n with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// number is x without needless digits.
func number(x float64) string {
	if x >= 1000 {
		return grouped(int(x + 0.5))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// brief is x as it fits beside a chart.
func brief(x float64) string {
	switch {
	case x >= 1e10:
		return fmt.Sprintf("%.3g bn", x/1e9)
	case x >= 1e7:
		return fmt.Sprintf("%.4g m", x/1e6)
	}
	return number(x)
}

func percent(p float64) string { return strconv.FormatFloat(100*p, 'f', -1, 64) + " %" }
