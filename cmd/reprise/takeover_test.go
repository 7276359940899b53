//go:build unix

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestTakeover: while a first process works, it gets SIGTERM, and a second one starts, as in a
// rolling deployment. What runs ends, or is given back if it takes longer than the budget; the
// second process does all of the rest, although leases last for longer than the test: nothing
// is left hidden. No message is done twice, and groups keep their order.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "orders.fifo"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			const messages = 200
			w := newTakeoverTarget(t)
			dead := strings.Replace(queue, "orders", "dead", 1)
			_, endpoint := serve(t, "--queue", queue+",dead-letter="+dead+",max-receives=100")
			w.send(endpoint, queue, messages)
			run := func(name string) (p *process, admin string) {
				p = start(t, "run", "--queue", queue, "--endpoint", endpoint, "--url", w.URL, "--admin-addr", "127.0.0.1:0", "--log-level", "warn",
					"--header", "X-Process: "+name, "--concurrency", "8", "--lease", "1h", "--timeout", "50m", "--stop-budget", "6s")
				admin, _, _ = strings.Cut(p.await("admin         "), "/health")
				return p, admin
			}
			first, _ := run("first")
			w.await("the first process at work", func() bool { return len(w.done) >= messages/10 && w.stuck > 0 })
			first.signal(syscall.SIGTERM)
			second, admin := run("second")
			if code, output := first.wait(); code != 0 {
				t.Errorf("the first process: exit code %d:\n%s", code, output)
			}
			w.await("all messages done", func() bool { return len(w.done) == messages })
			awaitHealth(t, admin, func(h health) bool { return h.Consumer.Running+h.Consumer.Settling == 0 })
			second.signal(syscall.SIGTERM)
			if code, output := second.wait(); code != 0 {
				t.Errorf("the second process: exit code %d:\n%s", code, output)
			}
			if left, dead := inQueue(t, endpoint, queue), inQueue(t, endpoint, dead); left+dead != 0 {
				t.Errorf("%d messages are left, %d dead", left, dead)
			}
			w.check(messages)
		})
	}
}

// takeoverTarget takes 20 ms for a message. For the first process every 50th ends only when it is
// broken off.
type takeoverTarget struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	done  []int // bodies, in the order of their ends
	stuck int   // attempts that do not end
}

const takeoverGroups = 20

func newTakeoverTarget(t *testing.T) *takeoverTarget {
	w := &takeoverTarget{t: t}
	w.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, err := strconv.Atoi(string(text))
		if err != nil {
			t.Error(err)
		}
		if body%50 == 7 && r.Header.Get("X-Process") == "first" {
			w.mu.Lock()
			w.stuck++
			w.mu.Unlock()
			<-r.Context().Done()
			return
		}
		time.Sleep(20 * time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = append(w.done, body)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *takeoverTarget) send(endpoint, queue string, messages int) {
	w.t.Helper()
	for first := 0; first < messages; first += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, queue)}
		for i := range 10 {
			entry := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(strconv.Itoa(first + i))}
			if strings.HasSuffix(queue, ".fifo") {
				entry.MessageGroupId, entry.MessageDeduplicationId = aws.String(fmt.Sprint((first+i)%takeoverGroups)), entry.MessageBody
			}
			in.Entries = append(in.Entries, entry)
		}
		if out, err := client(endpoint).SendMessageBatch(w.t.Context(), in); err != nil || len(out.Failed) > 0 {
			w.t.Fatal(out, err)
		}
	}
}

func (w *takeoverTarget) await(what string, so func() bool) {
	w.t.Helper()
	awaitThat(w.t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return so()
	})
}

// check compares what was done.
func (w *takeoverTarget) check(messages int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if once := slices.Compact(slices.Sorted(slices.Values(w.done))); len(once) != messages || len(w.done) != messages {
		w.t.Errorf("%d messages were done, in %d attempts, want each of %d once", len(once), len(w.done), messages)
	}
	last := make(map[int]int)
	for _, body := range w.done {
		group := body % takeoverGroups
		if last[group] > body && w.ordered() {
			w.t.Errorf("message %d of a group was done after %d", body, last[group])
		}
		last[group] = body
	}
}

func (w *takeoverTarget) ordered() bool { return strings.Contains(w.t.Name(), ".fifo") }
