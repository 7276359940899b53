package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// controlFlags are the flags of commands that call the admin API of a running process.
type controlFlags struct {
	address, token string
	output         outputFlags
	all            bool
	keys, ids      []string
}

// The environment variables of the flags.
const (
	adminVariable      = "REPRISE_ADMIN_URL"
	adminTokenVariable = "REPRISE_ADMIN_TOKEN"
)

const aboutControl = `The process is a reprise run, up or serve, found by --admin: by default what listens at
` + defaultAdminAddr + `, where reprise run does, else at ` + defaultAddr + `, where up does.
What is set here is forgotten when the process ends; a pause outlives a change of its
configuration file.`

func (f *controlFlags) register(cmd *cobra.Command) {
	f.registerProcess(cmd.Flags())
	f.output.register(cmd.Flags())
}

// registerProcess adds the flags that name the process.
func (f *controlFlags) registerProcess(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "admin", "", "`URL` of the process, or unix:PATH (default "+adminVariable+", then this machine)")
	flags.StringVar(&f.token, "admin-token", "", "`place` of the process's token: file:PATH or env:VARIABLE (default "+adminTokenVariable+")")
}

// client returns a client of the process.
func (f *controlFlags) client(ctx context.Context, a *app) (client *admin.Client, err error) {
	token := ""
	if place := cmp.Or(f.token, os.Getenv(adminTokenVariable)); place != "" {
		if token, err = a.secrets.Read("admin-token", place); err != nil {
			return nil, err
		}
	}
	if address := cmp.Or(f.address, os.Getenv(adminVariable)); address != "" {
		if client, err = admin.NewClient(address, token); err != nil {
			return nil, usage(fmt.Errorf("--admin: %w", err))
		}
		return client, nil
	}
	return localProcess(ctx, "http://"+defaultAdminAddr, "http://"+defaultAddr, token)
}

// localProcess returns a client of the process at one address or, only if nothing listens there, at the other. One that
// refuses, or is slow, is the process that is meant all the same.
func localProcess(ctx context.Context, first, second, token string) (*admin.Client, error) {
	client, err := admin.NewClient(first, token)
	if err != nil {
		return nil, err
	}
	if _, err := client.Consumers(ctx); errors.Is(err, syscall.ECONNREFUSED) {
		return admin.NewClient(second, token)
	}
	return client, nil
}

func (a *app) consumers() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "consumers [QUEUE...]",
		Short: "Show the consumers of a running process: state, counts, breakers",
		Long: `Show the consumers of a running process, or those of the queues that are named: whether
they are paused, how many handlers run and may run, messages that wait, the outcomes of
messages, and circuit breakers: since when, why, until when.

` + aboutControl,
		Example: `  reprise consumers
  reprise consumers orders -o json | jq .breakers
  reprise consumers --admin unix:/run/reprise/admin.sock`,
	}
	cmd.RunE = run(func(queues []string) error { return a.runConsumers(&f, queues) })
	f.register(cmd)
	return cmd
}

func (a *app) runConsumers(f *controlFlags, queues []string) error {
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	var found []admin.Consumer
	if len(queues) == 0 {
		found, err = client.Consumers(ctx)
	}
	for _, queue := range queues {
		c, problem := client.Consumer(ctx, queue)
		if problem != nil {
			return problem
		}
		found = append(found, c)
	}
	if err != nil {
		return err
	}
	if f.output.as() == asText {
		fmt.Fprint(a.stdout, admin.ConsumersText(found, time.Now(), a.width()))
		return nil
	}
	for i := range found {
		if err := a.printValue(f.output.as(), &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// keyActions are the commands that are about a consumer or about keys of its messages.
func (a *app) keyActions() (all []*cobra.Command) {
	for _, action := range []struct{ name, short, long string }{
		{"pause", "Pause consumers of a running process, or keys", `Keep consumers from starting handlers and from receiving, until reprise resume. Running
handlers end; received messages are held under lease, up to the twelve hours that SQS allows.
With --key only messages of these keys are kept from the handlers.`},
		{"resume", "Resume what was paused", `End a pause. Messages of a key that were hidden while it was paused come back when their
time has passed: reprise wake hastens it.`},
		{"wake", "Run now the messages that wait for their retry", `Make messages visible that the process has hidden until the end of their backoff, at a
rate at which the consumer can handle them; attempts stay counted. Open breakers
probe at once. Messages of FIFO queues, those that are due within 15 s, and those that
another process has hidden are not woken. Copies that wait with a delay, as in a retry
lane, are retried too if the process has the queues itself, as reprise up has, and no
--key is given; SQS ends no delay. With --id only these messages are woken, before all
others, and no breaker probes.`},
		{"probe", "Make open circuit breakers probe now", `Make open circuit breakers test at once whether their dependency is available again. If
it is, the messages that wait for it run.`},
	} {
		var f controlFlags
		cmd := &cobra.Command{
			Use:   action.name + " (QUEUE... | --all)",
			Short: action.short,
			Long:  action.long + "\n\n" + aboutControl,
			Example: `  reprise ` + action.name + ` orders
  reprise ` + action.name + ` --all
  reprise ` + action.name + ` orders --key acme --admin http://127.0.0.1:9325`,
		}
		cmd.RunE = run(func(queues []string) error {
			if f.all == (len(queues) > 0) {
				return usage(errors.New("name the queues, or pass --all for all that the process consumes"))
			}
			if len(f.ids) > 0 {
				return a.wakeMessages(&f, queues)
			}
			return a.act(&f, queues, action.name, admin.Keys{Keys: f.keys})
		})
		f.register(cmd)
		cmd.Flags().BoolVar(&f.all, "all", false, "all queues that the process consumes")
		cmd.Flags().StringArrayVar(&f.keys, "key", nil, "only messages of this `key`, see --outage-key of reprise run; repeatable")
		if action.name == "wake" {
			cmd.Flags().StringArrayVar(&f.ids, "id", nil, "only the message of this `id`, as reprise peek prints it; repeatable")
			cmd.Example += "\n  reprise wake orders --id 3b12f1df-5232-4804-897e-917bf397618a"
		}
		all = append(all, cmd)
	}
	return all
}

func (a *app) concurrency() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "concurrency QUEUE NUMBER",
		Short: "Change how many handlers of a running process run at once",
		Long: `Change how many handlers of a queue may run at once. Running handlers are not interrupted.
The change holds until the queue's settings change.

` + aboutControl,
		Example: `  reprise concurrency orders 4`,
		Args:    cobra.ExactArgs(2),
	}
	cmd.RunE = run(func(args []string) error {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return usage(fmt.Errorf("NUMBER is %q: pass how many handlers may run at once, such as 20; reprise pause %s lets none start", args[1], args[0]))
		}
		return a.act(&f, args[:1], cmd.Name(), admin.Concurrency{Concurrency: n})
	})
	f.register(cmd)
	return cmd
}

func (a *app) rate() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "rate QUEUE (NUMBER | none)",
		Short: "Change how many handlers of a running process start per second",
		Long: `Change how many handlers of a queue may start per second, from 0.001 to 1,000,000; none
is no limit. It holds until the queue's settings change.

` + aboutControl,
		Example: `  reprise rate orders 2.5
  reprise rate orders none`,
		Args: cobra.ExactArgs(2),
	}
	cmd.RunE = run(func(args []string) error {
		var perSecond float64
		var err error
		if args[1] != "none" {
			perSecond, err = strconv.ParseFloat(args[1], 64)
		}
		if err != nil || args[1] != "none" && !(perSecond > 0) {
			return usage(fmt.Errorf("NUMBER is %q: pass how many handlers may start per second, such as 2.5, or none for no limit", args[1]))
		}
		return a.act(&f, args[:1], cmd.Name(), admin.Rate{Rate: &perSecond})
	})
	f.register(cmd)
	return cmd
}

// act requests an action for the consumers of queues, or of all if none is named, and prints them. One that is refused
// keeps none of the others from it.
func (a *app) act(f *controlFlags, queues []string, action string, how any) error {
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	if len(queues) == 0 {
		all, err := client.Consumers(ctx)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("the process consumes no queue: there is nothing to " + action)
		}
		for _, c := range all {
			queues = append(queues, c.URL)
		}
	}
	var after []admin.Consumer
	var asleep []string // ids of messages that were named and not woken
	var refused []error
	for _, queue := range queues {
		done, err := client.Act(ctx, queue, action, how)
		if err != nil {
			refused = append(refused, err)
			if _, answered := errors.AsType[*admin.Error](err); !answered { // nor will it answer for the next
				break
			}
			continue
		}
		switch action {
		case "wake":
			if done.Woken > 0 || len(done.NotWoken) == 0 && done.CopiesLeft == 0 {
				fmt.Fprintf(a.stderr, "reprise: %s: %s\n", apiText(done.Consumer.Queue), wokenText(done.Woken))
			}
			if left := done.LeftText(); left != "" {
				fmt.Fprintf(a.stderr, "reprise: %s: %s\n", apiText(done.Consumer.Queue), left)
			}
			for _, id := range done.NotWoken {
				asleep = append(asleep, apiText(id))
			}
		case "probe":
			fmt.Fprintf(a.stderr, "reprise: %s: %s probing\n", apiText(done.Consumer.Queue), plural.Of(done.Probing, "breaker"))
		}
		if after = append(after, done.Consumer); f.output.as() != asText {
			if err := a.printValue(f.output.as(), &done); err != nil {
				return err
			}
		}
	}
	if f.output.as() == asText && len(after) > 0 {
		fmt.Fprint(a.stdout, admin.ConsumersText(after, time.Now(), a.width()))
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	if len(asleep) > 0 {
		return fmt.Errorf("not woken: %s: none of them waits for a retry that this process can hasten; "+
			"those that are due within 15 s, of FIFO queues, behind an open breaker, hidden by another process or delayed by SQS stay hidden: reprise trace ID shows where one is", strings.Join(asleep, ", "))
	}
	return nil
}

// wakeMessages has single messages of one queue woken.
func (a *app) wakeMessages(f *controlFlags, queues []string) error {
	if len(queues) != 1 || len(f.keys) > 0 {
		return usage(errors.New("--id names messages of one queue: name that queue, without --all and --key"))
	}
	return a.act(f, queues, "wake", admin.Wake{Messages: f.ids})
}

// wokenText is what wake has done.
func wokenText(n int) string {
	if n == 0 {
		return "no messages to wake: none that this process has hidden is in backoff for longer than 15 s"
	}
	return "woke " + plural.Of(n, "message") + ": they run as fast as the consumer works them off"
}
