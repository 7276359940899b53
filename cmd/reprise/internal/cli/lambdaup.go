package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/stack"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

type lambdaUpFlags struct {
	addr         string
	region       serverRegion
	allowOrigins []string
	data         string
	memory       bool
	parameters   []string
	timeScale    float64
	watch        bool
	allowOutside bool
	passEnv      []string
	log          logFlags
}

func (a *app) lambdaUp() *cobra.Command {
	var f lambdaUpFlags
	cmd := &cobra.Command{
		Use:   "up TEMPLATE",
		Short: "Run a template's functions, queues and event source mappings",
		Long: `Run what a SAM or CloudFormation template declares: its queues in an
SQS-compatible server, its functions as processes behind Lambda's own Runtime
API, their asynchronous invokes with retries and destinations, and the event
source mappings of its queues. The AWS CLI and SDKs talk to all of it at one
address.

Go functions (provided.al2023) are built for this machine: by go build, by the
target build-NAME of their Makefile (BuildMethod: makefile), or not at all if
CodeUri has a program called bootstrap. Python and Node functions run from
their folder with the python3 and node on the PATH. Parts of a template that
cannot run here are named: an error if the result would differ from AWS, else a
warning. docs/lambda-local.md lists them.

Running a template runs its code, as make runs a Makefile: its Makefiles at once,
its functions when they are invoked. Code outside of the template's folder is
refused without --allow-outside. Functions get the environment of Lambda and of the
template, PATH and TMPDIR, but neither HOME nor credentials, unless --pass-env names
them. Builds get the whole environment.

The first Ctrl-C lets running invokes end, for up to 25 s. With --data,
asynchronous invokes survive stops and crashes, and continue at the next start.
Without it those that still wait for a retry are lost; the exit code is then 3, and
the message says how many.`,
		Example: `  reprise lambda up template.yaml
  reprise lambda up template.yaml --param Stage=dev --time-scale 60 --watch
  reprise lambda invoke Flaky '{"id": "o-1"}'
  reprise lambda send Orders '{"id": "o-1"}'`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runLambdaUp(f, args[0]) }),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`host:port` of this machine to listen on; port 0: any free one")
	flags.StringSliceVar(&f.allowOrigins, "allow-origin", nil, aboutAllowOrigin)
	f.region.register(flags)
	flags.StringVar(&f.data, "data", "", "`directory` for messages and asynchronous invokes; only one server can use it at a time (default: memory)")
	flags.BoolVar(&f.memory, "memory", false, "keep messages and asynchronous invokes in memory (the default)")
	flags.StringArrayVar(&f.parameters, "param", nil, "a parameter of the template: `name=value`; repeatable")
	flags.Float64Var(&f.timeScale, "time-scale", 1, "how many `times` faster Lambda's own waits pass: those before retries of asynchronous invokes, their age, batching windows")
	flags.BoolVar(&f.watch, "watch", false, "rebuild a function when its source changes")
	flags.BoolVar(&f.allowOutside, "allow-outside", false, "permit code outside of the template's folder")
	flags.StringArrayVar(&f.passEnv, "pass-env", nil, "a `variable` of the environment to pass to functions, such as HOME or AWS_PROFILE; repeatable (default: only PATH and TMPDIR)")
	f.log.register(flags)
	cmd.MarkFlagsMutuallyExclusive("data", "memory")
	return cmd
}

func (a *app) runLambdaUp(f lambdaUpFlags, file string) error {
	if err := checkTimeScale(f.timeScale); err != nil {
		return err
	}
	if err := checkOrigins(f.allowOrigins); err != nil {
		return err
	}
	parameters, err := parseParameters(f.parameters)
	if err != nil {
		return usage(err)
	}
	logger := f.log.logger(a)
	if err := checkVariables(f.passEnv); err != nil {
		return usage(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err // names the file
	}
	cfg := daemon.Config{Addr: f.addr, Region: f.region.name(), Logger: logger,
		Serving: daemon.Serving{AllowedOrigins: f.allowOrigins}}
	if f.data != "" {
		storage := storageFlags{data: f.data, sync: syncAlways, syncInterval: defaultSyncInterval, minFree: defaultMinFree}
		if cfg.Journal, err = storage.options(); err != nil {
			return err
		}
	}
	start := time.Now()
	// The daemon comes first: its address is in the URLs that the template asks for.
	d, err := daemon.New(cfg)
	if err != nil {
		return err
	}
	loaded, err := template.Load(text, template.Options{
		File: file, Parameters: parameters, Region: cfg.Region, AccountID: daemon.Account, QueueURL: d.QueueURL,
	})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	cfg.Queues = queuesOf(loaded)
	if err := d.CreateQueues(cfg.Queues); err != nil {
		return errors.Join(err, d.Close())
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintf(a.stderr, "reprise: warning: %s\n", w)
	}
	log, pages := newFunctionLog(terminal.New(a.stdout.file, os.Getenv), loaded.Functions), new(functionPages)
	up := stack.Config{
		File: file, Template: loaded, Server: d.SQS(), Endpoint: d.URL(), QueueURL: d.QueueURL,
		Region: cfg.Region, AccountID: daemon.Account, TimeScale: f.timeScale, Watch: f.watch, Logger: cfg.Logger,
		Log: func(line emulator.Line) {
			log.print(line)
			pages.keep(line)
		},
		AllowOutside: f.allowOutside, PassEnvironment: f.passEnv,
	}
	if j := d.Journal(); j != nil {
		up.Journal = j
	}
	running, built, err := a.build(up)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	pages.stack = running
	d.Add(daemon.LambdaPart(running, d.SQS().Pages()))
	api, err := new(adminFlags).config(a)
	if err != nil {
		return errors.Join(err, running.Stop(a.ctx), d.Close())
	}
	adminOfDaemon(api, d, cfg, pages)
	a.announce(d, cfg, false) // it has no keys
	fmt.Fprintf(a.stdout, "Lambda API    %s\n", d.URL())
	a.announceFunctions(running, loaded, d.URL())
	fmt.Fprintf(a.stdout, "ready         in %v, of which %v to build\n", time.Since(start).Round(time.Millisecond), built.Round(time.Millisecond))

	err = d.Run(a.ctx, a.drain)
	if _, lost := errors.AsType[*stack.LostError](err); lost {
		return unsettled(err)
	}
	return err
}

// build makes the stack, and returns how long that took. The first Ctrl-C cancels it.
func (a *app) build(cfg stack.Config) (*stack.Stack, time.Duration, error) {
	ctx, stop := a.interruptible()
	defer stop()
	fmt.Fprintf(a.stdout, "building      %s\n", plural.Of(len(cfg.Template.Functions), "function"))
	start := time.Now()
	s, err := stack.New(ctx, cfg)
	return s, time.Since(start), err
}

// checkVariables checks that names are those of variables that are set.
func checkVariables(names []string) error {
	for _, name := range names {
		if strings.Contains(name, "=") {
			return fmt.Errorf("--pass-env %q has a value: pass the name alone, and set the variable before", name)
		}
		if _, set := os.LookupEnv(name); !set {
			return fmt.Errorf("--pass-env %q: there is no such variable: set it, or leave the flag out", name)
		}
	}
	return nil
}

// parseParameters reads name=value.
func parseParameters(texts []string) (map[string]string, error) {
	parameters := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--param %q is not of the form name=value", text)
		}
		parameters[name] = value
	}
	return parameters, nil
}

// queuesOf returns the template's queues for the server to create.
func queuesOf(t *template.Template) []daemon.Queue {
	queues := make([]daemon.Queue, len(t.Queues))
	for i, q := range t.Queues {
		queues[i] = daemon.Queue{Name: q.Name, Attributes: q.Attributes, DeadLetter: q.DeadLetter, MaxReceives: q.MaxReceives}
	}
	return queues
}

// announceFunctions prints which functions run, which do not, and how to try them.
func (a *app) announceFunctions(s *stack.Stack, t *template.Template, endpoint string) {
	for _, f := range s.Functions() {
		fmt.Fprintf(a.stdout, "function      %s\n", f.ARN)
		for _, note := range f.Notes {
			fmt.Fprintf(a.stdout, "              %s\n", note)
		}
	}
	for _, table := range t.Tables {
		fmt.Fprintf(a.stdout, "table         %s\n", table.Name)
	}
	for _, m := range t.Mappings {
		if m.Disabled {
			continue
		}
		fmt.Fprintf(a.stdout, "mapping       %s -> %s, %s\n", m.Queue, m.Function, mappingText(m))
	}
	program, at := filepath.Base(os.Args[0]), ""
	if endpoint != "http://"+defaultAddr {
		at = " --endpoint " + endpoint
	}
	if len(t.Functions) > 0 {
		fmt.Fprintf(a.stdout, "invoke        %s lambda invoke%s %s '{}'\n", program, at, t.Functions[0].Name)
	}
	for _, q := range t.Queues {
		if !q.FIFO() { // those need a group, too
			fmt.Fprintf(a.stdout, "send          %s lambda send%s --queue %s '{}'\n", program, at, q.Name)
			break
		}
	}
}

func mappingText(m template.Mapping) string {
	text := fmt.Sprintf("batches of %d", m.BatchSize)
	if m.Window > 0 {
		text += fmt.Sprintf(" or %v", m.Window)
	}
	if !m.ReportBatchItemFailures {
		text += ", failing as a whole"
	}
	return text
}
