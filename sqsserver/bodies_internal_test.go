package sqsserver

import (
	"errors"
	"testing"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// TestLoadAfterClose: a receive that took its messages before the server was closed
// reads nothing from the journal, which is closed, too.
func TestLoadAfterClose(t *testing.T) {
	s, err := Open(nowhere{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: "q"}); err != nil {
		t.Fatal(err)
	}
	q := s.queues[queueName{"000000000000", "us-east-1", "q"}]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.loadBodies(q, []engine.Delivery{{SendNumber: 1}}, true)
	var e *Error
	if !errors.As(err, &e) || e.Code != codeServiceUnavailable {
		t.Errorf("load = %v, want ServiceUnavailable", err)
	}
	if s.Err() != nil {
		t.Errorf("Err = %v after Close", s.Err())
	}
}
