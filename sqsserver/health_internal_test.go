package sqsserver

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// nowhere is a journal that keeps nothing.
type nowhere struct{}

func (nowhere) Scan([]byte, func(key, value []byte) error) error { return nil }
func (nowhere) Commit(*Batch, bool) error                        { return nil }
func (nowhere) Close() error                                     { return nil }

func (nowhere) Get(keys [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for range keys {
			if !yield(nil, ErrNotInJournal) {
				return
			}
		}
	}
}

// A panic under the lock leaves the queues half-changed, wherever it comes from: the
// server stops, for everybody, instead of hanging.
func TestPanicUnderTheLockStopsTheServer(t *testing.T) {
	send := func() (action, body string) { return actionSendMessage, `{"QueueUrl":"q","MessageBody":"x"}` }
	for _, test := range []struct {
		name    string
		journal Journal
		defect  func(s *Server, q *queue)
		request func() (action, body string)
	}{
		{"in the engine", nil, func(_ *Server, q *queue) { q.engine = nil }, send},
		{"in the engine, with a journal", nowhere{}, func(_ *Server, q *queue) { q.engine = nil }, send},
		{"in the engine, where a deferred call gives up the lock", nil, func(s *Server, q *queue) {
			s.byARN[q.arn] = &queue{queueName: q.queueName, arn: q.arn}
			q.attributes.redrive.target = q.arn
		}, func() (action, body string) {
			return actionStartMessageMoveTask, `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:q"}`
		}},
		{"where an id is made", nil, func(s *Server, _ *queue) { s.random = nil }, send},
		{"where a record is encoded", nowhere{}, func(_ *Server, q *queue) { q.attributes = nil }, func() (action, body string) {
			return actionTagQueue, `{"QueueUrl":"q","Tags":{"a":"b"}}`
		}},
		{"where messages are handed out", nil, func(s *Server, _ *queue) { s.longPoll.toCheck = append(s.longPoll.toCheck, nil) }, send},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { panicUnderTheLock(t, test.journal, test.defect, test.request) })
		})
	}
}

func panicUnderTheLock(t *testing.T, journal Journal, defect func(*Server, *queue), request func() (action, body string)) {
	var log bytes.Buffer
	config := Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := New(config)
	if journal != nil {
		var err error
		if s, err = Open(journal, config); err != nil {
			t.Fatal(err)
		}
	}
	defer s.Close()
	for _, name := range []string{"q", "other"} {
		if _, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: name}); err != nil {
			t.Fatal(err)
		}
	}
	polled := make(chan error, 1)
	go func() {
		_, err := s.ReceiveMessage(context.Background(), &ReceiveMessageInput{QueueUrl: "other", WaitTimeSeconds: Int(20)})
		polled <- err
	}()
	synctest.Wait()
	defect(s, s.queues[queueName{"000000000000", "us-east-1", "q"}])

	for _, what := range []string{"the request that met the defect", "the next one"} {
		action, body := request()
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError || w.Header().Get("X-Amzn-Query-Error") != "InternalFailure;Receiver" {
			t.Errorf("%s: status %d, %s", what, w.Code, w.Body)
		}
	}
	var e *Error
	if err := <-polled; !errors.As(err, &e) || e.Code != codeInternalFailure {
		t.Errorf("the long poll returned %v, want InternalFailure", err)
	}
	if s.Err() == nil {
		t.Error("Err is nil")
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "stack=") {
		t.Errorf("%d errors in the log, want one with the stack:\n%s", n, log.String())
	}
}
