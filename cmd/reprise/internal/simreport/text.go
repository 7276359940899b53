package simreport

import (
	"fmt"
	"strings"

	"github.com/reprise-sqs/reprise/simulate"
)

// Text is the report for people: of one run all that was found, of several a table with a row for each.
// Lines of charts have at most so many columns.
func (r Report) Text(columns int, unicode bool) string {
	var b strings.Builder
	if len(r.Runs) == 1 && r.Runs[0].Label == "" {
		r.one(&b, r.Runs[0].Result, columns, unicode)
	} else {
		r.several(&b, columns, unicode)
	}
	if len(r.Find) > 0 {
		b.WriteString("\n" + r.verdict() + "\n")
	}
	return b.String()
}

func (r Report) one(b *strings.Builder, one *simulate.Result, columns int, unicode bool) {
	s, m, a := one.Scenario, one.Messages, one.Attempts
	line := func(label, format string, args ...any) {
		fmt.Fprintf(b, "%-11s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("scenario", "%s", title(s))
	line("policy", "%s", policyText(s))
	line("ended", "%s, after %s", one.Stop, short(one.Ended))
	b.WriteString("\n")
	line("messages", "%s: %s done, %s dead, %s expired, %s left", grouped(m.Arrived), grouped(m.Done), grouped(m.Dead), grouped(m.Expired), grouped(m.Left))
	line("attempts", "%s, %.2f a message: %s", grouped(a.Started), float64(a.Started)/float64(max(m.Arrived, 1)), ends(a))
	if w := a.Wasted(); w > 0 {
		line("wasted", "%s attempts (%.0f %%) that could not have helped", grouped(w), 100*float64(w)/float64(max(a.Started, 1)))
	}
	line("dependency", "at most %s requests in a second", grouped(one.PeakRequests))
	line("in flight", "at most %s of %s", grouped(one.PeakInFlight), grouped(s.Queue.InFlightQuota))
	q := one.Requests
	line("requests", "%s to SQS: %s", grouped(q.Total()), requests(q))
	line("cost", "%s, for %s units of 64 KB", money(one.Cost()), grouped(q.Units))
	for _, v := range one.Outages {
		line("outage", "of %s at %s: %s unsettled at its end, %s before; at most %s requests in a second after it", short(v.For), short(v.At), grouped(v.Backlog), grouped(v.Open), grouped(v.Peak))
		line("", "as before %s after its end; all that waited settled %s", after(v.Recovered), after(v.Cleared))
	}
	fmt.Fprintf(b, "\n%-11s %8s %8s %8s %8s %8s %8s %8s\n", "", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
	for _, row := range []struct {
		name string
		q    simulate.Quantiles
	}{{"first try", one.Wait}, {"done", one.Latency}} {
		fmt.Fprintf(b, "%-11s %8s %8s %8s %8s %8s %8s %8s\n", row.name, short(row.q.Mean), short(row.q.P50), short(row.q.P90), short(row.q.P95), short(row.q.P99), short(row.q.P999), short(row.q.Most))
	}
	b.WriteString(queuesTable(r.Runs))
	b.WriteString("\n" + attemptsChart(one.PerMessage, columns, unicode))
	for _, p := range panels {
		b.WriteString("\n" + p.about + "\n\n" + chart(one, p.value, columns, unicode))
	}
	for _, note := range one.Notes {
		fmt.Fprintf(b, "\nnote: %s\n", note)
	}
}

// ends lists how attempts ended, leaving out what did not occur.
func ends(a simulate.Attempts) string {
	return listed([]counted{
		{a.Succeeded, "succeeded"}, {a.Failed, "failed"}, {a.Permanent, "failed permanently"}, {a.Unavailable, "in an outage"},
		{a.Rejected, "beyond the capacity"}, {a.Cut, "cut short"}, {a.Repeated, "of these repeated"}, {a.Running, "running"},
	})
}

func requests(q simulate.Requests) string {
	return listed([]counted{
		{q.Sends, "sends"}, {q.Receives, "receives"}, {q.EmptyReceives, "empty receives"}, {q.Deletes, "deletes"}, {q.Hides, "waits"},
		{q.Renewals, "heartbeats"}, {q.Wakes, "wakes"}, {q.Copies, "copies"}, {q.DeadLetters, "dead letters"}, {q.Failed, "of these failed"},
	})
}

type counted struct {
	n    int
	what string
}

func listed(all []counted) string {
	var parts []string
	for _, c := range all {
		if c.n > 0 {
			parts = append(parts, grouped(c.n)+" "+c.what)
		}
	}
	return strings.Join(parts, ", ")
}

// several is a table of the runs, with what the dependency sees in each.
func (r Report) several(b *strings.Builder, columns int, unicode bool) {
	if len(r.Runs) == 0 {
		b.WriteString("nothing was simulated\n")
		return
	}
	fmt.Fprintf(b, "%-11s %s\n\n", "scenario", title(r.Runs[0].Result.Scenario))
	rows := [][]string{{""}}
	for _, m := range metrics {
		if m.shown {
			rows[0] = append(rows[0], m.name)
		}
	}
	for i, one := range r.Runs {
		row := []string{r.mark(one) + key(i)}
		for _, m := range metrics {
			if m.shown {
				row = append(row, m.text(one.Result))
			}
		}
		rows = append(rows, row)
	}
	b.WriteString(table(rows))
	b.WriteString("\n")
	for i, one := range r.Runs {
		fmt.Fprintf(b, "%s  %s\n", key(i), one.Label)
	}
	b.WriteString(queuesTable(r.Runs))
	if len(r.Runs) <= 4 {
		p := panels[0]
		most := 0.0
		for _, one := range r.Runs {
			most = max(most, largest(one.Result, p.value, columns))
		}
		for i, one := range r.Runs {
			fmt.Fprintf(b, "\n%s  %s\n\n%s", key(i), p.about, chartTo(one.Result, p.value, most, columns, unicode))
		}
	}
}

// key is the short name of a run.
func key(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprint(i + 1)
}

// mark tells the runs that fulfil the conditions.
func (r Report) mark(one Run) string {
	switch {
	case len(r.Find) == 0:
		return ""
	case len(r.Find.unmet(one.Result)) == 0:
		return "* "
	}
	return "  "
}

func (r Report) verdict() string {
	if found, ok := r.Found(); ok {
		if found.Label == "" {
			return "found: every condition is met"
		}
		return "found: " + found.Label
	}
	if len(r.Runs) == 1 {
		return "not met: " + strings.Join(r.Runs[0].unmetOf(r.Find), ", ")
	}
	return "none of the variants meets every condition"
}

func (one Run) unmetOf(c Conditions) []string { return c.unmet(one.Result) }

// table aligns columns to the right, the first to the left.
func table(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "%-*s", widths[i], cell)
			} else {
				fmt.Fprintf(&b, "  %*s", widths[i], cell)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
