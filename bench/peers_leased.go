package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
)

// leasedMany makes one process hold many messages, nine in ten of them in waiting handlers, and prints
// the cost: memory, goroutines, heartbeats.
func leasedMany(w io.Writer, s scale) error {
	n, lease := s.peers.leased, s.peers.lease
	q := canned.New()
	watch := &leaseWatch{Client: q.SDK(tuned)}
	finish := make(chan struct{})
	handler := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		<-finish
		handle(m.Body)
		return nil
	})
	consumer, err := reprise.New(watch, canned.URL, handler, reprise.Config{
		Concurrency: n - n/10, Prefetch: n / 10, Lease: lease, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	before := footprint()
	began, worked := time.Now(), make(chan struct{})
	go func() {
		defer close(worked)
		q.Work(n)
	}()

	fmt.Fprintf(w, "%d messages leased in one process for %v, %d in handlers, each lease %v at first\n\n", n, s.peers.watch, n-n/10, lease)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "seconds\theld\trenewals\tcalls\tcalls per ten renewals\trenewed for, mean\t")
	var total renewals
	const windows = 6
	for i := 1; i <= windows; i++ {
		time.Sleep(time.Until(began.Add(s.peers.watch * time.Duration(i) / windows)))
		r := watch.take()
		total.calls, total.entries = total.calls+r.calls, total.entries+r.entries
		status := consumer.Status()
		fmt.Fprintf(t, "to %.1f\t%d\t%s\t\n", time.Since(began).Seconds(), status.Running+status.Waiting, r)
	}
	fmt.Fprintf(t, "all\t\t%s\t\n", renewals{calls: total.calls, entries: total.entries})
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "before: %s\nleased: %s\naim: at most 1.2 calls per ten renewals\n\n", before, footprint())
	close(finish)
	<-worked
	q.Close()
	cancel()
	return <-ended
}

// leaseWatch is a client that counts renewals.
type leaseWatch struct {
	reprise.Client
	mu  sync.Mutex
	now renewals
}

// renewals counts renewed leases and the calls that renewed them.
type renewals struct {
	calls, entries int
	seconds        int // the sum of the seconds for which leases were renewed
}

func (r renewals) String() string {
	if r.entries == 0 {
		return "0\t0\t\t"
	}
	mean := ""
	if r.seconds > 0 {
		mean = fmt.Sprintf("%.1f s", float64(r.seconds)/float64(r.entries))
	}
	return fmt.Sprintf("%d\t%d\t%.3f\t%s", r.entries, r.calls, 10*float64(r.calls)/float64(r.entries), mean)
}

// ChangeMessageVisibilityBatch counts renewals: no handler fails here, so each change is a renewal.
func (l *leaseWatch) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	l.mu.Lock()
	l.now.calls++
	l.now.entries += len(in.Entries)
	for _, e := range in.Entries {
		l.now.seconds += int(e.VisibilityTimeout)
	}
	l.mu.Unlock()
	return l.Client.ChangeMessageVisibilityBatch(ctx, in, opts...)
}

// take returns the renewals since it was last called.
func (l *leaseWatch) take() renewals {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.now
	l.now = renewals{}
	return r
}

// footprint returns the memory and the goroutines of this process.
func footprint() string {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident := "RSS unknown on this system"
	if rss, ok := residentBytes(); ok {
		resident = fmt.Sprintf("RSS %d MB", rss>>20)
	}
	return fmt.Sprintf("%d goroutines, %s, heap %d MB, stacks %d MB", runtime.NumGoroutine(), resident, m.HeapAlloc>>20, m.StackInuse>>20)
}

// residentBytes returns the process's resident memory, on systems with /proc.
func residentBytes() (int, bool) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize(), err == nil
}
