package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sendNumbered sends n messages whose bodies are numbers.
func sendNumbered(t *testing.T, endpoint, queue string, n int) {
	t.Helper()
	c := client(endpoint)
	for first := 0; first < n; first += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, queue)}
		for i := first; i < min(first+10, n); i++ {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(fmt.Sprint(i))})
		}
		if out, err := c.SendMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
			t.Fatal(out, err)
		}
	}
}

// awaitFullDisk waits until the health of a server says that its disk is nearly full, or does not.
func awaitFullDisk(t *testing.T, endpoint string, full bool) {
	t.Helper()
	for begin := time.Now(); strings.Contains(get(t, endpoint+"/health"), "nearly full") != full; time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > 2*patience {
			t.Fatalf("GET /health = %s, want that the disk is nearly full: %v", get(t, endpoint+"/health"), full)
		}
	}
}

// steadySpace returns the free space of a disk, in bytes, when it has not changed for a second: the journal
// writes and removes tables by itself for a while.
func steadySpace(t *testing.T, disk string) (free int64) {
	t.Helper()
	for begin, same := time.Now(), 0; same < 10; time.Sleep(100 * time.Millisecond) {
		var s syscall.Statfs_t
		if err := syscall.Statfs(disk, &s); err != nil {
			t.Fatal(err)
		}
		now := int64(s.Bavail) * s.Bsize
		if same++; now != free {
			free, same = now, 0
		}
		if time.Since(begin) > 2*patience {
			t.Fatal("the free space of the disk goes on changing")
		}
	}
	return free
}

// TestRedriveOnAFullDisk: when the disk fills while the server moves letters, the server ends with the
// remedy, and the command says that it was not done with all. Each letter is in exactly one queue, and
// with room again the command moves the rest. The letters are written anew, without their stories.
func TestRedriveOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 512)
	dir := filepath.Join(disk, "data")
	p, endpoint := keep(t, dir, "--min-free", "0", "--queue", "orders,dead-letter=dead")
	const all, size = 6000, 16 << 10
	random, story := rand.NewChaCha8([32]byte{}), `{"reason":"attempts","source":"arn:aws:sqs:us-east-1:000000000000:orders","last":"2026-11-24T11:00:00Z"}`
	c, sent := client(endpoint), make(map[string]bool, all)
	for range all {
		body := randomText(random, size)
		sent[body[:markLength]] = true
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "dead"), MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			"reprise-story": {DataType: aws.String("String"), StringValue: &story},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}

	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, steadySpace(t, disk)-1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	redriven := reprise(t, "", "redrive", "dead", "--endpoint", endpoint)
	code, output := p.wait()
	if code != 4 || !containsAll(output, dir, "no space left", "free space on the disk", "nothing that was acknowledged is lost") {
		t.Errorf("the server ends with exit code %d, want 4 and the remedy:\n%s", code, output)
	}
	if redriven.code != 3 || !containsAll(redriven.stderr, "no message is lost, or in two queues", "run it again") {
		t.Errorf("the command ends with exit code %d: %s", redriven.code, redriven.stderr)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	resize(t, disk, 1024)
	_, endpoint = keep(t, dir)
	dead, back := inQueue(t, endpoint, "dead"), inQueue(t, endpoint, "orders")
	if dead+back != all || dead == 0 {
		t.Errorf("%d letters are in the dead-letter queue and %d are back, want %d in all, and some in the queue: otherwise the test shows nothing", dead, back, all)
	}
	t.Logf("%d were moved before the disk was full", back)
	if again := reprise(t, "", "redrive", "dead", "--endpoint", endpoint); again.code != 0 {
		t.Errorf("with room again: exit code %d: %s", again.code, again.stderr)
	}
	if dead, back := inQueue(t, endpoint, "dead"), inQueue(t, endpoint, "orders"); dead != 0 || back != all {
		t.Errorf("%d letters are in the dead-letter queue and %d are back, want 0 and %d", dead, back, all)
	}
	for _, body := range receiveUntil(t, endpoint, "orders", all) {
		if !sent[body[:markLength]] {
			t.Errorf("%s is there twice, or was never sent", body[:markLength])
		}
		delete(sent, body[:markLength])
	}
	if len(sent) > 0 {
		t.Errorf("%d letters are lost", len(sent))
	}
}

// TestMoveOnALowDisk: while the disk has less room than is to be left free, nothing is moved, and the command says
// why; with room again it moves all.
func TestMoveOnALowDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 128)
	dir := filepath.Join(disk, "data")
	_, endpoint := keep(t, dir, "--min-free", "64", "--queue", "from", "--queue", "to")
	const all = 500
	sendNumbered(t, endpoint, "from", all)
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 80<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitFullDisk(t, endpoint, true)
	moved := reprise(t, "", "move", "from", "to", "--endpoint", endpoint, "--yes")
	if moved.code != 1 || !strings.Contains(moved.stderr, "almost full") {
		t.Errorf("exit code %d, want 1 and that the disk is almost full: %s", moved.code, moved.stderr)
	}
	if from, to := inQueue(t, endpoint, "from"), inQueue(t, endpoint, "to"); from != all || to != 0 {
		t.Errorf("%d messages are in the queue and %d in the other, want %d and 0", from, to, all)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	awaitFullDisk(t, endpoint, false)
	if again := reprise(t, "", "move", "from", "to", "--endpoint", endpoint, "--yes"); again.code != 0 {
		t.Errorf("with room again: exit code %d: %s", again.code, again.stderr)
	}
	if from, to := inQueue(t, endpoint, "from"), inQueue(t, endpoint, "to"); from != 0 || to != all {
		t.Errorf("%d messages are in the queue and %d in the other, want 0 and %d", from, to, all)
	}
}
