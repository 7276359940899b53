package repriselambda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// soon is longer than SQS is asked for what it does not accept when no handler runs: until the client of
// the test gives up its own retries, some seconds, and the time reserved for settling.
const soon = 15 * time.Second

// TestRefusalAboutWhatDoesNotRun: SQS refuses a request about a message that no handler gets, since it is too
// old, or not due. The invocation does not last for the rest of the function's time because of it.
func TestRefusalAboutWhatDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     repriselambda.Config
		after   time.Duration
		refused string
		failed  int // of the first invocation, which sends a copy or not
		letters int
	}{
		"too old": {repriselambda.Config{Retry: retry.Policy{MaxAge: 10 * time.Minute}}, time.Hour, "SendMessageBatch", 1, 1},
		"not due": {repriselambda.Config{Retry: retry.Policy{Backoff: retry.Constant(2 * time.Hour), Jitter: retry.None}, Via: reprise.ViaRequeue}, 20 * time.Minute, "ChangeMessageVisibilityBatch", 0, 0},
	} {
		inModes(t, modes, func(t *testing.T, in mode) {
			q := reprisetest.NewQueue(t, nil)
			dead := q.NewDeadLetterQueue(10)
			q.Send("fail")
			ran := 0
			m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
				ran++
				return does(ctx, m)
			}, c.cfg)
			if failed := m.invoke(); len(failed) != c.failed {
				t.Errorf("%s: failed: %v", name, failed)
			}
			time.Sleep(c.after)
			refuse := sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: c.refused}
			q.Fault(refuse)
			dead.Fault(refuse)
			began := time.Now()
			if diff := cmp.Diff([]string{"fail"}, m.invoke()); diff != "" {
				t.Errorf("%s: failed (-want +got):\n%s", name, diff)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("%s: the function spent %v on it", name, took)
			}
			q.Fault()
			dead.Fault()
			time.Sleep(visibility)
			m.invoke()
			if letters := dead.Messages(); ran != 1 || len(letters) != c.letters {
				t.Errorf("%s: the handler ran %d times, dead letters %v", name, ran, letters)
			}
		})
	}
}

// TestGroupBehindARefusedDeadLetter: what is behind it in its group comes back, and runs when SQS has the dead
// letter; another group's handler has its time meanwhile.
func TestGroupBehindARefusedDeadLetter(t *testing.T) {
	inModes(t, each, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := q.NewDeadLetterQueue(10)
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch"})
		sendTo(q, "a.1", "b.1", "a.2")
		var j journal
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			j.note(m)
			switch m.Body {
			case "a.1":
				return reprise.Permanent(errors.New("as told"))
			case "b.1":
				time.Sleep(30 * time.Second)
			}
			return nil
		}, repriselambda.Config{})
		began := time.Now()
		if diff := cmp.Diff([]string{"a.1", "a.2"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took < 30*time.Second || took > 30*time.Second+soon {
			t.Errorf("the function spent %v on it", took)
		}
		dead.Fault()
		time.Sleep(visibility)
		if diff := cmp.Diff([]string{}, m.invoke()); diff != "" || len(dead.Messages()) != 1 {
			t.Errorf("failed the second time (-want +got):\n%s, %d dead letters", diff, len(dead.Messages()))
		}
		want := map[string][]string{"a": {"a.1", "a.1", "a.2"}, "b": {"b.1"}}
		if diff := cmp.Diff(want, j.ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
	})
}

// powerless is a client without the permissions to change visibilities and to send.
type powerless struct{ reprise.Client }

var errDenied = &smithy.GenericAPIError{Code: "AccessDenied", Message: "not permitted"}

func (powerless) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return nil, errDenied
}

func (powerless) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, errDenied
}

// TestEachDeniedPermissionIsToldOnce in the life of a process, although their findings have one code.
func TestEachDeniedPermissionIsToldOnce(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(10)
		var log bytes.Buffer
		told := make(map[string]int)
		m := in.newMapping(t, q, does, repriselambda.Config{
			Client: powerless{q.Client()}, Retry: every40, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { told[f.Remedy]++ }},
		})
		for _, body := range []string{"fail", "permanent", "fail", "permanent"} {
			q.Send(body)
			m.invoke()
		}
		for _, action := range []string{"sqs:ChangeMessageVisibility on " + q.ARN(), "sqs:SendMessage on " + q.ARN() + "-2"} {
			if remedy := "permit " + action + "."; told[remedy] != 1 || strings.Count(log.String(), remedy) != 1 {
				t.Errorf("%q is told %d times; logged:\n%s", remedy, told[remedy], &log)
			}
		}
	})
}
