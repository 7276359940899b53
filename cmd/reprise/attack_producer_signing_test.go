//go:build unix

package main_test

// The attackers are producers, who may send to the queue that reprise run consumes, know the ids
// of other messages, and have none of the keys.

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// arrival is a message as the target got it.
type arrival struct{ id, origin, attempt string }

// target is an HTTP service that refuses each body once, with a retry after a second, and records
// its requests.
type target struct {
	*httptest.Server
	mu   sync.Mutex
	seen []arrival
}

func newTarget(t *testing.T, refusals int) *target {
	s := new(target)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := arrival{r.Header.Get("X-Aws-Sqsd-Msgid"), r.Header.Get("X-Reprise-Origin-Id"), r.Header.Get("X-Reprise-Attempt")}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, a)
		if len(s.seen) <= refusals {
			http.Error(w, "not yet", http.StatusTooEarly)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// await waits until the target has been called n times.
func (s *target) await(t *testing.T, n int) []arrival {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		seen := append([]arrival(nil), s.seen...)
		s.mu.Unlock()
		if len(seen) >= n {
			return seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("the target was called %d times, want %d: %v", len(seen), n, seen)
		}
	}
}

// sendForgedHistory sends a message whose history claims another's origin, seven attempts, and
// that it is due in an hour.
func sendForgedHistory(t *testing.T, endpoint, origin string) (id string) {
	t.Helper()
	now := time.Now().UnixMilli()
	text, err := json.Marshal(map[string]any{
		"queue": "orders", "origin": origin, "attempt": 7, "sent": now - 90_000, "first": now - 60_000, "sentAt": now, "notBefore": now + 3600_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: queueURL(endpoint, "orders"), MessageBody: aws.String("forged"),
		MessageAttributes: map[string]types.MessageAttributeValue{"reprise-history": {DataType: aws.String("String"), StringValue: aws.String(string(text))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.MessageId
}

const keyText = "2026-11:cHJvZHVjZXJzIGRvIG5vdCBoYXZlIHRoaXMga2V5"

// TestAttackForgedHistoryWithKeys: a forged history is ignored and reported, whether the keys
// come from a file or the environment; the program's own copies keep their attempts and their
// origin.
func TestAttackForgedHistoryWithKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, args []string }{
		"from a file":          {nil, []string{"--signing-key-file", written(t, "keys", "# ours\n"+keyText+"\n")}},
		"from the environment": {[]string{"REPRISE_SIGNING_KEYS=" + keyText}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives=1")
			s := newTarget(t, 2)
			p := startIn(t, environment(append(c.env, "AWS_ENDPOINT_URL_SQS="+endpoint)...), append([]string{
				"run", "--queue", "orders", "--admin-addr", "none", "--url", s.URL, "--retry", "constant(1s) jitter=none attempts=10",
			}, c.args...)...)
			// At its only receive a message is retried by a copy: twice.
			sendOrders(t, endpoint, 1)
			seen := s.await(t, 3)
			victim := seen[0].id
			for i, a := range seen {
				if a.origin != victim || a.attempt != []string{"1", "2", "3"}[i] || (a.id == victim) != (i == 0) {
					t.Errorf("arrivals %v, want three attempts at one message, of which two are copies", seen)
				}
			}
			forged := sendForgedHistory(t, endpoint, victim)
			if a := s.await(t, 4)[3]; a != (arrival{forged, forged, "1"}) {
				t.Errorf("the forged message arrived as %+v, want it as new", a)
			}
			p.await("that no signing key has signed")
			if out := p.output(); strings.Contains(out, "cHJvZHVj") {
				t.Errorf("the key is in the output:\n%s", out)
			}
		})
	}
}

// TestAttackForgedHistoryWithoutKeys: as docs/retries.md says, a forged history then
// delays its own message, and no other.
func TestAttackForgedHistoryWithoutKeys(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	s := newTarget(t, 0)
	victim := sendForgedHistory(t, endpoint, "00000000-0000-0000-0000-000000000000")
	sendForgedHistory(t, endpoint, victim)
	p, _ := runQueue(t, endpoint, "--url", s.URL)
	sendOrders(t, endpoint, 3)
	for _, a := range s.await(t, 3) {
		if a.id == victim || a.attempt != "1" || a.origin != a.id {
			t.Errorf("arrival %+v, want those that were not forged", a)
		}
	}
	if n := inQueue(t, endpoint, "orders"); n < 2 {
		t.Errorf("%d messages are in the queue, want the two that put themselves off", n)
	}
	if strings.Contains(p.output(), "signing keys") {
		t.Errorf("the program speaks of keys that it has not:\n%s", p.output())
	}
}

// TestAttackSigningKeysAreNotPassedOn: neither the commands that --exec runs nor what the
// program prints have the keys, and bad ones are refused without being shown.
func TestAttackSigningKeysAreNotPassedOn(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	file := written(t, "keys", keyText)
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // G302: which is what is warned of
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, args []string
		warns     bool
	}{
		{[]string{"REPRISE_SIGNING_KEYS=" + keyText}, nil, false},
		{nil, []string{"--signing-key-file", file}, true},
	} {
		p := startIn(t, environment(append(c.env, "AWS_ENDPOINT_URL_SQS="+endpoint)...),
			append([]string{"run", "--queue", "orders", "--admin-addr", "none", "--exec", "env; tr '\\0' ' ' < /proc/$PPID/cmdline; echo; echo THE END"}, c.args...)...)
		sendOrders(t, endpoint, 1)
		p.await("THE END")
		if out := p.output(); strings.Contains(out, "cHJvZHVj") || strings.Contains(out, "every user of this machine can read") != c.warns {
			t.Errorf("%v: the key is shown, or a file that all can read is not warned of (%v):\n%s", c.args, c.warns, out)
		}
		p.stop()
	}
	for _, c := range []struct {
		env, args []string
		code      int
		want      string
	}{
		{nil, []string{"--signing-key-file", "/nonexistent"}, 1, "/nonexistent"},
		{nil, []string{"--signing-key-file", written(t, "empty", "# none\n")}, 2, "there is no key"},
		{nil, []string{"--signing-key-file", written(t, "short", "id:cHJvZHVj")}, 2, "32 or more"},
		{[]string{"REPRISE_SIGNING_KEYS=cHJvZHVjZXJz"}, nil, 2, "REPRISE_SIGNING_KEYS: line 1 has no colon"},
	} {
		p := startIn(t, environment(c.env...), append([]string{"run", "--queue", "orders", "--url", "http://127.0.0.1:1"}, c.args...)...)
		code, out := p.wait()
		if code != c.code || !strings.Contains(out, c.want) || strings.Contains(out, "cHJvZHVj") {
			t.Errorf("%v %v: code %d, want %d and %q, without the key:\n%s", c.env, c.args, code, c.code, c.want, out)
		}
	}
}
