//go:build unix

package forward_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// TestVerdictWinsOverRetryAfter: Retry-After is how long a retry waits. It does not make a retry of a message
// that the operator's statuses give up or release.
func TestVerdictWinsOverRetryAfter(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		for _, test := range []struct {
			verdict forward.Verdict
			action  retry.Action // 0: success
		}{
			{forward.Permanent, retry.ActionDeadLetter}, {forward.Release, retry.ActionRelease}, {forward.Delete, 0},
			{forward.Retry, retry.ActionRetry}, {forward.Unavailable, retry.ActionRetry},
		} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
			}))
			target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Statuses: forward.Codes{status: test.verdict}})
			if err != nil {
				t.Fatal(err)
			}
			err = target.Handle(t.Context(), message("{}"))
			target.Close()
			srv.Close()
			if test.action == 0 {
				if err != nil {
					t.Errorf("%d as %v: %v, want success", status, test.verdict, err)
				}
				continue
			}
			if action, wait := decide(err); action != test.action || action == retry.ActionRetry && wait.Seconds() != 7 {
				t.Errorf("%d as %v: %v after %v, want %v: %v", status, test.verdict, action, wait, test.action, err)
			}
		}
	}
}

// stopAt ends the time of a run when its command writes.
type stopAt struct{ cancel context.CancelFunc }

func (s stopAt) Write(p []byte) (int, error) { s.cancel(); return len(p), nil }

// TestDoneAsTimeEnds: a command that has ended with 0 has done its work, though the time of the run ends before
// all of its output is read. To run it again would do the work twice.
func TestDoneAsTimeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// What the command leaves behind writes when the command has been waited for, and some time later: else
	// the end of the time and that of the command may be seen in either order.
	const writesAfterwards = `(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; sleep 1; echo late) & exit 0`
	if err := newExec(t, forward.ExecConfig{Command: writesAfterwards, Stdout: stopAt{cancel}}).Handle(ctx, message("body")); err != nil || ctx.Err() == nil {
		t.Errorf("a command that had ended with 0 when its time ended (%v): %v, want success", ctx.Err(), err)
	}
}

// TestSharedVariable: of attributes whose names give one variable none is passed on by it: which one the
// command would get is chance. The object of all attributes has both.
func TestSharedVariable(t *testing.T) {
	var out bytes.Buffer
	text := func(s string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	m := &reprise.Message{ID: "m", OriginID: "m", Body: "b", Attributes: map[string]types.MessageAttributeValue{
		"user-id": text("one"), "user.id": text("two"), "tenant": text("acme"),
	}}
	if err := newExec(t, forward.ExecConfig{Command: "env | grep ^REPRISE_", Stdout: &out}).Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "REPRISE_ATTR_USER_ID=") {
		t.Errorf("one of two attributes is passed on as USER_ID:\n%s", out.String())
	}
	for _, want := range []string{`REPRISE_ATTRIBUTES={"tenant":"acme","user-id":"one","user.id":"two"}`, "REPRISE_ATTR_TENANT=acme", "REPRISE_LEFT_OUT=2"} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("the command did not get %s:\n%s", want, out.String())
		}
	}
}
