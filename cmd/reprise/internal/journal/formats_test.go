package journal_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// testdata/formats has a directory of each format that there ever was, of a server that was killed:
// records-N.zip, N being the format of the records. A change of a format adds one, which write.py in
// the same folder makes, and none is ever made anew: they are what is on the disks of users.

// keptFormats are the formats of the records that are kept. This program reads the last two.
var keptFormats = []int{1, 2}

// ofFormats is what the server of each has, see write.py.
const ofFormats = `jobs.fifo ContentBasedDeduplication=true FifoQueue=true MessageRetentionPeriod=1209600 VisibilityTimeout=30 tags map[]
  "first" visible receives=0 group=g deduplication=a7937b64
  "second" visible receives=0 group=g deduplication=2
  "third" visible receives=0 group=h deduplication=b1e99324
orders MessageRetentionPeriod=1209600 RedrivePolicy={"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":2} VisibilityTimeout=60 tags map[team:a]
  "in flight" in flight receives=1
  "{\"json\": \"with \\\"quotes\\\",\\n\\u00fc and more\"}" visible receives=0 bytes=Binary:00ff number=Number.int:42 text=String:ü
  "delayed" delayed receives=0
  "large xxxxxxxxxxxxxx... of 4006" visible receives=0
  "after the restart, \"quoted\"" visible receives=0
orders-dead MessageRetentionPeriod=1209600 VisibilityTimeout=30 tags map[]
  "a dead letter" visible receives=2 from=arn:aws:sqs:us-east-1:000000000000:orders
`

// unpack makes the data directory of a format on a disk in memory.
func unpack(t *testing.T, format int) *vfs.MemFS {
	t.Helper()
	archive, err := zip.OpenReader(fmt.Sprintf("testdata/formats/records-%d.zip", format))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	disk := vfs.NewCrashableMem()
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, packed := range archive.File {
		from, err := packed.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := disk.Create(disk.PathJoin(dir, packed.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := to.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for d := dir; ; d = disk.PathDir(d) {
		opened, err := disk.OpenDir(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Sync(); err != nil {
			t.Fatal(err)
		}
		if d == disk.PathDir(d) {
			return disk
		}
	}
}

// served is a server on a data directory.
type served struct {
	*sqsserver.Server
	log *bytes.Buffer
}

func serve(t *testing.T, fs vfs.FS) (served, error) {
	t.Helper()
	log := new(bytes.Buffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	j, err := journal.Open(journal.Options{Dir: dir, FS: fs, Logger: logger})
	if err != nil {
		return served{}, err
	}
	server, err := sqsserver.Open(j, sqsserver.Config{Logger: logger})
	if err != nil {
		_ = j.Close() // its error would repeat this one
	}
	return served{server, log}, err
}

// dump is what a server has, but for ids and times.
func (s served) dump(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, q := range s.Queues() {
		out, err := s.GetQueueAttributes(context.Background(), &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{
			"VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy", "FifoQueue", "ContentBasedDeduplication",
		}})
		if err != nil {
			t.Fatal(err)
		}
		tags, err := s.ListQueueTags(context.Background(), &sqsserver.ListQueueTagsInput{QueueUrl: q.URL})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s", q.Name)
		for _, name := range slices.Sorted(maps.Keys(out.Attributes)) {
			fmt.Fprintf(&b, " %s=%s", name, out.Attributes[name])
		}
		fmt.Fprintln(&b, " tags", tags.Tags)
		messages, err := s.Messages(q.ARN, sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			m := &messages[i]
			body := m.Body
			if len(body) > 100 {
				body = fmt.Sprintf("%s... of %d", body[:20], len(body))
			}
			fmt.Fprintf(&b, "  %q %v receives=%d", body, m.State, m.Receives)
			if m.Group != "" {
				fmt.Fprintf(&b, " group=%s deduplication=%.8s", m.Group, m.Deduplication)
			}
			if m.Source != "" {
				fmt.Fprintf(&b, " from=%s", m.Source)
			}
			for _, a := range m.Attributes {
				fmt.Fprintf(&b, " %s=%s:%s%x", a.Name, a.DataType, a.StringValue, a.BinaryValue)
			}
			fmt.Fprintln(&b)
		}
	}
	return b.String()
}

// TestFormats: the directory of each format that is read opens with all that it has, and is one of this
// format afterwards. Its messages can be received and deleted, and their bodies go with them.
func TestFormats(t *testing.T) {
	for _, format := range keptFormats[max(0, len(keptFormats)-2):] {
		t.Run(fmt.Sprint("records ", format), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where no retention ends
				disk := unpack(t, format)
				for _, start := range []string{"the first start", "the second"} {
					s, err := serve(t, disk)
					if err != nil {
						t.Fatalf("%s: %v", start, err)
					}
					if diff := cmp.Diff(ofFormats, s.dump(t)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", start, diff)
					}
					converted := strings.Contains(s.log.String(), "converting the journal's records")
					if want := format != keptFormats[len(keptFormats)-1] && start == "the first start"; converted != want {
						t.Errorf("%s converts records: %v, want %v", start, converted, want)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				s, err := serve(t, disk)
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range s.Queues() {
					s.emptyQueue(t, q.URL)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(s.log.String(), "level=ERROR") {
					t.Errorf("emptying the queues: %s", s.log)
				}
				j := open(t, journal.Options{FS: disk})
				if left := contents(t, j, "b"); len(left) != 2 { // in flight, and delayed
					t.Errorf("%d bodies are left, want 2", len(left))
				}
				mustClose(t, j)
			})
		})
	}
}

// emptyQueue receives and deletes the visible messages.
func (s served) emptyQueue(t *testing.T, url string) {
	t.Helper()
	for {
		out, err := s.ReceiveMessage(context.Background(), &sqsserver.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: sqsserver.Int(10)})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return
		}
		for _, m := range out.Messages {
			if err := s.DeleteMessage(context.Background(), &sqsserver.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFormatsAreKept: a directory of the format that is written now is among those that are kept, and
// of the one before. Who changes a format adds a directory of it, and reads the one before.
func TestFormatsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		s, err := serve(t, disk)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		newest := unpack(t, keptFormats[len(keptFormats)-1])
		j, kept := open(t, journal.Options{FS: disk}), open(t, journal.Options{FS: newest})
		if diff := cmp.Diff(contents(t, j, "v"), contents(t, kept, "v"), cmp.AllowUnexported(change{})); diff != "" {
			t.Errorf("the format of the records that are written is not kept: add its directory, and read the one before (-written +kept):\n%s", diff)
		}
		mustClose(t, j)
		mustClose(t, kept)
		if written, of := formatOf(t, disk), formatOf(t, newest); written != of {
			t.Errorf("the format of directories that is written is %q, and %q is kept: add a directory of it, and read the one before", written, of)
		}
	})
}

// formatOf is what a directory says of its format.
func formatOf(t *testing.T, fs vfs.FS) string {
	t.Helper()
	file, err := fs.Open(fs.PathJoin(dir, "JOURNAL"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFormatCrash cuts the power at each change of the disk while a directory of the format before is
// opened: what is left opens with all that there was.
func TestFormatCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := unpack(t, keptFormats[len(keptFormats)-2])
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		var left []*vfs.MemFS
		s, err := serve(t, diskfault.Wrap(disk, func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random}))
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		converting := 0
		for n, disk := range left {
			s, err := serve(t, disk)
			if err != nil {
				t.Errorf("after a crash at change %d: %v", n, err)
				continue
			}
			if diff := cmp.Diff(ofFormats, s.dump(t)); diff != "" {
				t.Errorf("after a crash at change %d (-want +got):\n%s", n, diff)
			}
			if strings.Contains(s.log.String(), "converting the journal's records") {
				converting++
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%d crashes, %d of them before the end of the conversion", len(left), converting)
		if converting < 5 || converting == len(left) {
			t.Errorf("%d of %d crashes were before the end of the conversion", converting, len(left))
		}
	})
}

// crowded is a disk with so much space left.
type crowded struct {
	vfs.FS
	free uint64
}

func (c crowded) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: c.free, TotalBytes: 1 << 40, UsedBytes: 1<<40 - c.free}, nil
}

// TestFormatNeedsRoom: nothing is converted unless the disk has room for what is written besides what
// always has to stay free; the error says how much, and the format is the one before still.
func TestFormatNeedsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := unpack(t, keptFormats[len(keptFormats)-2])
		_, err := serve(t, crowded{disk, 512 << 20})
		if err == nil || !strings.Contains(err.Error(), "513 MiB have to be free") || !strings.Contains(err.Error(), "512 MiB are") ||
			!strings.Contains(err.Error(), "nothing has been changed") {
			t.Errorf("Open with no more than MinFree: %v", err)
		}
		j := open(t, journal.Options{FS: disk})
		checkContents(t, j, "v", change{"v", "\x01"})
		mustClose(t, j)
		s, err := serve(t, crowded{disk, 513 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ofFormats, s.dump(t)); diff != "" {
			t.Errorf("after that (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute) // what is reclaimed on a full disk
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
