// Package stack runs the resources that a template declares: its functions as processes, and the
// mappings between its queues and functions. If asked to, it builds functions again whose source
// changes.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/table"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Config is the configuration of a Stack.
type Config struct {
	// File is the template's path, and Template its content.
	File     string
	Template *template.Template
	// Server has the template's queues.
	Server *sqsserver.Server
	// Endpoint is the URL at which functions reach the server and each other.
	Endpoint string
	// QueueURL returns the URL of the queue called name.
	QueueURL func(name string) string
	// Region and AccountID are those of the functions' ARNs.
	Region, AccountID string
	// Journal keeps asynchronous events and the items of tables; nil: they are in memory. See emulator.Config.
	Journal emulator.Journal
	// TimeScale shortens AWS's own waits: see emulator.Config. Default: 1.
	TimeScale float64
	// AllowOutside permits code outside of the template's folder.
	AllowOutside bool
	// PassEnvironment names variables of this process that functions get: see
	// emulator.Config. Default: none.
	PassEnvironment []string
	// Watch builds functions anew when their source changes.
	Watch bool
	// Log gets the lines of functions. It is called by many goroutines.
	Log func(emulator.Line)
	// Logger gets what happens to messages and events.
	Logger *slog.Logger
}

// Function is a function that runs.
type Function struct {
	ID, Name, ARN string
	// Notes are differences from AWS.
	Notes []string
}

// Stack is a template that runs. It is made by [New], started by [Stack.Start], and must be
// closed by [Stack.Stop], started or not.
type Stack struct {
	cfg      Config
	scratch  *scratch // for built files
	builder  *build.Builder
	lambda   *emulator.Lambda
	tables   *table.Tables
	built    []build.Built // as cfg.Template.Functions
	mappings []*mapping.Mapping

	stop    context.CancelFunc // ends mappings and watching
	running sync.WaitGroup
}

// New builds the functions of a template and makes its mappings. Nothing runs before
// [Stack.Start], and no function before its first invoke.
func New(ctx context.Context, cfg Config) (_ *Stack, err error) {
	root, err := filepath.Abs(filepath.Dir(cfg.File))
	if err != nil {
		return nil, err
	}
	s := &Stack{cfg: cfg, stop: func() {}}
	sweepScratch(cfg.Logger)
	if s.scratch, err = newScratch(); err != nil {
		return nil, fmt.Errorf("there is no folder for built files: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.scratch.remove())
		}
	}()
	// Before the build, so that mistakes in the template are reported at once.
	if err := s.addMappings(); err != nil {
		return nil, err
	}
	s.builder = &build.Builder{Root: root, Dir: s.scratch.dir, Watch: cfg.Watch, AllowOutside: cfg.AllowOutside}
	if err := s.buildAll(ctx); err != nil {
		return nil, err
	}
	if err := s.makeTables(); err != nil {
		return nil, err
	}
	functions := make([]emulator.Function, len(s.built))
	for i := range s.built {
		functions[i] = runnable(&cfg.Template.Functions[i], s.built[i])
	}
	s.lambda, err = emulator.New(emulator.Config{
		Functions: functions, Region: cfg.Region, AccountID: cfg.AccountID, TimeScale: cfg.TimeScale,
		Environment: s.environment(), PassEnvironment: cfg.PassEnvironment,
		Send: s.send, Log: cfg.Log, Journal: cfg.Journal,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// makeTables makes the template's tables.
func (s *Stack) makeTables() (err error) {
	var tables []table.Table
	for _, t := range s.cfg.Template.Tables {
		tables = append(tables, table.Table{Name: t.Name, Key: t.Key})
	}
	s.tables, err = table.New(tables, s.cfg.Journal)
	return err
}

// environment returns the variables of all functions: the endpoints of the local services.
func (s *Stack) environment() map[string]string {
	env := map[string]string{"AWS_ENDPOINT_URL_SQS": s.cfg.Endpoint, "AWS_ENDPOINT_URL_LAMBDA": s.cfg.Endpoint}
	if len(s.cfg.Template.Tables) > 0 {
		env["AWS_ENDPOINT_URL_DYNAMODB"] = s.cfg.Endpoint
	}
	return env
}

// buildAll builds the functions, as many at once as there are processors.
func (s *Stack) buildAll(ctx context.Context) error {
	functions := s.cfg.Template.Functions
	s.built = make([]build.Built, len(functions))
	failed := make([]error, len(functions))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var building sync.WaitGroup
	for i := range functions {
		places <- struct{}{}
		building.Go(func() {
			defer func() { <-places }()
			s.built[i], failed[i] = s.builder.Build(ctx, &functions[i])
		})
	}
	building.Wait()
	return errors.Join(failed...)
}

// runnable returns the emulator's form of f, which is built.
func runnable(f *template.Function, built build.Built) emulator.Function {
	result := emulator.Function{
		Name: f.Name, Command: built.Command, Dir: built.Dir, Handler: f.Handler, Runtime: f.Runtime,
		Environment: f.Environment, Timeout: f.Timeout, MemorySize: f.MemorySize,
		Async: emulator.AsyncConfig{
			MaxRetryAttempts: f.Async.MaxRetryAttempts, MaxEventAge: f.Async.MaxEventAge,
			OnSuccess: f.Async.OnSuccess, OnFailure: f.Async.OnFailure, DeadLetter: f.Async.DeadLetter,
		},
	}
	switch {
	case f.Reserved == nil: // the emulator's default
	case *f.Reserved == 0:
		result.Concurrency = -1
	default:
		result.Concurrency = *f.Reserved
	}
	return result
}

func (s *Stack) addMappings() error {
	for _, m := range s.cfg.Template.Mappings {
		if m.Disabled {
			continue
		}
		invoke := func(ctx context.Context, event []byte) (emulator.Result, error) {
			return s.lambda.Invoke(ctx, m.Function, event)
		}
		made, err := mapping.New(s.cfg.Server, invoke, mapping.Config{
			Queue: m.QueueARN, Function: m.Function, BatchSize: m.BatchSize, Window: m.Window,
			MaximumConcurrency: m.MaximumConcurrency, ReportBatchItemFailures: m.ReportBatchItemFailures,
			Filters: m.Filters, TimeScale: s.cfg.TimeScale, Logger: s.cfg.Logger,
		})
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", s.cfg.File, m.Line, m.ID, err)
		}
		s.mappings = append(s.mappings, made)
	}
	return nil
}

// send sends a message to a queue of the template, by its ARN.
func (s *Stack) send(ctx context.Context, arn, body string, attributes []sqsserver.MessageAttribute) error {
	for _, q := range s.cfg.Template.Queues {
		if q.ARN == arn {
			_, err := s.cfg.Server.SendMessage(ctx, &sqsserver.SendMessageInput{
				QueueUrl:         s.cfg.QueueURL(q.Name),
				SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: body, MessageAttributes: attributes},
			})
			return err
		}
	}
	return fmt.Errorf("%s is not a queue of the template", arn)
}

// Functions returns the template's functions, as first built.
func (s *Stack) Functions() []Function {
	functions := make([]Function, len(s.built))
	for i := range s.built {
		f := &s.cfg.Template.Functions[i]
		functions[i] = Function{ID: f.ID, Name: f.Name, ARN: f.ARN, Notes: s.built[i].Notes}
	}
	return functions
}

// Status returns what each function does now.
func (s *Stack) Status() []emulator.FunctionStatus { return s.lambda.Status() }

// ServeHTTP answers the Invoke API, and that of the tables.
func (s *Stack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), table.TargetPrefix) {
		s.tables.ServeHTTP(w, r)
		return
	}
	s.lambda.ServeHTTP(w, r)
}

// Refuse answers a request that is not permitted, in the form of the API that the request is for.
func (s *Stack) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), table.TargetPrefix) {
		s.tables.Refuse(w, err)
		return
	}
	s.lambda.Refuse(w, err)
}

// Start runs the mappings and the asynchronous events of an earlier process, and watches sources
// if Config.Watch is set.
func (s *Stack) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.lambda.Resume()
	for _, m := range s.mappings {
		s.running.Go(func() { m.Run(ctx) })
	}
	if s.cfg.Watch {
		s.running.Go(func() { s.watch(ctx) })
	}
}

// stopBudget is how long invokes may take to end after a stop.
const stopBudget = 25 * time.Second

// Stop lets running invokes and batches end, for 25 s or until ctx ends, and kills the rest. It
// returns a [*LostError] if invokes or events were lost.
func (s *Stack) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopBudget, fmt.Errorf("they took more than %v", stopBudget))
	defer cancel()
	s.stop()
	batches := make(chan struct{})
	go func() {
		s.running.Wait()
		close(batches)
	}()
	select {
	case <-batches:
	case <-ctx.Done():
	}
	err := s.lambda.Close(ctx)
	if err != nil {
		err = &LostError{err}
	}
	<-batches // their invokes have ended by now
	return errors.Join(err, s.scratch.remove())
}

// LostError reports that invokes were cut off, or that asynchronous ones still waited at the
// stop. They are lost, which does not happen on AWS.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the error of closing the functions.
func (e *LostError) Unwrap() error { return e.Err }
