//go:build unix

package delivery

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// outcome is what the error of a target does to a message.
func outcome(err error) string {
	switch action := (retry.Policy{}).Decide(retry.Failure{N: 1, Seed: "s", First: time.Unix(1, 0), Ended: time.Unix(2, 0), Err: err}).Action; {
	case err == nil:
		return "deleted"
	case action == retry.ActionRetry && reprise.IsUnavailable(err):
		return "unavailable"
	default:
		return action.String()
	}
}

// TestVerdictSettings: each setting of a verdict gives a message the end that it is named after, on a status of a
// target as on the exit code of a command, also of one that transforms.
func TestVerdictSettings(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(499) }))
	defer srv.Close()
	for verdict, want := range map[string]string{
		"permanent": "dead-letter", "retry": "retry", "unavailable": "unavailable", "release": "release", "delete": "deleted",
	} {
		for name, settings := range map[string][]string{
			"status": {"url", srv.URL, verdict + "-status", "499"}, "exit": {"exec", "exit 99", verdict + "-exit", "99"},
			"exit of a transformation": {"to-queue", "other", "transform", "exit 99", verdict + "-exit", "99"},
		} {
			if name == "exit of a transformation" && verdict == "delete" {
				continue // what it has written is sent
			}
			target, err := targetOf(t, settings...)
			if err != nil {
				t.Fatal(err)
			}
			err = target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Body: "b"})
			if got := outcome(err); got != want {
				t.Errorf("--%s of a %s: the message ends as %s (%v), want %s", verdict, name, got, err, want)
			}
		}
	}
}

// queue is one that takes everything.
type queue struct{ got reprise.Outgoing }

func (q *queue) Send(_ context.Context, messages ...reprise.Outgoing) ([]reprise.Sent, error) {
	q.got = messages[0]
	return make([]reprise.Sent, 1), nil
}

// TestToQueueSettings: whether the other queue is a FIFO queue, which needs a group and drops what comes twice, is told
// by its own name and not by that of the queue that is consumed.
func TestToQueueSettings(t *testing.T) {
	for _, test := range []struct {
		from, to, group, deduplication string
	}{
		{"orders", "copies.fifo", "m", "m"},
		{"orders", "https://sqs.eu-west-1.amazonaws.com/1/copies.fifo", "m", "m"},
		{"orders.fifo", "copies", "", ""},
		{"orders", "copies", "", ""},
	} {
		q := new(queue)
		target, err := settingsOf(t, "to-queue", test.to).Target(Surroundings{Queue: test.from, Sender: q, Secrets: new(Secrets), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Handle(t.Context(), &reprise.Message{ID: "copy", OriginID: "m", Body: "b"}); err != nil || q.got.Body != "b" || q.got.GroupID != test.group || q.got.DeduplicationID != test.deduplication {
			t.Errorf("from %s to %s: %v; sent %+v, want the group %q", test.from, test.to, err, q.got, test.group)
		}
	}
}

// function is a Lambda function that succeeds.
type function struct{ name, payload string }

func (f *function) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	f.name, f.payload = *in.FunctionName, string(in.Payload)
	return &lambda.InvokeOutput{StatusCode: 200}, nil
}

// TestLambdaSettings: a function gets the body alone if that is asked for, else an event.
func TestLambdaSettings(t *testing.T) {
	for payload, bare := range map[string]bool{"body": true, "event": false} {
		f := new(function)
		target, err := settingsOf(t, "lambda", "ship:live", "lambda-payload", payload).Target(Surroundings{Queue: "orders", Invoker: f, Secrets: new(Secrets), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Body: "{}"}); err != nil || f.name != "ship:live" || (f.payload == "{}") != bare {
			t.Errorf("--lambda-payload %s: %v; the function %s got %s", payload, err, f.name, f.payload)
		}
	}
}
