package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

type topFlags struct {
	control  controlFlags
	queues   queuesFlags // without a process
	interval time.Duration
	samples  int
}

// The times between two looks: SQS counts each look at a queue's attributes as a request, and its
// counts are up to a minute old.
const (
	topOfProcess = 2 * time.Second
	topOfSQS     = 10 * time.Second
	minInterval  = 500 * time.Millisecond
)

func (a *app) top() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [QUEUE...]",
		Short: "Watch queues and consumers: what waits, works, fails, and how fast",
		Long: `Show all queues of a running process, or those that are named, with their consumers, and
show them again every two seconds, until q or Ctrl-C: messages that are visible, in
flight and delayed, the age of the oldest, handlers that work, messages that wait for
their retry, and a second: messages in and out, and attempts that failed. Below are
circuit breakers and other problems.

in/s and out/s are the messages that clients sent to a queue of the process's own and
deleted there; of a queue of another server, those that the process itself received and
deleted. Without a process, or with --endpoint, --region or --prefix, queues are known by
their attributes alone, and are asked every ten seconds (one request for each).

Where the output is no terminal, each look is a table below the one before; with -o json
it is a line for each queue.

` + aboutControl + `

` + aboutOperatorEndpoint,
		Example: `  reprise top
  reprise top orders orders-dead --admin http://127.0.0.1:9325
  reprise top --region eu-west-1 --prefix prod-
  reprise top -o json --samples 2 | jq 'select(.failed_per_second > 1)'`,
	}
	cmd.RunE = run(func(names []string) error { return a.runTop(&f, names) })
	f.control.register(cmd)
	f.queues.aws.register(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.queues.prefix, "prefix", "", "only queues whose names begin so, by their attributes alone")
	flags.DurationVar(&f.interval, "interval", 0, "time between two looks (default 2s; 10s without a process)")
	flags.IntVar(&f.samples, "samples", 0, "end after so many looks (default: none, until Ctrl-C)")
	return cmd
}

// sampler looks at queues and consumers.
type sampler struct {
	look func(context.Context) (admin.Stats, error)
	from string // where they are, for people
	each time.Duration
}

func (a *app) runTop(f *topFlags, names []string) error {
	switch {
	case f.interval != 0 && f.interval < minInterval:
		return usage(fmt.Errorf("--interval is %v: pass %v or more", f.interval, minInterval))
	case f.samples < 0:
		return usage(fmt.Errorf("--samples is %d: pass 1 or more, or leave it out", f.samples))
	case f.queues.prefix != "" && len(names) > 0:
		return usage(fmt.Errorf("--prefix %q is for a list of all queues: leave it out, or the names", f.queues.prefix))
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-a.drain:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	s, err := f.sampler(ctx, a, names)
	if err != nil {
		return err
	}
	if f.interval != 0 {
		s.each = f.interval
	}
	first, err := s.look(ctx)
	if err != nil {
		return stoppedOr(ctx, err)
	}
	if err := named(&first, names); err != nil {
		return err
	}
	if f.control.output.as() == asText && f.samples == 0 && terminal.Is(a.stdout.file) && terminal.Is(a.stdin) && os.Getenv("TERM") != "dumb" {
		return a.showTop(ctx, s, first, names)
	}
	return a.printTop(ctx, f, s, first, names)
}

// errStopped ends a command that shows something until it is stopped.
var errStopped = errors.New("stopped")

// stoppedOr returns err, unless it only came of the command being stopped.
func stoppedOr(ctx context.Context, err error) error {
	if errors.Is(err, errStopped) || errors.Is(context.Cause(ctx), errStopped) {
		return nil
	}
	return err
}

// sampler finds the process; if none was asked for and none runs here, SQS.
func (f *topFlags) sampler(ctx context.Context, a *app, names []string) (sampler, error) {
	asked := f.control.address != "" || os.Getenv(adminVariable) != ""
	if bySQS := f.queues.aws != (awsFlags{}) || f.queues.prefix != ""; bySQS {
		if f.control.address != "" {
			return sampler{}, usage(errors.New("--admin names a process, and --endpoint, --region and --prefix queues without one: use one of them"))
		}
		return f.ofSQS(ctx, names)
	}
	client, err := f.control.client(ctx, a)
	if err != nil {
		return sampler{}, err
	}
	if !asked {
		if _, err := client.Consumers(ctx); errors.Is(err, syscall.ECONNREFUSED) {
			return f.ofSQS(ctx, names)
		}
	}
	return sampler{client.Stats, "process at " + client.Address(), topOfProcess}, nil
}

func (f *topFlags) ofSQS(ctx context.Context, names []string) (sampler, error) {
	t, urls, err := f.queues.find(ctx, names)
	if err != nil {
		return sampler{}, err
	}
	refs := make([]operate.Ref, len(urls))
	for i, url := range urls {
		refs[i] = operate.Ref{URL: url, Client: t.client}
	}
	from := t.found.Endpoint.String()
	if t.found.Endpoint.URL == "" {
		from = "AWS in " + t.found.Region
	}
	look := func(ctx context.Context) (admin.Stats, error) {
		described, err := operate.Describe(ctx, refs)
		s := admin.Stats{At: time.Now().UTC()}
		for _, q := range operate.Queues(described, false) {
			s.Queues = append(s.Queues, admin.QueueStats{Queue: q})
		}
		return s, err
	}
	return sampler{look, "queues at " + from, topOfSQS}, nil
}

// named checks that there is a row for each name.
func named(s *admin.Stats, names []string) error {
	rows := admin.Rows(s, nil)
	for _, name := range names {
		if len(only(rows, []string{name})) == 0 {
			return &failure{exitAccess, fmt.Errorf("there is no queue %q here: reprise top without a name shows which there are", name)}
		}
	}
	return nil
}

// only returns the rows of queues that are named, by name or URL; all if there are no names.
func only(rows []admin.Row, names []string) []admin.Row {
	if len(names) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r admin.Row) bool { return !slices.Contains(names, r.Queue) && !slices.Contains(names, r.URL) })
}

// printTop prints each look, below the others.
func (a *app) printTop(ctx context.Context, f *topFlags, s sampler, now admin.Stats, names []string) error {
	fmt.Fprintf(a.stderr, "reprise: %s, every %v\n", s.from, s.each)
	as := f.control.output.as()
	var before *admin.Stats
	for n := 1; ; n++ {
		rows := only(admin.Rows(&now, before), names)
		if as == asText {
			fmt.Fprintf(a.stdout, "%s\n%s", now.At.Local().Format(time.TimeOnly), admin.RowsText(rows, a.width()))
		}
		for i := range rows {
			if as == asText {
				break
			}
			if err := a.printValue(as, &rows[i]); err != nil {
				return err
			}
		}
		if n == f.samples {
			return nil
		}
		last := now
		before = &last
		for {
			select {
			case <-time.After(s.each):
			case <-ctx.Done():
				return stoppedOr(ctx, context.Cause(ctx))
			}
			var err error
			if now, err = s.look(ctx); err == nil {
				break
			}
			if ctx.Err() == nil {
				fmt.Fprintf(a.stderr, "reprise: %s\n", apiText(err.Error()))
			}
		}
	}
}

// showTop draws each look in place of the one before, until a key ends it.
func (a *app) showTop(ctx context.Context, s sampler, now admin.Stats, names []string) (err error) {
	screen, err := terminal.OpenScreen(a.stdin, a.stdout.file, os.Getenv)
	if err != nil {
		return err
	}
	a.screen.Store(screen)
	defer func() {
		a.screen.Store(nil)
		err = errors.Join(err, screen.Close())
	}()
	rows, problem := admin.Rows(&now, nil), ""
	next := time.NewTicker(s.each)
	defer next.Stop()
	looks := make(chan endOfLook)
	looking := false
	for {
		if err := screen.Draw(topText(s.from, &now, only(slices.Clone(rows), names), problem, screen)); err != nil {
			return err
		}
		select {
		case key, open := <-screen.Keys():
			if !open || key == 'q' || key == 'Q' || key == terminal.CtrlC {
				return nil
			}
		case <-ctx.Done():
			return stoppedOr(ctx, context.Cause(ctx))
		case <-next.C:
			if !looking { // one that hangs is not joined by others
				looking = true
				go func() {
					stats, err := s.look(ctx)
					select {
					case looks <- endOfLook{stats, err}:
					case <-ctx.Done():
					}
				}()
			}
		case l := <-looks:
			looking = false
			if l.err != nil {
				problem = l.err.Error()
				continue
			}
			rows, now, problem = admin.Rows(&l.stats, &now), l.stats, ""
		}
	}
}

// endOfLook is the end of a look.
type endOfLook struct {
	stats admin.Stats
	err   error
}

// topText is what top shows on a screen.
func topText(from string, now *admin.Stats, rows []admin.Row, problem string, screen *terminal.Screen) string {
	width, _ := screen.Size()
	text := fmt.Sprintf("%s  %s", now.At.Local().Format(time.TimeOnly), terminal.Line(from, maxAPIText))
	if !now.Since.IsZero() {
		text += "  up " + operate.Ago(now.At.Sub(now.Since))
	}
	text += "  q: end\n\n" + admin.RowsText(rows, width)
	for _, p := range []string{now.Problem, problem} {
		if p != "" {
			text += "\n" + terminal.Line(p, maxAPIText) + "\n"
		}
	}
	return text
}
