package repriselambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const flaky = "arn:aws:lambda:us-east-1:123456789012:function:flaky"

// call is an invocation as Lambda got it.
type call struct {
	Function string
	Type     string // Event or RequestResponse
	Payload  string
	At       time.Time
	Number   int // from 1, of those to this service
}

// event is the payload as it was first sent.
func (c call) event() string {
	if _, enclosed, ok := strings.Cut(c.Payload, `"_original_payload":`); ok {
		return strings.TrimSuffix(enclosed, "}")
	}
	return c.Payload
}

// reply is what Lambda answers before it runs the function, or instead.
type reply struct {
	status     int
	code       string // of the error
	retryAfter string
	err        error // there is no answer
}

// failed is what a function of a test has left.
type failed struct{ Type, Message string }

// service is Lambda, for the real SDK's client: it runs one function, and sends what
// is to be known of its failures to a queue.
type service struct {
	t     *testing.T
	queue *reprisetest.Queue
	// runs is the function: what is left of a run that fails, else nil.
	runs func(c call) *failed
	// answers says how a call is answered if not by a run. Default: none is.
	answers func(c call) *reply
	// takes is how long a synchronous call takes.
	takes time.Duration

	mu       sync.Mutex
	calls    []call
	requests int
}

// client is a client of s: the real one.
func (s *service) client() *lambda.Client {
	endpoint := "http://lambda.test"
	return lambda.New(lambda.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: s,
	})
}

// Do answers requests of the SDK. See
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html.
func (s *service) Do(r *http.Request) (*http.Response, error) {
	name, _ := strings.CutPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/")
	name, ok := strings.CutSuffix(name, "/invocations")
	function, err := url.PathUnescape(name)
	if !ok || err != nil || r.Method != http.MethodPost {
		return nil, fmt.Errorf("%s %s is no invocation", r.Method, r.URL)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := call{Function: function, Type: r.Header.Get("X-Amz-Invocation-Type"), Payload: string(body), At: time.Now(), Number: len(s.calls) + 1}
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if s.answers != nil {
		if a := s.answers(c); a != nil {
			return a.response()
		}
	}
	if c.Type == "Event" {
		s.run(c)
		return answer(http.StatusAccepted, nil, ""), nil
	}
	running, cancel := context.WithTimeout(r.Context(), s.takes)
	defer cancel()
	<-running.Done()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if f := s.runs(c); f != nil {
		return answer(http.StatusOK, map[string]string{"X-Amz-Function-Error": "Unhandled"}, f.text()), nil
	}
	return answer(http.StatusOK, nil, "null"), nil
}

func (f *failed) text() string {
	text, _ := json.Marshal(map[string]any{"errorType": f.Type, "errorMessage": f.Message, "stackTrace": []string{"main.go:1"}})
	return strings.ReplaceAll(string(text), "\uffff", `\uffff`) // or SQS would refuse it
}

func (a *reply) response() (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	headers := map[string]string{}
	if a.code != "" {
		headers["X-Amzn-Errortype"] = a.code
	}
	if a.retryAfter != "" {
		headers["Retry-After"] = a.retryAfter
	}
	return answer(a.status, headers, `{"message":"as told"}`), nil
}

func answer(status int, headers map[string]string, body string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return r
}

// invoke is an asynchronous invocation by somebody else.
func (s *service) invoke(payload string) {
	s.run(call{Function: flaky, Type: "Event", Payload: payload, At: time.Now()})
}

// run runs the function as Lambda does what is invoked asynchronously, with no
// retries of its own.
func (s *service) run(c call) {
	if f := s.runs(c); f != nil {
		s.queue.Send(s.record(c.Payload, "RetriesExhausted", f.text()))
	}
}

// record is what Lambda sends to a destination on failure, field for field.
func (s *service) record(payload, condition, response string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return recordOfFailure(fmt.Sprintf("request-%d", s.requests), payload, condition, response)
}

func recordOfFailure(request, payload, condition, response string) string {
	ran := ""
	if response != "" {
		ran = fmt.Sprintf(`,"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":%s`, response)
	}
	return fmt.Sprintf(`{"version":"1.0","timestamp":%q,"requestContext":{"requestId":%q,"functionArn":"%s:$LATEST","condition":%q,"approximateInvokeCount":1},"requestPayload":%s%s}`,
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), request, flaky, condition, payload, ran)
}

// made returns the calls so far.
func (s *service) made() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.calls...)
}

// system is the article's: a function, its retry queue with a dead-letter queue, and
// a retry handler.
type system struct {
	*mapping
	lambda *service
	dead   *reprisetest.Queue
}

// newSystem makes one of what cfg does not say.
func newSystem(t *testing.T, runs func(c call) *failed, cfg repriselambda.RetryConfig) *system {
	t.Helper()
	q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "1209600"})
	s := &system{lambda: &service{t: t, queue: q, runs: runs}, dead: q.NewDeadLetterQueue(50)}
	if cfg.Client == nil {
		cfg.Client = q.Client()
	}
	client := &metered{Client: cfg.Client, t: t}
	cfg.Client = client
	if cfg.Lambda == nil {
		cfg.Lambda = s.lambda.client()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	function, err := repriselambda.RetryHandler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.mapping = &mapping{t, q, client, function}
	return s
}

// run has the mapping work until nothing is left in the retry queue, or so long: one
// invocation after the other.
func (s *system) run(limit time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(limit); s.awaitMessage(end); {
		s.invoke()
	}
}

// runWide is run with as many invocations at a time as there are batches.
func (s *system) runWide(limit time.Duration) {
	s.t.Helper()
	var running atomic.Int64
	for end := time.Now().Add(limit); s.awaitMessage(end); {
		if event := s.event(10); len(event.Records) > 0 {
			running.Add(1)
			go func() {
				defer running.Add(-1)
				s.invokeWith(event)
			}()
		}
		synctest.Wait()
		for running.Load() > 0 && !s.visible() {
			time.Sleep(20 * time.Millisecond) // they may send something
		}
	}
}

// visible says that there is a message to receive.
func (s *system) visible() bool {
	return slices.ContainsFunc(s.queue.Messages(), func(m sqsserver.MessageInfo) bool { return !m.Due.After(time.Now()) })
}

// awaitMessage waits until a message is visible, unless that is after end.
func (s *system) awaitMessage(end time.Time) bool {
	var next time.Time
	for _, m := range s.queue.Messages() {
		switch {
		case m.Due.IsZero():
			return true
		case next.IsZero() || m.Due.Before(next):
			next = m.Due
		}
	}
	if next.IsZero() || next.After(end) {
		return false
	}
	time.Sleep(time.Until(next))
	return true
}

// letter is a dead letter: its body, and its attributes by name.
type letter struct {
	Body       string
	Attributes map[string]string
}

// letters returns the dead letters, without their stories, and the stories.
func (s *system) letters() (letters []letter, stories []string) {
	for _, m := range s.dead.Messages() {
		l := letter{Body: m.Body, Attributes: make(map[string]string)}
		for _, a := range m.Attributes {
			if a.Name == "reprise-story" {
				stories = append(stories, a.StringValue)
				continue
			}
			l.Attributes[a.Name] = a.StringValue
		}
		letters = append(letters, l)
	}
	return letters, stories
}

// redrive sends the dead letters back to the retry queue as they are, as SQS's own
// move tasks do.
func (s *system) redrive() {
	s.t.Helper()
	ctx := sqsserver.WithoutFaults(context.Background())
	url := s.dead.URL()
	out, err := s.queue.Direct().ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range out.Messages {
		e := sqsserver.SendMessageEntry{MessageBody: *m.Body}
		for name, a := range m.MessageAttributes {
			e.MessageAttributes = append(e.MessageAttributes, sqsserver.MessageAttribute{Name: name, DataType: *a.DataType, StringValue: *a.StringValue})
		}
		s.queue.SendMessage(e)
	}
}
