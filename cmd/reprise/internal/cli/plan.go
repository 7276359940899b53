package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/review"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

type planFlags struct {
	aws        awsFlags
	retry      string
	timeout    time.Duration
	rate       float64
	via        string
	parameters []string
	report     reportFlags
	failOn     string
}

// The values of --fail-on and --via.
var (
	planFailOn = []string{"error", "warning", "never"}
	planVias   = []string{plan.ViaAuto.String(), plan.ViaVisibility.String(), plan.ViaRequeue.String()}
)

// maxPlanned bounds the files that are read: a Terraform plan of a large system has some megabytes.
const maxPlanned = 256 << 20

func (a *app) plan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan (QUEUE|FILE|POLICY)...",
		Short: "Show what a retry policy does on a queue, before production",
		Long: `Compare the retry policy of --retry with queues: when each attempt of a message that
always fails comes, which limit ends the attempts, what conflicts, with the remedy, and
the least permissions that a consumer needs. No message is touched.

  QUEUE   a queue that exists, by name or URL
  FILE    a SAM or CloudFormation template, or a Terraform plan or state as printed
          by terraform show -json; its name contains a dot or a slash; - is the
          standard input. All queues in it are reviewed, except those that only
          take the dead letters of others
  POLICY  a policy such as 'exponential(base=2s,max=1h) attempts=20', on its own

What a file cannot tell before it is deployed is left out, and reported.

With findings of severity error the exit code is 1, so that the command can be a gate
in CI; --fail-on changes the severity. -o sarif is for code scanning, markdown
for comments on a change.

` + aboutOperatorEndpoint,
		Example: `  reprise plan orders --retry 'exponential(base=2s,max=1h) attempts=20'
  reprise plan template.yaml --param Stage=prod -o sarif > plan.sarif
  terraform show -json plan.bin | reprise plan - --fail-on warning
  reprise plan 'exponential(base=5s,max=12h) attempts=30'`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(args []string) error { return a.runPlan(&f, args) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.retry, "retry", "", "retry `policy` (default \""+delivery.PolicyText(retry.Policy{})+"\")")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one attempt may take; of a Lambda function its own timeout counts")
	flags.Float64Var(&f.rate, "rate", 0, "messages a second that are expected, to check quotas (default: not checked)")
	flags.StringVar(&f.via, "via", plan.ViaAuto.String(), "how waits are carried out: "+strings.Join(planVias, ", "))
	flags.StringArrayVar(&f.parameters, "param", nil, "a parameter of the template: `name=value`; repeatable")
	f.report.register(flags, "sarif", "markdown")
	flags.StringVar(&f.failOn, "fail-on", planFailOn[0], "the least severity with which the exit code is 1: "+strings.Join(planFailOn, ", "))
	f.aws.register(flags)
	return cmd
}

func (a *app) runPlan(f *planFlags, args []string) error {
	policy, settings, err := f.settings()
	if err != nil {
		return usage(err)
	}
	parameters, err := parseParameters(f.parameters)
	if err != nil {
		return usage(err)
	}
	ctx, stop := a.interruptible()
	defer stop()
	report := review.Report{Policy: policy}
	for _, arg := range args {
		p := policy
		subjects, notes, own, err := f.subjects(ctx, a.stdin, arg, parameters)
		if err != nil {
			return err
		}
		if own != nil {
			if len(args) > 1 {
				return usage(fmt.Errorf("%q is a policy: pass it alone, or as --retry for the queues", arg))
			}
			p, report.Policy = *own, *own
		}
		report.Notes = append(report.Notes, notes...)
		for _, s := range subjects {
			one, err := review.New(p, s, settings)
			if err != nil {
				return err
			}
			report.Reviews = append(report.Reviews, one)
		}
	}
	if err := a.printPlan(f, report); err != nil {
		return err
	}
	return f.verdict(report)
}

// settings reads the flags.
func (f *planFlags) settings() (p retry.Policy, s plan.Settings, err error) {
	if err := p.UnmarshalText([]byte(f.retry)); err != nil {
		return p, s, fmt.Errorf("--retry: %w", err)
	}
	via := slices.Index(planVias, f.via)
	switch {
	case f.timeout <= 0:
		return p, s, fmt.Errorf("--timeout is %v: pass how long one attempt may take, like 30s", f.timeout)
	case !(f.rate >= 0 && f.rate < 1e9):
		return p, s, fmt.Errorf("--rate is %g: pass the messages a second that are expected, or leave it out", f.rate)
	case via < 0:
		return p, s, fmt.Errorf("--via is %q: pass %s", f.via, strings.Join(planVias, ", "))
	case !slices.Contains(planFailOn, f.failOn):
		return p, s, fmt.Errorf("--fail-on is %q: pass %s", f.failOn, strings.Join(planFailOn, ", "))
	}
	return p, plan.Settings{HandlerTimeout: f.timeout, Via: plan.Via(via), Rate: f.rate}, nil
}

// subjects returns what an argument names: the queues of a file, one queue, or a policy.
func (f *planFlags) subjects(ctx context.Context, stdin io.Reader, arg string, parameters map[string]string) ([]review.Subject, []review.Note, *retry.Policy, error) {
	switch {
	case strings.ContainsAny(arg, "(= ") && !strings.Contains(arg, "://"):
		var p retry.Policy
		if err := p.UnmarshalText([]byte(arg)); err != nil {
			return nil, nil, nil, usage(err)
		}
		return []review.Subject{{Name: "none", Assumed: true}}, nil, &p, nil
	case isFile(arg):
		subjects, notes, err := f.readFile(stdin, arg, parameters)
		return subjects, notes, nil, err
	}
	s, err := f.liveSubject(ctx, arg)
	return []review.Subject{s}, nil, nil, err
}

// isFile tells a file from a queue, whose name contains no dot but that of .fifo.
func isFile(arg string) bool {
	return arg == "-" || !strings.Contains(arg, "://") && strings.ContainsAny(strings.TrimSuffix(arg, ".fifo"), "./"+string(os.PathSeparator))
}

// readFile reads a template, or a plan or state of Terraform.
func (f *planFlags) readFile(stdin io.Reader, name string, parameters map[string]string) ([]review.Subject, []review.Note, error) {
	in, shown := stdin, "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in, shown = file, name
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPlanned+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("reading %s: %w", shown, err)
	case len(text) > maxPlanned:
		return nil, nil, fmt.Errorf("%s is larger than %d MiB: pass a template, or the output of terraform show -json", shown, maxPlanned>>20)
	}
	var subjects []review.Subject
	var notes []review.Note
	if review.IsTerraform(text) {
		subjects, err = review.Terraform(shown, text)
	} else {
		subjects, notes, err = templateSubjects(shown, text, parameters, f.aws.region)
	}
	if err == nil && len(subjects) == 0 {
		err = fmt.Errorf("%s declares no queue: pass a template with AWS::SQS::Queue, or the output of terraform show -json with aws_sqs_queue", shown)
	}
	return subjects, notes, err
}

// liveSubject reads the attributes of a queue, and those of its dead-letter queue if that is permitted.
func (f *planFlags) liveSubject(ctx context.Context, queue string) (review.Subject, error) {
	t, err := f.aws.target(ctx, "QUEUE", queue)
	if err != nil {
		return review.Subject{}, err
	}
	s := review.Subject{Source: t.url, Deployed: true}
	if s.Attributes, err = t.attributes(ctx, t.url); err != nil {
		return s, t.failed(ctx, err, "GetQueueAttributes")
	}
	if s.Name, err = queueName("QUEUE", t.url); err != nil {
		return s, err
	}
	q, _ := plan.ReadQueue(s.Attributes) // review.New reports the error
	if q.DeadLetterARN == "" {
		return s, nil
	}
	if dead, err := t.urlOf(ctx, q.DeadLetterARN); err == nil {
		s.DeadLetter, _ = t.attributes(ctx, dead) // without them a finding names the permission
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, nil
}

func (a *app) printPlan(f *planFlags, report review.Report) error {
	return a.printReport(&f.report, renderings{
		"table": func() ([]byte, error) {
			t := terminal.New(a.stdout.file, os.Getenv)
			return []byte(report.Text(t.Width(), t.Unicode())), nil
		},
		"json":     report.JSON,
		"sarif":    func() ([]byte, error) { return report.SARIF(version()) },
		"markdown": func() ([]byte, error) { return []byte(report.Markdown()), nil },
	})
}

// verdict is the error of a plan that does not pass.
func (f *planFlags) verdict(report review.Report) error {
	errs := report.Count(plan.Error)
	warnings := report.Count(plan.Warning) - errs
	switch {
	case f.failOn != "never" && errs > 0:
		return fmt.Errorf("the plan has %s: see the findings", plural.Of(errs, "error"))
	case f.failOn == "warning" && warnings > 0:
		return fmt.Errorf("the plan has %s: see the findings", plural.Of(warnings, "warning"))
	case f.failOn == "warning" && len(report.Notes) > 0:
		return errors.New("not all of the plan could be read: see the notes")
	}
	return nil
}
