package sqsserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestEndPolls: long polls that wait are answered at once, later ones wait again.
func TestEndPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sqsserver.New(sqsserver.Config{})
		defer s.Close()
		created, err := s.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"})
		if err != nil {
			t.Fatal(err)
		}
		poll := func() time.Duration {
			began := time.Now()
			out, err := s.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: sqsserver.Int(20)})
			if err != nil || len(out.Messages) != 0 {
				t.Errorf("ReceiveMessage = %v, %v; want no message and no error", out, err)
			}
			return time.Since(began)
		}
		go func() {
			time.Sleep(7 * time.Second)
			s.EndPolls()
		}()
		if took := poll(); took != 7*time.Second {
			t.Errorf("the long poll took %v, want the 7 s until EndPolls", took)
		}
		if took := poll(); took != 20*time.Second {
			t.Errorf("the next long poll took %v, want its 20 s", took)
		}
	})
}
