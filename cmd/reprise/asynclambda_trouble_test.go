//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// failureRecord is a record as an on-failure destination gets it.
func failureRecord(payload string) string {
	return fmt.Sprintf(`{"version":"1.0","timestamp":%q,"requestContext":{"requestId":"059f36b4-87a3-44ab-83d2-661975830a7d",`+
		`"functionArn":"%s:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":%s,`+
		`"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},`+
		`"responsePayload":{"errorMessage":"no","errorType":"Exception"}}`,
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), flakyARN, payload)
}

// TestAsyncLambdaPoison: messages that cannot be invoked are dead-lettered with the reason, at
// once and without an invoke, and the others go on.
func TestAsyncLambdaPoison(t *testing.T) {
	t.Parallel()
	s := newAsyncSystem(t, asyncConfig{
		handler: map[string]string{"BASE_BACKOFF": "200ms", "MAX_RETRIES": "1"},
		refuse: func(i asyncInvoke) int {
			if strings.Contains(i.Payload, "large for Lambda") {
				return 413
			}
			return 0
		},
	})
	// As large as a message can be, so that the attributes of its dead letter do not fit.
	const tooOld = `{"timestamp":"2020-01-01T00:00:00Z","requestContext":{"functionArn":"` + flakyARN + `","condition":"EventAgeExceeded"},"requestPayload":`
	full := `"` + strings.Repeat("x", 1<<20-len(tooOld+`""}`)) + `"`
	poison := []struct{ body, payload, reason string }{
		{"not JSON", "not JSON", "not-json"},
		{`{"id":1}`, `{"id":1}`, "wrong-shape"},
		{`[]`, `[]`, "wrong-shape"},
		{strings.Replace(failureRecord(`{}`), "RetriesExhausted", "Success", 1), "", "not-a-failure"},
		{failureRecord(`{"_retry_metadata":{"attempt":-1,"initial_timestamp":1},"_original_payload":{}}`), "", "bad-metadata"},
		{failureRecord(`{"id":"large for Lambda"}`), `{"id":"large for Lambda"}`, "too-large"},
		{tooOld + full + "}", full, "age"},
	}
	for _, p := range poison {
		s.put(p.body)
	}
	s.put(failureRecord(`{"id":"sound"}`))
	s.await("done", 1)
	want := make(map[string]string)
	var reasons []string
	for _, p := range poison {
		want[p.reason] = p.payload
		reasons = append(reasons, p.reason)
	}
	var got []string
	for _, m := range s.await("dead", len(poison)) {
		letter := asyncLetterOf(m)
		got = append(got, letter.Reason)
		if payload := want[letter.Reason]; payload != "" && letter.Reason != "wrong-shape" && letter.Payload != payload {
			t.Errorf("the dead letter for %s has %d bytes, %.100s, want %d, %.100s", letter.Reason, len(letter.Payload), letter.Payload, len(payload), payload)
		}
	}
	slices.Sort(reasons)
	slices.Sort(got)
	if diff := cmp.Diff(reasons, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	s.settled()
	if invokes, _ := s.seen(); len(invokes) != 1 {
		t.Errorf("the function was invoked %d times, want once, for the sound record", len(invokes))
	}
}

// TestAsyncLambdaHandlerCrash: a retry handler that dies in the middle of a batch loses nothing.
// It is invoked again with messages that it had not yet deleted.
func TestAsyncLambdaHandlerCrash(t *testing.T) {
	t.Parallel()
	const events = 5
	pids := filepath.Join(t.TempDir(), "pids")
	var retries atomic.Int32
	s := newAsyncSystem(t, asyncConfig{
		handler:    map[string]string{"BASE_BACKOFF": "200ms", "CONCURRENCY": "1"},
		visibility: 3,
		pids:       pids,
		refuse: func(asyncInvoke) int {
			if retries.Add(1) != 2 {
				return 0
			}
			all := pidsIn(t, pids)
			pid, err := strconv.Atoi(all[len(all)-1])
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGKILL)
			}
			if err != nil {
				t.Errorf("killing the retry handler, %v: %v", all, err)
			}
			return 0 // Lambda has got the invoke
		},
	})
	batch := &sqsserver.SendMessageBatchInput{QueueUrl: s.url("retries")}
	for i := range events {
		batch.Entries = append(batch.Entries, sqsserver.SendMessageBatchRequestEntry{
			Id: fmt.Sprint(i), SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: failureRecord(fmt.Sprintf(`{"id":"c-%d"}`, i))},
		})
	}
	if _, err := s.sqs.SendMessageBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	s.settled()
	s.await("done", events)
	invokes, _ := s.seen()
	times := make(map[string]int)
	for _, i := range invokes {
		times[string(asyncEnvelope(t, i.Payload).Payload)]++
	}
	twice := 0
	for _, n := range times {
		if n > 1 {
			twice++
		}
	}
	if len(times) != events || len(invokes) > events+2 || twice == 0 {
		t.Errorf("the events were invoked %v: want all of them, and twice only what was invoked before the crash", times)
	}
	if started := len(pidsIn(t, pids)); started < 2 {
		t.Errorf("%d retry handler was started, want the one that was killed and the next", started)
	}
	if dead := s.messages("dead"); len(dead) > 0 {
		t.Errorf("%d dead letters", len(dead))
	}
}

// TestAsyncLambdaDuplicates: messages that SQS delivers twice cost an invoke each and
// no more, and nothing is lost by them.
func TestAsyncLambdaDuplicates(t *testing.T) {
	t.Parallel()
	const events, duplicates = 6, 4
	s := newAsyncSystem(t, asyncConfig{handler: map[string]string{"BASE_BACKOFF": "200ms"}})
	if err := s.sqs.SetFaults("retries", sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Every: 2, Limit: duplicates}); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		s.invoke(fmt.Sprintf(`{"id":"d-%d","fail_until":2}`, i))
	}
	done := make(map[string]bool)
	for end := time.Now().Add(patience); len(done) < events; time.Sleep(20 * time.Millisecond) {
		for _, m := range s.messages("done") {
			if _, after, found := strings.Cut(m.Body, `"id":"d-`); found {
				done[after[:1]] = true
			}
		}
		if time.Now().After(end) {
			t.Fatalf("only the events %v have succeeded", done)
		}
	}
	s.settled()
	invokes, _ := s.seen()
	if n := len(invokes); n < 2*events || n > 2*events+duplicates {
		t.Errorf("the function was invoked %d times, want %d, and once more for each of up to %d duplicates", n, 2*events, duplicates)
	}
	if dead := s.messages("dead"); len(dead) > 0 {
		t.Errorf("%d dead letters", len(dead))
	}
}

// foreignFunction is a function in Python that knows nothing of retries: it fails twice for each
// id, and takes its time. It contains its own Runtime API client.
const foreignFunction = `
import json, os, time, urllib.request

api = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
tried = {}

def handler(event):
    time.sleep(0.3)
    id = event["id"]
    tried[id] = tried.get(id, 0) + 1
    if tried[id] <= 2:
        raise ValueError("not yet " + id)
    return {"id": id, "tried": tried[id], "keys": sorted(event)}

while True:
    with urllib.request.urlopen(api + "next") as request:
        id, event = request.headers["Lambda-Runtime-Aws-Request-Id"], json.load(request)
    try:
        path, answer = "/response", handler(event)
    except Exception as e:
        path, answer = "/error", {"errorType": type(e).__name__, "errorMessage": str(e)}
    urllib.request.urlopen(urllib.request.Request(api + id + path, json.dumps(answer).encode(), method="POST"))
`

// TestAsyncLambdaDirect: in direct mode a function in another language is retried as it
// is, with its payload as it was sent, and Lambda's own throttling of it costs no
// attempt.
func TestAsyncLambdaDirect(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("skipped: python3 not found: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bootstrap.py"), []byte(foreignFunction), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newAsyncSystem(t, asyncConfig{
		handler:  map[string]string{"MODE": "direct", "TARGET_TIMEOUT": "5", "BASE_BACKOFF": "200ms", "MAX_RETRIES": "2"},
		function: emulator.Function{Command: []string{python, "bootstrap.py"}, Dir: dir, Timeout: 5 * time.Second, Concurrency: 1},
	})
	const events = 2
	for i := range events {
		s.invoke(fmt.Sprintf(`{"id":"f-%d","_other":[1.0]}`, i))
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, records := s.seen(); len(records) == events && len(s.messages("retries")) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the events never came to an end")
		}
	}
	for _, m := range s.messages("dead") {
		t.Errorf("the dead letter %+v", asyncLetterOf(m))
	}
	invokes, _ := s.seen()
	kinds := make(map[string]int)
	for _, i := range invokes {
		kinds[i.Kind]++
		if !strings.HasSuffix(i.Payload, `","_other":[1.0]}`) {
			t.Errorf("the function was invoked with %s", i.Payload)
		}
	}
	if kinds["Event"] != events || kinds["RequestResponse"] < 2*events {
		t.Errorf("the function was invoked %v, want %d times Event and at least %d times RequestResponse, of which Lambda may have refused some", kinds, events, 2*events)
	}
}
