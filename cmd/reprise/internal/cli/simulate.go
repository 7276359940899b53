package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/simulate"
)

type simulateFlags struct {
	scenario string
	arrivals string
	replay   string
	fit      *simreport.Fit // of replay; nil: none

	retry                              string
	messages                           int
	rate                               float64
	lasts                              time.Duration
	bursts, outages                    []string
	takes, failing, permanent, always  string
	capacity                           string
	consumers, concurrency, prefetch   int
	lease, timeout, retention, horizon time.Duration
	maxReceives, groups                int
	fifo, noBreaker, probe, fluid      bool
	seed                               uint64

	comparing   bool
	sweep, find string
	report      reportFlags
}

// maxScenario bounds the files that are read: a series of a million periods has some megabytes.
const maxScenario = 16 << 20

// maxReplay bounds the events of an incident: a line of one attempt has some 250 bytes.
const maxReplay = 512 << 20

func (a *app) simulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [flags] [VARIANT...]",
		Short: "Say what a retry policy does, before production",
		Long: `Simulate a queue and its consumers: the consumer and the queue of this program, with
models of traffic, handlers, and the dependency that they call, in virtual time. A day
takes seconds. The same flags and seed give the same result, byte for byte.

The scenario comes from flags, or from a YAML file, which flags then change. Without
--horizon the simulation ends when every message is settled.

With --compare, each VARIANT is simulated on the same traffic with the same luck, and
the results are one table. A VARIANT is a policy, or parameters such as breaker=off,
or several of these with semicolons between; --sweep varies one parameter over a range.
--find marks what meets all conditions; if nothing does, the exit code is 1. Ctrl-C
ends the simulation, and what it has found until then is printed; the exit code is 1.

Of more than 10 million messages, or with --fluid, expected numbers are simulated, in
about a second: nearly the same, but for what chance does.

--replay reads what was measured in an incident, finds the failures and outages that
explain it, and prints what it found and simulated beside the measurements. Flags for
the policy and the fleet say what ran then; variants say what could have run.

Parameters: ` + simreport.ParameterNames() + `.
Metrics: ` + simreport.MetricNames() + `.`,
		Example: `  reprise simulate --messages 10000 --failing 20% --retry 'exponential(base=1s,max=5m)'
  reprise simulate --rate 50 --for 2h --outage 20m@30m --consumers 4 --compare breaker=on breaker=off
  reprise simulate --scenario orders.yaml --sweep base=1s..1m --find 'p99<10m, dead=0'
  reprise simulate --scenario orders.yaml -o html > orders.html
  reprise simulate --replay incident.csv --no-breaker --compare breaker=off breaker=on`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(func([]string) error { return a.runSimulate(&f, cmd.Flags().Changed, args) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.scenario, "scenario", "", "a YAML `file` with the scenario; - is the standard input")
	flags.StringVar(&f.arrivals, "arrivals", "", "a `file` with the metric NumberOfMessagesSent as CloudWatch gives it, JSON or CSV: as many messages arrive")
	flags.StringVar(&f.replay, "replay", "", "a `file` with an incident in periods, CSV or JSON: arrived, attempts, done; also oldest, takes, dead; or what tail -o json has printed")
	flags.StringVar(&f.retry, "retry", "", "retry `policy` (default: that of a consumer)")
	rename(flags, "policy", "retry")
	flags.IntVar(&f.messages, "messages", 0, "how many messages are in the queue at the start")
	flags.Float64Var(&f.rate, "rate", 0, "how many messages a second arrive, for as long as --for or --horizon")
	flags.DurationVar(&f.lasts, "for", 0, "how long messages arrive at --rate (default: until the horizon)")
	flags.StringArrayVar(&f.bursts, "burst", nil, "messages that arrive together: `N@AT`, such as 1000@5m; repeatable")
	flags.StringVar(&f.takes, "takes", "", "how long a run takes: 100ms, exponential(100ms), uniform(50ms,1s), lognormal(100ms,2s) (default 100ms)")
	flags.StringVar(&f.failing, "failing", "", "the `share` of attempts that fail, such as 20%; of the first, the second ...: 50%,20%; from a time on: 2%,15%@1h,2%@4h")
	flags.StringVar(&f.permanent, "permanent", "", "the `share` of messages that fail with a permanent error")
	flags.StringVar(&f.always, "always", "", "the `share` of messages of which every attempt fails")
	flags.StringArrayVar(&f.outages, "outage", nil, "an outage of what the handlers call: `FOR@AT`, such as 20m@1h; with :50% only of that share; repeatable")
	flags.StringVar(&f.capacity, "capacity", "", "how many requests a second that takes, such as `50/s` (default: no limit)")
	flags.IntVar(&f.consumers, "consumers", 0, "how many consumers there are (default 1)")
	flags.IntVar(&f.concurrency, "concurrency", 0, "how many handlers each runs at once (default 10)")
	flags.IntVar(&f.prefetch, "prefetch", 0, "how many messages may wait in each; negative: none (default 10)")
	flags.DurationVar(&f.lease, "lease", 0, "the visibility timeout of each receive (default 1m)")
	flags.DurationVar(&f.timeout, "timeout", 0, "when a run is ended (default: never)")
	flags.BoolVar(&f.noBreaker, "no-breaker", false, "no circuit breaker opens in an outage")
	flags.BoolVar(&f.probe, "probe", false, "a probe finds out whether the dependency is back")
	flags.BoolVar(&f.fifo, "fifo", false, "the queue is a FIFO queue")
	flags.IntVar(&f.groups, "groups", 0, "over how many groups its messages are spread (default 100)")
	flags.IntVar(&f.maxReceives, "max-receives", 0, "the queue's maxReceiveCount (default: none)")
	flags.DurationVar(&f.retention, "retention", 0, "how long the queue keeps messages (default 96h)")
	flags.DurationVar(&f.horizon, "horizon", 0, "when the simulation ends (default: when every message is settled)")
	flags.Uint64Var(&f.seed, "seed", 0, "selects the draws")
	flags.BoolVar(&f.fluid, "fluid", false, "simulate expected numbers, not single messages (default: for more than 10 million messages)")
	flags.BoolVar(&f.comparing, "compare", false, "compare the VARIANTs; with one, also the scenario as it is")
	flags.StringVar(&f.sweep, "sweep", "", "vary one parameter: `base=1s..1m`, or concurrency=10,20,50")
	flags.StringVar(&f.find, "find", "", "conditions on metrics, such as `'p99<10m, dead=0'`")
	f.report.register(flags, "csv", "svg", "html")
	cmd.AddCommand(a.simulateSchedule(), a.simulateContention(), a.simulateAsyncLambda())
	return cmd
}

func (a *app) runSimulate(f *simulateFlags, changed func(string) bool, args []string) error {
	variants, find, err := f.variants(a.stdin, changed, args)
	if err != nil {
		return usage(err)
	}
	for _, v := range variants {
		if err := v.Scenario.Validate(); err != nil {
			return usage(fmt.Errorf("the scenario is invalid%s:\n%w", labelled(v.Label), err))
		}
	}
	ctx, stop := a.interruptible()
	defer stop()
	report := simreport.Report{Find: find, Replay: f.fit}
	shown := a.progress()
	var interrupted error
	for i, v := range variants {
		result, err := simulate.Run(ctx, v.Scenario, func(p simulate.Progress) { shown.at(i, len(variants), p) })
		if result == nil {
			shown.done()
			return err
		}
		report.Runs = append(report.Runs, simreport.Run{Label: v.Label, Result: result})
		if interrupted = err; err != nil {
			break
		}
	}
	shown.done()
	if f.fit != nil && f.report.form.Index() == 0 {
		if _, err := io.WriteString(a.stdout, f.fit.Beside(report.Runs[0].Result)); err != nil {
			return err
		}
	}
	if err := a.printSimulation(&f.report, report); err != nil {
		return err
	}
	if interrupted != nil {
		return untilThen(interrupted)
	}
	if _, ok := report.Found(); !ok && len(find) > 0 {
		return errors.New("not all conditions of --find are met")
	}
	return nil
}

// untilThen tells that an interruption has cut what was printed short.
func untilThen(interrupted error) error {
	return fmt.Errorf("%w: the result is that until then", interrupted)
}

func labelled(label string) string {
	if label == "" {
		return ""
	}
	return " with " + strconv.Quote(label)
}

// variants reads the flags.
func (f *simulateFlags) variants(stdin io.Reader, changed func(string) bool, args []string) ([]simreport.Variant, simreport.Conditions, error) {
	var s simulate.Scenario
	var err error
	if f.scenario != "" {
		if s, err = readScenario(stdin, f.scenario); err != nil {
			return nil, nil, err
		}
	}
	if f.arrivals != "" {
		text, err := readBounded(stdin, f.arrivals, maxScenario)
		if err == nil {
			s.Traffic.Series, s.Traffic.Every, err = simreport.ReadArrivals(text)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--arrivals: %s: %w", f.arrivals, err)
		}
	}
	if f.replay != "" {
		if err := f.readIncident(stdin, &s); err != nil {
			return nil, nil, err
		}
	}
	if err := f.apply(&s, changed); err != nil {
		return nil, nil, err
	}
	var find simreport.Conditions
	if f.find != "" {
		if find, err = simreport.ReadConditions(f.find); err != nil {
			return nil, nil, fmt.Errorf("--find: %w", err)
		}
	}
	switch {
	case len(args) > 0 && !f.comparing:
		return nil, nil, fmt.Errorf("%q is an argument: pass a policy as --retry, or variants after --compare", args[0])
	case f.comparing && len(args) == 0:
		return nil, nil, errors.New("--compare has nothing to compare: pass variants, such as breaker=on breaker=off")
	case f.comparing && f.sweep != "":
		return nil, nil, errors.New("--compare and --sweep exclude each other: pass one")
	case f.sweep != "":
		all, err := simreport.Sweep(s, f.sweep)
		if err != nil {
			err = fmt.Errorf("--sweep: %w", err)
		}
		return all, find, err
	case !f.comparing:
		return []simreport.Variant{{Scenario: s}}, find, nil
	}
	var all []simreport.Variant
	if len(args) == 1 {
		all = append(all, simreport.Variant{Label: "as it is", Scenario: s})
	}
	for _, arg := range args {
		v, err := simreport.Vary(s, arg)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, v)
	}
	return all, find, nil
}

// readIncident changes s to the scenario that explains the incident of --replay.
func (f *simulateFlags) readIncident(stdin io.Reader, s *simulate.Scenario) error {
	if f.arrivals != "" {
		return errors.New("--replay and --arrivals exclude each other: the file of --replay has the arrivals")
	}
	text, err := readBounded(stdin, f.replay, maxReplay)
	var incident *simreport.Incident
	if err == nil {
		incident, err = simreport.ReadIncident(text)
	}
	if err != nil {
		return fmt.Errorf("--replay: %s: %w", f.replay, err)
	}
	f.fit = simreport.FitTo(incident)
	f.fit.Apply(s)
	return nil
}

func readScenario(stdin io.Reader, name string) (s simulate.Scenario, err error) {
	text, err := readBounded(stdin, name, maxScenario)
	if err == nil {
		s, err = simreport.ReadScenario(text)
	}
	if err != nil {
		err = fmt.Errorf("reading the scenario %s: %w", name, err)
	}
	return s, err
}

// readBounded reads a file, or the standard input if its name is a dash.
func readBounded(stdin io.Reader, name string, most int64) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it is larger than %d MiB", most>>20)
	}
	return text, err
}

func (a *app) printSimulation(f *reportFlags, r simreport.Report) error {
	return a.printReport(f, renderings{
		"table": func() ([]byte, error) {
			t := terminal.New(a.stdout.file, os.Getenv)
			return []byte(r.Text(t.Width(), t.Unicode())), nil
		},
		"json": r.JSON,
		"csv":  r.CSV,
		"svg":  func() ([]byte, error) { return []byte(r.SVG()), nil },
		"html": func() ([]byte, error) { return []byte(r.HTML()), nil },
	})
}
