//go:build unix

package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// keep starts a server on a data directory, and returns it with its endpoint.
func keep(t *testing.T, dir string, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--min-free", "0", "--data", dir}, args...)...)
	endpoint = p.await("SQS endpoint")
	p.await("storage       " + dir)
	return p, endpoint
}

// stop ends a program as an operator does.
func (p *process) stop() {
	p.t.Helper()
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		p.t.Errorf("exit code %d after SIGINT:\n%s", code, output)
	}
}

// kill ends a program as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // of course it fails
}

// sendAll sends bodies to a queue by the program.
func sendAll(t *testing.T, endpoint, queue string, bodies ...string) {
	t.Helper()
	if got := reprise(t, "", append([]string{"send", "--endpoint", endpoint, queue}, bodies...)...); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
}

// TestData: messages survive a stop and a kill. Queues keep their attributes, and get those of
// the command line.
func TestData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	queue := []string{"--queue", "q,VisibilityTimeout=1,dead-letter=d"}
	p, endpoint := keep(t, dir, queue...)
	sendAll(t, endpoint, "q", "one", "two")
	if text := get(t, endpoint+"/health"); text != `{"status":"ok","storage":"disk"}`+"\n" {
		t.Errorf("GET /health = %s", text)
	}
	p.stop()

	p, endpoint = keep(t, dir, "--queue", "q,MaximumMessageSize=2048")
	sendAll(t, endpoint, "q", "three")
	p.kill()

	p, endpoint = keep(t, dir, "--sync", "interval", "--sync-interval", "20ms")
	p.await("messages      3, in 2 queues")
	if got := receiveUntil(t, endpoint, "q", 3); !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Errorf("received %q", got)
	}
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(endpoint, "q"), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := out.Attributes; a["VisibilityTimeout"] != "1" || a["MaximumMessageSize"] != "2048" || !strings.Contains(a["RedrivePolicy"], ":d") {
		t.Errorf("attributes %v", a)
	}
}

// TestSyncDelay: with --sync-delay a send is acknowledged no earlier.
func TestSyncDelay(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	_, endpoint := keep(t, filepath.Join(t.TempDir(), "data"), "--queue", "q", "--sync-delay", delay.String())
	began := time.Now()
	sendAll(t, endpoint, "q", "late")
	if took := time.Since(began); took < delay {
		t.Errorf("a send was acknowledged after %v, and syncs take %v", took, delay)
	}
}

// receiveUntil receives and deletes n messages, and returns their bodies sorted.
func receiveUntil(t *testing.T, endpoint, queue string, n int) []string {
	t.Helper()
	var bodies []string
	c := client(endpoint)
	for len(bodies) < n {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: queueURL(endpoint, queue), MaxNumberOfMessages: 10, WaitTimeSeconds: 5, VisibilityTimeout: 600,
		})
		if err != nil {
			t.Fatalf("receiving, after %d of %d: %v", len(bodies), n, err)
		}
		if len(out.Messages) == 0 {
			t.Fatalf("%d messages came, want %d", len(bodies), n)
		}
		in := &sqs.DeleteMessageBatchInput{QueueUrl: queueURL(endpoint, queue)}
		for i, m := range out.Messages {
			bodies = append(bodies, *m.Body)
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if out, err := c.DeleteMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
			t.Fatalf("deleting: %v, %v", out, err)
		}
	}
	slices.Sort(bodies)
	return bodies
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDefaultData: without a flag messages are kept under the user's data directory, which other
// users cannot read.
func TestDefaultData(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, test := range []struct{ env, want string }{
		{"XDG_DATA_HOME=" + home + "/xdg", home + "/xdg/reprise/journal"},
		{"XDG_DATA_HOME=relative", home + "/.local/share/reprise/journal"},
	} {
		p := startIn(t, environment("HOME="+home, test.env), "up", "--exec", "true", "--addr", "127.0.0.1:0")
		p.await("storage       " + test.want + ", synced")
		p.stop()
		if info, err := os.Stat(test.want); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want mode 0700", test.want, info, err)
		}
	}
	p := startIn(t, []string{"PATH=" + os.Getenv("PATH")}, "serve")
	if code, output := p.wait(); code != 1 || !strings.Contains(output, "--memory") {
		t.Errorf("without a home: exit code %d, %s", code, output)
	}
}

// TestDataRefused: a directory that cannot be used is named, with a remedy, and the exit code is
// 4.
func TestDataRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    []string
	}{
		{"in use", func(t *testing.T, dir string) { keep(t, dir) }, []string{"in use by another process", "another directory with --data"}},
		{"of another format", func(t *testing.T, dir string) { write(t, dir, "JOURNAL", "reprise journal, format 99\n") },
			[]string{"format 99", "the version of reprise that wrote it"}},
		{"of something else", func(t *testing.T, dir string) { write(t, dir, "holiday.jpg", "beach") },
			[]string{"holiday.jpg", "choose an empty directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			test.prepare(t, dir)
			for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0", "--data", dir}, {"check", dir}} {
				if got := reprise(t, "", args...); got.code != 4 || !strings.HasPrefix(got.stderr, "reprise: ") || !strings.Contains(got.stderr, dir) {
					t.Errorf("%v: %+v", args, got)
				} else if args[0] == "serve" && !containsAll(got.stderr, test.want...) {
					t.Errorf("%v says %s; want %q", args, got.stderr, test.want)
				}
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// TestLongPath: with a path that is too long for a socket only backups do not work.
func TestLongPath(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	dir := filepath.Join(temp, strings.Repeat("long", 30))
	p, endpoint := keep(t, dir, "--queue", "q")
	sendAll(t, endpoint, "q", "hello")
	if got := reprise(t, "", "backup", "--data", dir, filepath.Join(temp, "backup")); got.code == 0 || !strings.Contains(got.stderr, dir) {
		t.Errorf("backup: %+v", got)
	}
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "a shorter --data may help") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// started waits until the server has read its directory, or says why it cannot.
func (p *process) started() (endpoint string, ok bool) {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line := <-p.lines:
			if _, endpoint, ok := strings.Cut(line, "SQS endpoint"); ok {
				return strings.TrimSpace(endpoint), true
			}
			if strings.HasPrefix(line, "reprise: ") {
				return "", false
			}
		case <-timeout:
			p.t.Fatalf("the server neither started nor failed:\n%s", p.output())
		}
	}
}
