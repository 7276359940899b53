//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// asyncSystem is a complete system of an asynchronous function and a retry handler: the
// deployable binaries as processes of a local Lambda, the queues of an embedded server, and the
// mapping between them. The function's OnSuccess destination is the queue "done", its OnFailure
// destination the queue "retries", and events that are given up go to "dead".
type asyncSystem struct {
	t      *testing.T
	sqs    *sqsserver.Server
	lambda *emulator.Lambda
	queues *httptest.Server // of sqs
	api    *httptest.Server // of lambda

	functions string // a folder with the binaries of the functions

	mu      sync.Mutex
	invokes []asyncInvoke
	records []asyncRecord
}

// asyncInvoke is a request of the Invoke API.
type asyncInvoke struct {
	At       time.Time
	Function string
	Kind     string // Event or RequestResponse
	Payload  string
}

// asyncRecord is a record that the local Lambda has sent to a destination, as far as the
// tests need it.
type asyncRecord struct {
	Timestamp      time.Time
	RequestContext struct {
		RequestID, Condition string
		InvokeCount          int `json:"approximateInvokeCount"`
	}
	RequestPayload  json.RawMessage
	ResponsePayload json.RawMessage
}

// asyncConfig are the settings that tests vary.
type asyncConfig struct {
	// handler is the environment of the retry handler.
	handler map[string]string
	// function replaces parts of the function "flaky".
	function emulator.Function
	// visibility is the retry queue's visibility timeout, the delay after a crash of the retry
	// handler. Default: 60 s.
	visibility int
	// pids is a file that gets the process ids of the retry handler.
	pids string
	// refuse answers a request of the Invoke API in place of Lambda, unless it is zero.
	refuse func(asyncInvoke) int
}

// asyncFunctions returns a folder with the functions' binaries, which are built as the program of the test is.
func asyncFunctions(t *testing.T) string {
	t.Helper()
	build := plainFunctions
	if isRaced(t.Name()) {
		build = racedFunctions
	}
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var (
	plainFunctions = sync.OnceValues(func() (string, error) { return buildFunctions("functions") })
	racedFunctions = sync.OnceValues(func() (string, error) { return buildFunctions("functions-race", raceFlags...) })
)

func buildFunctions(name string, flags ...string) (folder string, err error) {
	folder = filepath.Join(binaries, name)
	args := append([]string{"build", "-tags", "lambda.norpc", "-o", folder + "/"}, flags...)
	if out, err := exec.Command("go", append(args, "./functions/flaky", "./functions/retryhandler")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the functions: %w\n%s", err, out)
	}
	return folder, nil
}

// newAsyncSystem starts a system. It ends with the test, which fails if a message is
// left in the retry queue then.
func newAsyncSystem(t *testing.T, cfg asyncConfig) *asyncSystem {
	t.Helper()
	s := &asyncSystem{t: t, functions: asyncFunctions(t), sqs: sqsserver.New(sqsserver.Config{NoCooldown: true, Logger: asyncLogger(t)})}
	s.queues = httptest.NewServer(s.sqs)
	s.createQueues(cfg.visibility)

	proxy := http.NewServeMux()
	s.api = httptest.NewServer(proxy)
	local, err := emulator.New(emulator.Config{
		Functions: []emulator.Function{s.target(cfg), s.retryHandler(cfg)},
		Environment: map[string]string{
			"AWS_ENDPOINT_URL_SQS": s.queues.URL, "AWS_ENDPOINT_URL_LAMBDA": s.api.URL,
		},
		Send: s.send,
		Log:  s.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.lambda = local
	proxy.Handle("/", s.watchInvokes(local, cfg.refuse))

	m, err := mapping.New(s.sqs, func(ctx context.Context, event []byte) (emulator.Result, error) {
		return local.Invoke(ctx, "retryhandler", event)
	}, mapping.Config{Queue: asyncARN("retries"), Function: "retryhandler", ReportBatchItemFailures: true, Logger: asyncLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		budget, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := local.Close(budget); err != nil {
			t.Error(err)
		}
		s.api.Close()
		s.queues.Close()
		for _, m := range s.messages("retries") {
			t.Errorf("the retry queue still has %s, received %d times: %.200s", m.ID, m.Receives, m.Body)
		}
		s.sqs.Close()
	})
	return s
}

func asyncLogger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func asyncARN(queue string) string { return "arn:aws:sqs:us-east-1:000000000000:" + queue }

func (s *asyncSystem) createQueues(visibility int) {
	s.t.Helper()
	if visibility == 0 {
		visibility = 60
	}
	for _, q := range []struct {
		name       string
		attributes map[string]string
	}{
		{"done", nil},
		{"dead", nil},
		{"retries", map[string]string{
			"VisibilityTimeout": fmt.Sprint(visibility),
			"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":50}`, asyncARN("dead")),
		}},
	} {
		if _, err := s.sqs.CreateQueue(s.t.Context(), &sqsserver.CreateQueueInput{QueueName: q.name, Attributes: q.attributes}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// target is the function that fails.
func (s *asyncSystem) target(cfg asyncConfig) emulator.Function {
	none := 0
	f := cfg.function
	f.Name = "flaky"
	if f.Command == nil {
		f.Command, f.Dir = []string{filepath.Join(s.functions, "flaky")}, s.functions
	}
	if f.Timeout == 0 {
		f.Timeout = 20 * time.Second
	}
	f.Async = emulator.AsyncConfig{MaxRetryAttempts: &none, OnSuccess: asyncARN("done"), OnFailure: asyncARN("retries")}
	return f
}

func (s *asyncSystem) retryHandler(cfg asyncConfig) emulator.Function {
	env := map[string]string{"DEAD_LETTER_QUEUE_URL": s.url("dead")}
	maps.Copy(env, cfg.handler)
	f := emulator.Function{
		Name: "retryhandler", Command: []string{filepath.Join(s.functions, "retryhandler")}, Dir: s.functions,
		Environment: env, Timeout: time.Minute,
	}
	if cfg.pids != "" {
		f.Command = []string{"/bin/sh", "-c", `echo $$ >>"$0" && exec "$1"`, cfg.pids, filepath.Join(s.functions, "retryhandler")}
	}
	return f
}

// url is a queue's URL; its host does not matter, since clients have an endpoint.
func (s *asyncSystem) url(queue string) string {
	return "http://sqs.us-east-1.localhost/000000000000/" + queue
}

// send sends the local Lambda's records to destinations.
func (s *asyncSystem) send(ctx context.Context, arn, body string, attributes []sqsserver.MessageAttribute) error {
	var record asyncRecord
	if err := json.Unmarshal([]byte(body), &record); err != nil {
		s.t.Errorf("a destination got %s: %v", body, err)
	}
	s.mu.Lock()
	s.records = append(s.records, record)
	s.mu.Unlock()
	_, err := s.sqs.SendMessage(ctx, &sqsserver.SendMessageInput{
		QueueUrl:         s.url(arn[strings.LastIndex(arn, ":")+1:]),
		SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: body, MessageAttributes: attributes},
	})
	return err
}

func (s *asyncSystem) log(line emulator.Line) {
	fmt.Fprintf(s.t.Output(), "%s %s %s: %.300s\n", line.Time.Format("05.000"), line.Function, line.Source, line.Text)
}

// watchInvokes notes the requests of the Invoke API, and refuses what refuse says.
func (s *asyncSystem) watchInvokes(local http.Handler, refuse func(asyncInvoke) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(payload))
		function, _ := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/"), "/invocations"))
		seen := asyncInvoke{
			At: time.Now(), Function: function[strings.LastIndex(function, ":")+1:],
			Kind: r.Header.Get("X-Amz-Invocation-Type"), Payload: string(payload),
		}
		status := 0
		if refuse != nil {
			status = refuse(seen)
		}
		if status == 0 {
			s.mu.Lock()
			s.invokes = append(s.invokes, seen)
			s.mu.Unlock()
			local.ServeHTTP(w, r)
			return
		}
		code := map[int]string{429: "TooManyRequestsException", 413: "RequestTooLargeException", 500: "ServiceException"}[status]
		w.Header().Set("X-Amzn-Errortype", code)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"Type":"User","message":"refused by the test"}`)
	})
}

// invoke invokes the function asynchronously, as an application does.
func (s *asyncSystem) invoke(payload string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api.URL+"/2015-03-31/functions/flaky/invocations", strings.NewReader(payload))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Amz-Invocation-Type", "Event")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		s.t.Fatalf("the invoke was answered by %s", answer.Status)
	}
}

// put puts a message into the retry queue, as a destination or another sender does.
func (s *asyncSystem) put(body string) {
	s.t.Helper()
	_, err := s.sqs.SendMessage(s.t.Context(), &sqsserver.SendMessageInput{
		QueueUrl: s.url("retries"), SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: body},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *asyncSystem) messages(queue string) []sqsserver.MessageInfo {
	s.t.Helper()
	all, err := s.sqs.Messages(s.url(queue), sqsserver.Page{})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// await waits for n messages in a queue and returns them.
func (s *asyncSystem) await(queue string, n int) []sqsserver.MessageInfo {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := s.messages(queue)
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			s.t.Fatalf("queue %s has %d messages, and never had %d", queue, len(all), n)
		}
	}
}

// settled waits until the retry queue is empty.
func (s *asyncSystem) settled() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.sqs.WaitEmpty(ctx, s.url("retries")); err != nil {
		s.t.Fatalf("the retry queue never became empty: %v", err)
	}
}

// seen returns the invokes of the function and the records so far.
func (s *asyncSystem) seen() (invokes []asyncInvoke, records []asyncRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.invokes {
		if i.Function == "flaky" {
			invokes = append(invokes, i)
		}
	}
	return invokes, slices.Clone(s.records)
}

// asyncAttributes are the attributes of a message, by name.
func asyncAttributes(m sqsserver.MessageInfo) map[string]string {
	all := make(map[string]string)
	for _, a := range m.Attributes {
		all[a.Name] = a.StringValue
	}
	return all
}

// pidsIn are the process ids in a file.
func pidsIn(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}
