package main_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// smallDisk mounts a disk of so many MiB.
func smallDisk(t *testing.T, size int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := mountSmall(t, dir, size); err != nil {
		t.Skipf("skipped: %v", err)
	}
	return dir
}

// mountSmall mounts a disk of so many MiB on dir, until the test ends.
func mountSmall(t *testing.T, dir string, size int) error {
	t.Helper()
	if err := syscall.Mount("reprise", dir, "tmpfs", 0, diskSize(size)); err != nil {
		return fmt.Errorf("a small disk cannot be mounted: %w: run as root", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // what uses it is being killed
	return nil
}

func diskSize(mib int) string { return fmt.Sprintf("size=%dm", mib) }

func resize(t *testing.T, dir string, size int) {
	t.Helper()
	if err := syscall.Mount("reprise", dir, "tmpfs", syscall.MS_REMOUNT, diskSize(size)); err != nil {
		t.Fatal(err)
	}
}

// filler sends messages of 64 KiB until one is refused.
type filler struct {
	t        *testing.T
	client   *sqs.Client
	endpoint string
	random   io.Reader
	sent     []string // the distinct beginnings of bodies
}

func newFiller(t *testing.T, endpoint string) *filler {
	c := sqs.New(client(endpoint).Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	return &filler{t: t, client: c, endpoint: endpoint, random: rand.NewChaCha8([32]byte{})}
}

const markLength = 32

// fill sends until a send fails, and returns that error.
func (f *filler) fill(most int) error {
	for range most {
		body := randomText(f.random, 64<<10)
		if _, err := f.client.SendMessage(f.t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(f.endpoint, "q"), MessageBody: &body}); err != nil {
			return err
		}
		f.sent = append(f.sent, body[:markLength])
	}
	return nil
}

// checkAll receives and deletes everything, and compares it with what was
// acknowledged. One more may be there: the send that failed.
func (f *filler) checkAll(endpoint string) {
	f.t.Helper()
	w := &world{t: f.t, client: client(endpoint), endpoint: endpoint}
	waiting := w.waiting("q")
	var got []string
	for _, body := range receiveUntil(f.t, endpoint, "q", waiting) {
		got = append(got, body[:markLength])
	}
	for _, mark := range f.sent {
		if _, there := slices.BinarySearch(got, mark); !there {
			f.t.Errorf("message %s was acknowledged and is lost", mark)
		}
	}
	if len(got) > len(f.sent)+1 || len(slices.Compact(got)) != len(got) {
		f.t.Errorf("%d messages came, %d of them different; %d were acknowledged", len(got), len(slices.Compact(got)), len(f.sent))
	}
}

// TestLowDisk: below --min-free sends are refused, receives and deletes go on, and
// what they free is used again.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	const size, minFree = 320, 128
	dir := filepath.Join(smallDisk(t, size), "data")
	_, endpoint := keep(t, dir, "--min-free", strconv.Itoa(minFree), "--queue", "q")
	f := newFiller(t, endpoint)
	for round := range 3 {
		err := f.fill(size << 4) // more than there is room for
		if refused, ok := errors.AsType[smithy.APIError](err); !ok || !strings.Contains(refused.ErrorMessage(), "almost full") {
			t.Fatalf("round %d, after %d messages: %v; want a refusal that says that the disk is almost full", round, len(f.sent), err)
		}
		if len(f.sent) < 10 {
			t.Fatalf("round %d: only %d messages were taken", round, len(f.sent))
		}
		if text := get(t, endpoint+"/health"); !strings.Contains(text, "nearly full") {
			t.Errorf("GET /health = %s", text)
		}
		t.Logf("round %d: %d messages of 64 KiB were taken", round, len(f.sent))
		f.checkAll(endpoint)
		f.sent = nil
		f.awaitSpace()
	}
}

// awaitSpace waits until sends succeed again.
func (f *filler) awaitSpace() {
	f.t.Helper()
	begin := time.Now()
	for f.fill(1) != nil {
		if time.Since(begin) > 2*patience {
			f.t.Fatal("the queue is empty, and sends are still refused")
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Logf("sends were taken again after %v", time.Since(begin).Round(100*time.Millisecond))
}

// TestFullDisk: when the disk is full the program ends, with the remedy in its error. With room
// again it has every acknowledged message.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 96)
	dir := filepath.Join(disk, "data")
	p, endpoint := keep(t, dir, "--min-free", "0", "--queue", "q")
	f := newFiller(t, endpoint)
	if err := f.fill(2000); err == nil {
		t.Fatal("2000 messages of 64 KiB fit into 96 MiB")
	}
	code, output := p.wait()
	if code != 4 || !containsAll(output, dir, "no space left", "free space on the disk", "nothing that was acknowledged is lost") {
		t.Errorf("exit code %d, want 4 and the remedy:\n%s", code, output)
	}
	t.Logf("%d messages were acknowledged", len(f.sent))

	resize(t, disk, 512)
	_, endpoint = keep(t, dir)
	f.checkAll(endpoint)
}

// TestReadOnlyDisk: the error names a disk that cannot be written to.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64)
	dir := filepath.Join(disk, "data")
	p, endpoint := keep(t, dir, "--queue", "q")
	sendAll(t, endpoint, "q", "hello")
	p.stop()
	if err := syscall.Mount("reprise", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	got := reprise(t, "", "serve", "--addr", "127.0.0.1:0", "--data", dir)
	if got.code != 4 || !containsAll(got.stderr, dir, "read-only", "choose another with --data") {
		t.Errorf("serve: %+v", got)
	}
}
