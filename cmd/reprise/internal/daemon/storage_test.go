package daemon_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// TestDiskFails: if the disk fails, the send is not acknowledged, the health reports it while
// the server still answers, and the daemon ends by itself with the remedy.
func TestDiskFails(t *testing.T) {
	var failing atomic.Bool
	disk := diskfault.Wrap(vfs.NewMem(), func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	})
	cfg := config()
	cfg.Journal = journal.Options{Dir: "journal", FS: disk, MinFree: -1}
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	begun, asked := make(chan struct{}), make(chan struct{})
	consume := daemon.Consume{
		Config: reprise.Config{Logger: cfg.Logger},
		Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			close(begun)
			<-asked // the daemon waits for it, for a moment
			return nil
		}),
	}
	r := run(t, cfg, consume)
	r.send(t, "begin")
	<-begun
	if code, text := r.health(t); code != http.StatusOK || !strings.Contains(text, `"storage":"disk"`) {
		t.Errorf("GET /health = %d %s", code, text)
	}
	failing.Store(true)
	url, body := r.QueueURL("q"), "hello"
	_, err := awsclient.Local(r.URL(), "us-east-1").SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body},
		func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	if err == nil {
		t.Error("a send was acknowledged on a disk that fails")
	}
	code, health := r.health(t)
	close(asked)
	err = <-r.ended
	if _, ok := errors.AsType[*daemon.StorageError](err); !ok || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("Run = %v, want a StorageError with the remedy", err)
	}
	if code != http.StatusServiceUnavailable || !strings.Contains(health, `"status":"failing"`) || !strings.Contains(health, "check the disk") {
		t.Errorf("GET /health = %d %s, want 503 and why", code, health)
	}
}

// A read error is logged once, and not again when the server closes because of it.
func TestUnreadableIsSaidOnce(t *testing.T) {
	var failing atomic.Bool
	disk := diskfault.Wrap(vfs.NewMem(), func(op errorfs.Op) error {
		if failing.Load() && op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	})
	cfg := config()
	cfg.Journal = journal.Options{Dir: "journal", FS: disk, MinFree: -1}
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	_, err = daemon.New(cfg)
	if _, ok := errors.AsType[*daemon.StorageError](err); !ok || strings.Count(err.Error(), "check the disk") != 1 {
		t.Errorf("New = %v, want a StorageError with the remedy, once", err)
	}
}
