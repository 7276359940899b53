package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// asyncFlags are those of simulate async-lambda that are not fields of the simulation.
type asyncFlags struct {
	failing, takes, receive string
	outages                 []string
	articleAge              bool
	report                  reportFlags
}

func (a *app) simulateAsyncLambda() *cobra.Command {
	var f asyncFlags
	var s simulate.AsyncLambda
	cmd := &cobra.Command{
		Use:   "async-lambda [POLICY...]",
		Short: "Simulate an asynchronous Lambda function with a retry queue",
		Long: `Simulate an asynchronous Lambda function whose failures go to a retry queue: the retry
handler hides each record until the policy says that the function is due, and invokes it
again, until it succeeds or its event is given up. Each POLICY is simulated with the same
events; without one it is that of a retry handler: waits between 1 s and 2^(n-1) s, at
most 12 h, for 24 h.

With --article-age each policy is also simulated with the age as the program takes it
that was published with "Async Lambda Function Retries with Backoff and Jitter": below
24 h it counts as 24 h, and a wait that ends beyond it is waited out in vain.`,
		Example: `  reprise simulate async-lambda
  reprise simulate async-lambda --over 24h --failing 1% --outage 3h@6h
  reprise simulate async-lambda 'exponential(base=1s) jitter=from-base attempts=unlimited age=6h' --article-age`,
		Args: cobra.ArbitraryArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Events, "events", 10_000, "how many events the function is invoked for")
	flags.DurationVar(&s.Over, "over", 0, "the time over which they come (default: all at once)")
	flags.StringVar(&f.takes, "takes", "100ms", "how long a run takes: 100ms, exponential(100ms), uniform(50ms,1s), lognormal(100ms,2s)")
	flags.StringVar(&f.failing, "failing", "", "the `share` of runs that fail (default 100%, with --outage 0%)")
	flags.StringArrayVar(&f.outages, "outage", nil, "a time in which runs fail: `FOR@AT`, such as 20m@1h; with :50% only that share; repeatable")
	flags.IntVar(&s.LambdaRetries, "lambda-retries", 0, "how often Lambda itself runs the function again first, 0 to 2; a retry handler wants 0")
	flags.StringVar(&f.receive, "receive", "1s", "how long a visible message waits to be received, written like --takes")
	flags.BoolVar(&f.articleAge, "article-age", false, "simulate each policy also with the age as the article's program takes it")
	flags.DurationVar(&s.Horizon, "horizon", 48*time.Hour, "when the simulation ends")
	flags.Uint64Var(&s.Seed, "seed", 0, "selects the draws")
	f.report.register(flags, "csv", "svg")
	cmd.RunE = run(func(args []string) error {
		policies, err := f.read(&s, args)
		if err != nil {
			return usage(err)
		}
		return a.runAsyncLambda(s, policies, f)
	})
	return cmd
}

// read checks the flags, sets what they say, and returns the policies.
func (f *asyncFlags) read(s *simulate.AsyncLambda, args []string) (policies []retry.Policy, err error) {
	if s.Events < 1 {
		return nil, fmt.Errorf("--events is %d: pass at least 1", s.Events)
	}
	if s.LambdaRetries < 0 || s.LambdaRetries > 2 {
		return nil, fmt.Errorf("--lambda-retries: the number of Lambda's own retries is %d: set 0 to 2", s.LambdaRetries)
	}
	if err := s.Takes.UnmarshalText([]byte(f.takes)); err != nil {
		return nil, fmt.Errorf("--takes: %w", err)
	}
	if err := s.Receive.UnmarshalText([]byte(f.receive)); err != nil {
		return nil, fmt.Errorf("--receive: %w", err)
	}
	for _, text := range f.outages {
		o, err := readOutage(text)
		if err != nil {
			return nil, fmt.Errorf("--outage: %w", err)
		}
		s.Outages = append(s.Outages, o)
	}
	switch {
	case f.failing != "":
		if s.Fails, err = simreport.ReadShare(f.failing); err != nil {
			return nil, fmt.Errorf("--failing: %w", err)
		}
	case len(s.Outages) == 0:
		s.Fails = 1
	}
	for _, arg := range args {
		var p retry.Policy
		if err := p.UnmarshalText([]byte(arg)); err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	if len(policies) == 0 {
		policies = append(policies, retry.Policy{}) // that of a retry handler
	}
	return policies, nil
}

// runAsyncLambda simulates each policy, and prints the results.
func (a *app) runAsyncLambda(s simulate.AsyncLambda, policies []retry.Policy, f asyncFlags) error {
	ages := []bool{false}
	if f.articleAge {
		ages = append(ages, true)
	}
	ctx, stop := a.interruptible()
	defer stop()
	shown := a.progress()
	var all simreport.AsyncLambdas
	var interrupted error
simulating:
	for _, s.Policy = range policies {
		for _, s.ArticleAge = range ages {
			number := len(all) + 1
			s.Progress = func(events int) {
				shown.show(func() string {
					return fmt.Sprintf("simulating %d of %d: %d of %d events", number, len(policies)*len(ages), events, s.Events)
				})
			}
			r, err := simulate.RunAsyncLambda(ctx, s)
			if r == nil {
				return usage(err)
			}
			all = append(all, r)
			if interrupted = err; err != nil {
				break simulating
			}
		}
	}
	shown.done()
	if err := a.printAs(&f.report, all.Text, all.JSON, all.CSV, all.SVG); err != nil {
		return err
	}
	if interrupted != nil {
		return untilThen(interrupted)
	}
	return nil
}
