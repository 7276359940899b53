package sqsserver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// A panic while the engine works leaves the queues half-changed and the lock held:
// the server stops, for everybody, instead of hanging.
func TestPanicInTheEngineStopsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
		s.queues[queueName{"000000000000", "us-east-1", "q"}].engine = nil // a defect

		send := func() *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/", strings.NewReader(`{"QueueUrl":"q","MessageBody":"x"}`))
			r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		for _, what := range []string{"the request that met the defect", "the next one"} {
			if w := send(); w.Code != http.StatusInternalServerError || w.Header().Get("X-Amzn-Query-Error") != "InternalFailure;Receiver" {
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
		if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "stack=") {
			t.Errorf("the log says %q", log.String())
		}
	})
}
