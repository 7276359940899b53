package daemon_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestCheckOfAnOlderFormat: a check reads the directory of the format before as the server would, which
// converts it, and changes nothing.
func TestCheckOfAnOlderFormat(t *testing.T) {
	dir := t.TempDir()
	archive, err := zip.OpenReader("../journal/testdata/formats/records-1.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	contents := func() map[string]string {
		all := make(map[string]string)
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if name.Name() != "LOCK" {
				all[name.Name()] = string(text)
			}
		}
		return all
	}
	before := contents()
	for range 2 {
		report, err := daemon.Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Queues) != 3 { // their messages may have expired since
			t.Errorf("queues %+v", report.Queues)
		}
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("the directory has changed (-before +after):\n%s", diff)
	}
}

// TestCheckReadsAll: a check counts all messages of all queues, however many a queue has, with the bytes of their
// bodies.
func TestCheckReadsAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cfg := config()
	cfg.Journal = journal.Options{Dir: dir, MinFree: -1, SyncInterval: time.Minute}
	cfg.Queues = []daemon.Queue{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []daemon.CheckedQueue{{ARN: d.QueueARN("a"), Messages: 2000, Bytes: 6000}, {ARN: d.QueueARN("b")}, {ARN: d.QueueARN("c"), Messages: 2001, Bytes: 6003}}
	for _, q := range want {
		for range q.Messages {
			in := &sqsserver.SendMessageInput{QueueUrl: q.ARN[strings.LastIndex(q.ARN, ":")+1:]}
			in.MessageBody = "abc"
			if _, err := d.SQS().SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := daemon.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, report.Queues); diff != "" || report.Messages() != 4001 {
		t.Errorf("%d messages in all; of the queues (-want +got):\n%s", report.Messages(), diff)
	}
}
