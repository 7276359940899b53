package main_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestBacklog restarts the program with many messages of 1 KiB waiting, after a stop and after a
// kill, and prints how long it takes until it answers, and how much memory it has then.
// REPRISE_BACKLOG is the number of messages. Default: 20,000, to see that it works.
func TestBacklog(t *testing.T) {
	messages := 20_000
	if text := os.Getenv("REPRISE_BACKLOG"); text != "" {
		var err error
		if messages, err = strconv.Atoi(text); err != nil || messages < 1 {
			t.Fatalf("REPRISE_BACKLOG is %q: set it to a number of messages", text)
		}
	} else {
		t.Parallel()
	}
	dir := filepath.Join(t.TempDir(), "data")
	fill(t, dir, messages)
	t.Logf("%d messages of 1 KiB, %d MiB on disk", messages, diskUsage(t, dir)>>20)
	p := reopen(t, "after a stop", dir, messages)
	p.kill()
	p = reopen(t, "after a kill", dir, messages)
	p.stop()
}

// reopen starts the program and measures.
func reopen(t *testing.T, when, dir string, messages int) *process {
	t.Helper()
	begin := time.Now()
	p, endpoint := keep(t, dir)
	get(t, endpoint+"/health")
	ready := time.Since(begin)
	memory, cpu := residentMemory(t, p.cmd.Process.Pid), cpuTime(t, p.cmd.Process.Pid)
	w := &world{t: t, client: client(endpoint), endpoint: endpoint}
	if n := w.waiting("q"); n != messages {
		t.Errorf("%s: %d messages wait, want %d", when, n, messages)
	}
	if got := receive(t, endpoint, "q"); len(got) == 0 || len(got[0]) != 1<<10 {
		t.Errorf("received %.100q", got)
	}
	t.Logf("%s: ready after %v, of which the processors worked %v, with %d MiB, %d bytes a message",
		when, ready.Round(time.Millisecond), cpu, memory>>20, memory/int64(messages))
	return p
}

// cpuTime returns the processor time of a process, which does not depend on other load.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name, in brackets, may have spaces. Behind it are the fields from the third
	// on; the 14th and 15th are ticks, of which there are 100 a second.
	_, fields, _ := strings.Cut(string(stat), ") ")
	ticks := 0
	for _, field := range strings.Fields(fields)[14-3 : 16-3] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s: %v", stat, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// fill makes a data directory in which messages wait: by the server itself, without
// HTTP, since nothing depends on how they came there.
func fill(t *testing.T, dir string, messages int) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: dir, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqsserver.Open(j, sqsserver.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := s.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: "q"})
	if err != nil {
		t.Fatal(err)
	}
	var senders sync.WaitGroup
	const parallel = 32
	for sender := range parallel {
		bodies := rand.NewChaCha8([32]byte{byte(sender)})
		senders.Go(func() {
			for left := messages/parallel + min(1, max(0, messages%parallel-sender)); left > 0; left -= 10 {
				in := &sqsserver.SendMessageBatchInput{QueueUrl: queue.QueueUrl}
				for i := range min(10, left) {
					entry := sqsserver.SendMessageBatchRequestEntry{Id: fmt.Sprint(i)}
					entry.MessageBody = randomText(bodies, 1<<10)
					in.Entries = append(in.Entries, entry)
				}
				if _, err := s.SendMessageBatch(context.Background(), in); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// randomText returns text that Pebble's default compression, which removes repetitions, does not
// shorten.
func randomText(random io.Reader, n int) string {
	b := make([]byte, n*3/4)
	_, _ = io.ReadFull(random, b) // ChaCha8 never fails
	return base64.RawStdEncoding.EncodeToString(b)
}
