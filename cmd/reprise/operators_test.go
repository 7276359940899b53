//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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

	library "github.com/reprise-sqs/reprise"
)

// job is the body of a message of a busyQueue.
type job struct {
	N    int    `json:"n"`
	Kind string `json:"kind"`
}

// How the target treats a kind of job: it takes good ones at once and flaky ones at the second request,
// refuses others until its mistake is mended, and hopeless ones for ever.
const (
	goodJob     = "good"
	flakyJob    = "flaky"
	refusedJob  = "refused"
	hopelessJob = "hopeless"
)

func kindOf(n int) string {
	switch n % 20 {
	case 3, 4, 5:
		return flakyJob
	case 7, 8:
		return refusedJob
	case 11:
		return hopelessJob
	}
	return goodJob
}

// busyTarget handles the jobs.
type busyTarget struct {
	mu      sync.Mutex
	mended  bool
	asked   map[int]int
	handled map[int]int
}

func (b *busyTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var j job
	if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &j) != nil {
		http.Error(w, "not a job", http.StatusTeapot)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[j.N]++
	switch {
	case j.Kind == hopelessJob:
		http.Error(w, fmt.Sprintf("job %d is hopeless", j.N), http.StatusUnprocessableEntity)
	case j.Kind == refusedJob && !b.mended:
		http.Error(w, fmt.Sprintf("job %d is refused", j.N), http.StatusUnprocessableEntity)
	case j.Kind == flakyJob && b.asked[j.N] == 1:
		http.Error(w, "too early", http.StatusTooEarly)
	default:
		b.handled[j.N]++
	}
}

// open returns the jobs of the first n that are to be handled and have not been.
func (b *busyTarget) open(n int) (open []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		if kindOf(i) != hopelessJob && b.handled[i] == 0 {
			open = append(open, i)
		}
	}
	return open
}

// fillBusy sends n jobs, one in ten of each of: delayed, dead, received by somebody who has gone.
func fillBusy(t *testing.T, endpoint string, n int) {
	t.Helper()
	c := client(endpoint)
	for some := range slices.Chunk(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}), 10) {
		queue, delay := "work", int32(0)
		story := map[string]types.MessageAttributeValue(nil)
		switch some[0] / 10 % 10 {
		case 1:
			delay = 1 + int32(some[0]/100%20)
		case 2:
			queue = "dead"
			text := `{"reason":"permanent","error":"a job of last week","source":"arn:aws:sqs:us-east-1:000000000000:work"}`
			story = map[string]types.MessageAttributeValue{library.StoryAttribute: {DataType: aws.String("String"), StringValue: &text}}
		}
		in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, queue)}
		for _, i := range some {
			body, err := json.Marshal(job{i, kindOf(i)})
			if err != nil {
				t.Fatal(err)
			}
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), DelaySeconds: delay, MessageAttributes: story})
		}
		if out, err := c.SendMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
			t.Fatal(err, out)
		}
	}
	for range n / 100 {
		if _, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "work"), MaxNumberOfMessages: 10, VisibilityTimeout: 15}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperatorsBesideConsumers: while two consumers work a queue off, one of them is killed, and operators
// redrive, move, export, delete, look, pause and wake beside them at random. Every job is handled in the
// end, but those that were deleted on purpose, and the queues are empty.
func TestOperatorsBesideConsumers(t *testing.T) {
	t.Parallel()
	n := 10_000
	if isRaced(t.Name()) {
		n = 2_000
	}
	target := &busyTarget{asked: make(map[int]int), handled: make(map[int]int)}
	web := httptest.NewServer(target)
	t.Cleanup(web.Close)
	s := start(t, "serve", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--queue", "work,dead-letter=dead,max-receives=1000", "--queue", "side")
	endpoint := s.await("SQS endpoint")
	fillBusy(t, endpoint, n)

	consume := func() (*process, string) {
		p := startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint), "run", "--queue", "work", "--url", web.URL, "--lease", "15s",
			"--retry", "constant(2s) jitter=none attempts=1000", "--long-poll", "2s", "--rate", "250", "--admin-addr", "127.0.0.1:0")
		at, _, _ := strings.Cut(p.await("admin         "), "/health")
		return p, at
	}
	killed, first := consume()
	_, second := consume()

	actions := [][]string{
		{"redrive", "dead", "--error", "refused", "--rate", "500", "--endpoint", endpoint},
		{"redrive", "dead", "--error", "last week", "--limit", "100", "--endpoint", endpoint},
		{"redrive", "dead", "--where", "kind=good", "--job", "--admin", endpoint},
		{"dead", "dead", "--endpoint", endpoint},
		{"dead", "export", "dead", "--error", "is hopeless", "--endpoint", endpoint},
		{"dead", "delete", "dead", "--error", "is hopeless", "--yes", "--endpoint", endpoint},
		{"move", "work", "side", "--limit", "200", "--yes", "--endpoint", endpoint},
		{"move", "work", "side", "--where", "kind=flaky", "--limit", "50", "--yes", "--endpoint", endpoint},
		{"move", "side", "work", "--yes", "--endpoint", endpoint},
		{"search", "work", "--where", "kind=refused", "--limit", "5", "--yes", "--endpoint", endpoint},
		{"peek", "work", "--hidden", "--limit", "100", "--endpoint", endpoint},
		{"queues", "--endpoint", endpoint},
		{"pause", "work", "--admin", second},
		{"resume", "work", "--admin", second},
		{"wake", "work", "--admin", second},
		{"concurrency", "work", "3", "--admin", second},
		{"concurrency", "work", "20", "--admin", second},
	}
	var operators sync.WaitGroup
	for i := range 3 {
		operators.Go(func() {
			chance := rand.New(rand.NewPCG(1, uint64(i)))
			for range 12 {
				args := actions[chance.IntN(len(actions))]
				got := reprise(t, "", args...)
				if busy := strings.Contains(got.stderr, "wait for its end, or cancel it"); got.code != 0 && got.code != 3 && !busy {
					t.Errorf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
				}
			}
		})
	}
	reprise(t, "", "queues", "--admin", first)
	killed.signal(syscall.SIGKILL)
	consume()
	operators.Wait()

	target.mu.Lock()
	target.mended = true
	target.mu.Unlock()
	reprise(t, "", "resume", "work", "--admin", second)
	for end := time.Now().Add(patience); len(target.open(n)) > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			open := target.open(n)
			t.Fatalf("%d of %d jobs have not been handled, among them %v", len(open), n, open[:min(len(open), 20)])
		}
		for _, args := range [][]string{{"redrive", "dead", "--where", "kind!=hopeless"}, {"move", "side", "work", "--yes"}} {
			if got := reprise(t, "", append(args, "--endpoint", endpoint)...); got.code != 0 && got.code != 3 {
				t.Fatalf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
			}
		}
	}

	// Only hopeless jobs are left. An operator deletes them, and then no queue has a message.
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		reprise(t, "", "dead", "delete", "dead", "--where", "kind=hopeless", "--yes", "--endpoint", endpoint)
		reprise(t, "", "move", "side", "work", "--yes", "--endpoint", endpoint)
		left := 0
		for _, q := range []string{"work", "side", "dead"} {
			out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queueURL(endpoint, q), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
			if err != nil {
				t.Fatal(err)
			}
			for _, count := range []string{"", "NotVisible", "Delayed"} {
				some, err := strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"+count])
				if err != nil {
					t.Fatal(err)
				}
				left += some
			}
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages are still in the queues", left)
		}
	}
	again := 0
	for i, times := range target.handled {
		if kindOf(i) == hopelessJob {
			t.Errorf("job %d is hopeless and was handled", i)
		}
		again += times - 1
	}
	// The killed consumer ran ten at a time, and had at most a few batches of deletes before it.
	if again > 100 {
		t.Errorf("%d jobs were handled a second time", again)
	}
	t.Logf("%d jobs, %d of them handled a second time", n, again)
}
