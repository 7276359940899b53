//go:build unix

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// recorder is a target that counts the messages of each queue that it accepts, by the path
// of the request. Those of the path /slow wait for release.
type recorder struct {
	*httptest.Server
	release chan struct{}

	mu       sync.Mutex
	accepted map[string]int // by queue, path and body
	begun    map[string]int // by path
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{release: make(chan struct{}), accepted: make(map[string]int), begun: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.begun[req.URL.Path]++
		r.mu.Unlock()
		if req.URL.Path == "/slow" {
			<-r.release
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.accepted[req.Header.Get("X-Aws-Sqsd-Queue")+req.URL.Path+" "+string(body)]++
	}))
	t.Cleanup(r.Close)
	return r
}

// await waits until the counts are as they should be.
func (r *recorder) await(t *testing.T, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		done := good()
		all := fmt.Sprint(r.begun, r.accepted)
		r.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the target never had what it should have: %s", all)
		}
	}
}

// TestHangUpWhileTheFileIsRead: a SIGHUP that comes while the program starts does not end it, and has the
// file read again.
func TestHangUpWhileTheFileIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			pipe, err := os.OpenFile(file, os.O_WRONLY, 0) // returns when the program opens it to read
			if err != nil {
				return // the test has ended
			}
			if first {
				read <- struct{}{}
				<-read
			}
			_, _ = pipe.WriteString("addr: 127.0.0.1:0\nmemory: true\nqueues:\n  - name: q\n    consume: {exec: cat}\n")
			_ = pipe.Close()
			time.Sleep(50 * time.Millisecond) // so that what was written is read as one file
		}
	}()
	p := start(t, "up", "--config", file)
	<-read
	p.signal(syscall.SIGHUP)
	time.Sleep(50 * time.Millisecond) // a program that a signal ends would go on otherwise
	read <- struct{}{}
	p.await("SQS endpoint")
	p.await("configuration reloaded")
}

// TestReload: when the file changes, a queue whose settings changed drains and begins anew,
// one that was taken out stops, a new one begins, and the others go on. A message at work
// is not run again. A file with a mistake changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	target := newRecorder(t)
	const head = "addr: 127.0.0.1:0\nmemory: true\nqueues:\n"
	queue := func(name, path string) string {
		return fmt.Sprintf("  - name: %s\n    consume: {url: %s/%s}\n", name, target.URL, path)
	}
	file := written(t, "reprise.yaml", head+queue("stays", "slow")+queue("changes", "slow")+queue("goes", "old"))
	p := start(t, "up", "--config", file)
	endpoint := p.await("SQS endpoint")
	for _, name := range []string{"stays", "changes"} {
		sendAll(t, endpoint, name, "long")
	}
	target.await(t, func() bool { return target.begun["/slow"] == 2 })

	rewrite(t, file, head+queue("stays", "slow")+queue("changes", "new")+queue("comes", "new"))
	p.signal(syscall.SIGHUP)
	p.await("msg=stopped") // of the queue that goes
	close(target.release)
	p.await("configuration reloaded")
	sendAll(t, endpoint, "changes", "second")
	sendAll(t, endpoint, "comes", "second")
	sendAll(t, endpoint, "goes", "second")
	sendAll(t, endpoint, "stays", "second")
	target.await(t, func() bool { return len(target.accepted) == 5 })
	for _, what := range []string{"stays/slow long", "changes/slow long", "changes/new second", "comes/new second", "stays/slow second"} {
		if target.accepted[what] != 1 {
			t.Errorf("%s was accepted %d times, want once", what, target.accepted[what])
		}
	}
	if n := inQueue(t, endpoint, "goes"); n != 1 {
		t.Errorf("%d messages are in the queue that is no longer consumed, want 1", n)
	}

	rewrite(t, file, head+queue("stays", "slow")+"    colour: red\n") // the change itself is noticed
	if line := p.await("was not reloaded"); !strings.Contains(line, "colour") && !strings.Contains(line, ":6:") {
		t.Errorf("the log says %s", line)
	}
	sendAll(t, endpoint, "comes", "third")
	target.await(t, func() bool { return target.accepted["comes/new third"] == 1 })

	rewrite(t, file, "log-level: debug\n"+head+queue("goes", "new"))
	p.await("configuration reloaded")
	target.await(t, func() bool { return target.accepted["goes/new second"] == 1 })
	timeline := reprise(t, "", "timeline", "--admin", endpoint).stdout
	for _, want := range []string{"The configuration was read again: 3 queues, of which 1 unchanged", "The configuration was not read again, or not as a whole: ", "The configuration was read again: 1 queue, of which 0 unchanged"} {
		if !strings.Contains(timeline, want) {
			t.Errorf("the timeline does not say %q: %s", want, timeline)
		}
	}
	p.signal(syscall.SIGTERM)
	code, output := p.wait()
	for _, want := range []string{"queues=3 unchanged=1", "queues=1 unchanged=0", "takes effect at the next start\" setting=log-level"} {
		if !strings.Contains(output, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestReloadOfQueuesThatDoNotFit: settings that are right for each queue, and not for both together, change nothing
// either: no queue loses its consumer for them.
func TestReloadOfQueuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	target := newRecorder(t)
	file := func(size int, settings string) string {
		text := fmt.Sprintf("addr: 127.0.0.1:0\nmemory: true\npools:\n  workers: {concurrency: %d}\nqueues:\n  - name: lane\n", size)
		for _, name := range []string{"a", "b"} {
			text += fmt.Sprintf("  - name: %s\n    consume: {url: %s/work, pool: workers%s}\n", name, target.URL, settings)
		}
		return text
	}
	config := written(t, "reprise.yaml", file(3, ""))
	p := start(t, "up", "--config", config)
	endpoint := p.await("SQS endpoint")
	rewrite(t, config, file(4, ", retry-lane: lane")) // which is noticed; a signal could come before it is awaited
	if line := p.await("not reloaded"); !strings.Contains(line, "lane is the retry lane of both") {
		t.Errorf("the log says %s", line)
	}
	for _, queue := range []string{"a", "b"} {
		sendAll(t, endpoint, queue, "good")
	}
	target.await(t, func() bool { return len(target.accepted) == 2 })
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// rewrite replaces a file as editors do.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
