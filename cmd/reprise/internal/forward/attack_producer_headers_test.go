//go:build unix

package forward_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

// These tests hold off a producer, which may only send to the queue, on SQS or on a server
// that accepts more than SQS does. It sends names and values that no HTTP header and no
// environment variable can carry.

// uncarriable is a message all of whose texts have been chosen by a producer.
func uncarriable(attributes map[string]string) *reprise.Message {
	m := message("body")
	m.Attributes = make(map[string]types.MessageAttributeValue)
	for name, value := range attributes {
		m.Attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	return m
}

// TestAttackHeadersThatCannotBeSent: each is left out, with a line in the log; the
// message is delivered with the rest, and with their number.
func TestAttackHeadersThatCannotBeSent(t *testing.T) {
	for _, test := range []struct{ name, value string }{
		{"é", "x"}, {"\u0410", "x"}, {"\U0001d7d8", "x"}, {"a b", "x"}, {"a:b", "x"}, {"a\nb", "x"}, {"a\x00", "x"}, {"a(b)", "x"}, {"a/b", "x"}, {"\xff", "x"}, {"\x7f", "x"},
		{"v", "a\nb"}, {"v", "a\rb"}, {"v", "a\r\nX-Evil: 1"}, {"v", "\x00"}, {"v", "\x7f"}, {"v", "\x1b[2J"},
	} {
		t.Run(fmt.Sprintf("%q", test), func(t *testing.T) {
			var got http.Header
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
			defer srv.Close()
			var log bytes.Buffer
			target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			for range 3 {
				if err := target.Handle(t.Context(), uncarriable(map[string]string{test.name: test.value, "good": "yes"})); err != nil {
					t.Fatalf("Handle = %v, want the message delivered", err)
				}
			}
			if got.Get("X-Aws-Sqsd-Attr-Good") != "yes" || got.Get("X-Reprise-Left-Out") != "1" || got.Get("X-Evil") != "" {
				t.Errorf("headers %v, want the good attribute and that one is left out", got)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "attribute left out") || strings.ContainsAny(log.String(), "\x00\x1b\x7f") {
				t.Errorf("the log has %d lines, want one:\n%s", lines, log.String())
			}
		})
	}
}

// TestAttackHeadersOfManyBytes: a target that limits headers, as all do, gets the message
// without the attributes that are too much. By a cut connection or a hanging one it would
// seem to be down, for everybody.
func TestAttackHeadersOfManyBytes(t *testing.T) {
	large := strings.Repeat("x", 5<<10)
	for name, attributes := range map[string]map[string]string{
		"one of a megabyte": {"a": strings.Repeat("x", 1<<20-100), "good": "yes"},
		"two of 5 KiB":      {"good": "yes", "y": large, "z": large},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
			srv.Config.MaxHeaderBytes = 8 << 10 // and 4 KiB, which net/http adds
			srv.Start()
			defer srv.Close()
			m := uncarriable(attributes)
			m.GroupID = large
			if err := newHTTP(t, srv.URL).Handle(t.Context(), m); err != nil {
				t.Fatalf("Handle = %v, want the message delivered", err)
			}
			if got.Get("X-Aws-Sqsd-Attr-Good") != "yes" || got.Get("X-Reprise-Left-Out") != "1" || got.Get("X-Reprise-Group-Id") != "" {
				t.Errorf("headers of %d names, %s left out: want the good attribute, and that one is left out", len(got), got.Get("X-Reprise-Left-Out"))
			}
		})
	}
}

// TestAttackIdsThatCannotBeSent: ids and groups of a server that takes anything.
func TestAttackIdsThatCannotBeSent(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	m := message("body")
	m.ID, m.OriginID, m.GroupID = "a\nb", "a\rb", "a\x00b"
	if err := newHTTP(t, srv.URL).Handle(t.Context(), m); err != nil || got.Get("X-Reprise-Attempt") != "3" {
		t.Errorf("Handle = %v, headers %v, want the message delivered", err, got)
	}
	if err := newExec(t, forward.ExecConfig{Command: "true"}).Handle(t.Context(), m); err != nil {
		t.Errorf("Handle = %v, want the command run", err)
	}
}

// TestAttackVariablesThatCannotBeSet: values that no environment can have are left out.
func TestAttackVariablesThatCannotBeSet(t *testing.T) {
	for name, value := range map[string]string{"a zero byte": "a\x00b", "32 KiB and a byte": strings.Repeat("x", 32<<10+1)} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			target := newExec(t, forward.ExecConfig{
				Command: `echo "$REPRISE_ATTR_GOOD $REPRISE_LEFT_OUT"`, Stdout: &out, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			for range 3 {
				if err := target.Handle(t.Context(), uncarriable(map[string]string{"bad": value, "a=b": "c", "good": "yes"})); err != nil {
					t.Fatalf("Handle = %v, want the command run", err)
				}
			}
			if out.String() != "yes 1\nyes 1\nyes 1\n" {
				t.Errorf("the command saw %q", out.String())
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 {
				t.Errorf("the log has %d lines, want one:\n%s", lines, log.String())
			}
		})
	}
}

// TestAttackNamesFillNoLog: a producer makes up a name for each message. A hundred of
// them are logged, and that there are more; no more of them are remembered.
func TestAttackNamesFillNoLog(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	var log bytes.Buffer
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for i := range 500 {
		if err := target.Handle(t.Context(), uncarriable(map[string]string{fmt.Sprint("é", i): "x"})); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 101 || !strings.Contains(log.String(), "further names") {
		t.Errorf("500 names made %d lines in the log, want 101", lines)
	}
}
