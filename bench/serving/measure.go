package serving

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
)

// step is an operation of a subject.
type step struct {
	name string
	do   func(*subject) (load.Report, error)
	// Unmeasured work before and after it, and how many repetitions are a sample. Default: none,
	// once.
	before, after func(*subject) (load.Report, error)
	times         int
}

var (
	sending   = step{name: "send", do: func(s *subject) (load.Report, error) { return s.client.Send(s.messages) }}
	receiving = step{name: "receive", do: func(s *subject) (load.Report, error) { return s.client.Receive(s.messages) }}
	deleting  = step{name: "delete", do: func(s *subject) (load.Report, error) { return s.client.Delete() }}
	working   = step{name: "receive+delete", do: func(s *subject) (load.Report, error) { return s.client.Work(s.messages) }}
)

// sample is the cost of a step.
type sample struct {
	load.Report
	cpu time.Duration // of the server
}

func (s sample) rate() float64    { return float64(s.Messages) / s.Wall.Seconds() }
func (s sample) cpuEach() float64 { return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.Messages) }

func measure(of *subject, s step) (all sample, err error) {
	for range max(1, s.times) {
		if s.before != nil {
			if _, err := s.before(of); err != nil {
				return all, fmt.Errorf("%s: before %s: %w", of.name, s.name, err)
			}
		}
		before, err := of.process.CPU()
		if err != nil {
			return all, err
		}
		report, err := s.do(of)
		if err != nil {
			return all, fmt.Errorf("%s: %s: %w", of.name, s.name, err)
		}
		after, err := of.process.CPU()
		if err != nil {
			return all, err
		}
		all.Add(report)
		all.cpu += after - before
		if s.after != nil {
			if _, err := s.after(of); err != nil {
				return all, fmt.Errorf("%s: after %s: %w", of.name, s.name, err)
			}
		}
	}
	return all, nil
}

// samples are the samples of the subjects by step and round.
type samples map[string][][]sample

// interleave makes all subjects take all steps, rounds times after one warm-up; in each round one
// after the other, and in the opposite order in every second round, so that disturbances of the
// machine affect all alike.
func interleave(rounds int, subjects []*subject, steps ...step) (samples, error) {
	all := make(samples)
	for _, s := range steps {
		all[s.name] = make([][]sample, len(subjects))
	}
	for round := range rounds + 1 {
		for i := range subjects {
			if round%2 == 1 {
				i = len(subjects) - 1 - i
			}
			for _, s := range steps {
				got, err := measure(subjects[i], s)
				if err != nil {
					return nil, err
				}
				if round > 0 {
					all[s.name][i] = append(all[s.name][i], got)
				}
			}
		}
	}
	return all, nil
}

// median is the median of f over the samples.
func median(of []sample, f func(sample) float64) float64 {
	values := make([]float64, len(of))
	for i, s := range of {
		values[i] = f(s)
	}
	return middle(values)
}

// ratio is the median of the ratios, round by round.
func ratio(of, to []sample, f func(sample) float64) float64 {
	values := make([]float64, len(of))
	for i := range of {
		values[i] = f(of[i]) / f(to[i])
	}
	return middle(values)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// aim is the aim of a ratio; the zero value is none.
type aim struct {
	of          string // ratio: "rate" or "CPU"
	least, most float64
}

// verdict reports whether the aim is met.
func (a aim) verdict(rate, cpu float64) string {
	value := rate
	if a.of == ofCPU {
		value = cpu
	}
	switch {
	case a == aim{}:
		return ""
	case a.most > 0 && value <= a.most, a.least > 0 && value >= a.least:
		return a.String() + ": met"
	}
	return a.String() + ": missed"
}

const (
	ofRate = "rate"
	ofCPU  = "CPU"
)

func (a aim) String() string {
	if a.most > 0 {
		return fmt.Sprintf("%s ≤ %.2f", a.of, a.most)
	}
	return strings.TrimSpace(fmt.Sprintf("%s ≥ %.2f", a.of, a.least))
}

// line is a row of a table: a subject's samples of a step, and the samples with which they are
// compared.
type line struct {
	name   string
	of, to []sample // to: nil, nothing
	aim    aim
}

// table prints lines.
func (b *Bench) table(title, note string, lines []line) error {
	fmt.Fprintf(b.out, "%s\n%s\n\n", title, note)
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmessages/s\tserver CPU µs each\tp50 µs\tp99 µs\trate ratio\tCPU ratio\taim\t")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.0f\t%.0f\t", l.name, median(l.of, sample.rate), median(l.of, sample.cpuEach),
			median(l.of, func(s sample) float64 { return float64(s.Quantile(0.5).Microseconds()) }),
			median(l.of, func(s sample) float64 { return float64(s.Quantile(0.99).Microseconds()) }))
		if l.to == nil {
			fmt.Fprintln(t, "\t\t\t")
			continue
		}
		rate, cpu := ratio(l.of, l.to, sample.rate), ratio(l.of, l.to, sample.cpuEach)
		fmt.Fprintf(t, "%.2f\t%.2f\t%s\t\n", rate, cpu, l.aim.verdict(rate, cpu))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.out)
	return err
}

// medians describes how the figures of a table were computed.
func (b *Bench) medians(more ...string) string {
	return fmt.Sprintf("medians of %d rounds of %d messages of 1 KiB, batches of ten, all attributes%s", b.scale.Rounds, b.scale.Messages, strings.Join(more, ""))
}
