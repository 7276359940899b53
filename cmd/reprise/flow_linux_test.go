package main_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The load of the flow: so many messages of 1 KiB a second go through a queue in
// which so many wait, so that each is on disk for a minute.
const (
	flowRate    = 500
	flowBacklog = 60 * flowRate
	flowBody    = 1 << 10

	// Disk and memory must stay below these: the backlog is 30 MiB; Pebble's tables in
	// memory and their logs are 32 MiB each, and disk is given back in steps of that size.
	flowMaxDisk   = 512 << 20
	flowMaxMemory = 512 << 20
)

// TestFlow has messages flow for REPRISE_FLOW_MINUTES, and prints disk, memory and
// latency, which must stay where they are.
func TestFlow(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("REPRISE_FLOW_MINUTES"), 64)
	if err != nil || minutes <= 0 {
		t.Skip("skipped: it takes long: make flow, or set REPRISE_FLOW_MINUTES")
	}
	dir := filepath.Join(t.TempDir(), "data")
	p, endpoint := keep(t, dir, "--queue", "q")
	s := &flow{t: t, client: client(endpoint), url: queueURL(endpoint, "q"), random: rand.NewChaCha8([32]byte{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes*float64(time.Minute)))
	defer cancel()
	var workers sync.WaitGroup
	workers.Go(func() { s.pace(ctx) })
	for range 4 {
		workers.Go(func() { s.consume(ctx) })
	}
	t.Logf("%d messages of %d bytes a second, %d of them waiting, for %v minutes", flowRate, flowBody, flowBacklog, minutes)
	t.Logf("%8s %9s %9s %9s %9s %9s %9s %9s", "time", "sent/s", "deleted/s", "disk", "memory", "p50 ms", "p99 ms", "max ms")
	begin := time.Now()
	var disks, memories []int64
	for n := int64(1); ctx.Err() == nil; n++ {
		every := max(10*time.Second, time.Duration(minutes*float64(time.Minute)/30))
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(begin.Add(time.Duration(n * int64(every))))):
			disk, memory := diskUsage(t, dir), residentMemory(t, p.cmd.Process.Pid)
			disks, memories = append(disks, disk), append(memories, memory)
			s.report(time.Since(begin), every, disk, memory)
		}
	}
	workers.Wait()
	p.stop()
	if len(disks) == 0 {
		return
	}
	t.Logf("largest: disk %d MiB, memory %d MiB", slices.Max(disks)>>20, slices.Max(memories)>>20)
	if slices.Max(disks) > flowMaxDisk || slices.Max(memories) > flowMaxMemory {
		t.Errorf("disk or memory grew beyond %d and %d MiB", flowMaxDisk>>20, flowMaxMemory>>20)
	}
}

type flow struct {
	t      *testing.T
	client *sqs.Client
	url    *string
	random *rand.ChaCha8 // of pace

	sent, deleted atomic.Int64
	reported      struct{ sent, deleted int64 }

	mu      sync.Mutex
	latency []time.Duration // of the sends since the last report
}

// pace sends batches of ten at their time, however long they take.
func (s *flow) pace(ctx context.Context) {
	var sends sync.WaitGroup
	defer sends.Wait()
	tick := time.NewTicker(10 * time.Second / flowRate)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			in := s.batch()
			sends.Go(func() { s.send(ctx, in) })
		}
	}
}

func (s *flow) batch() *sqs.SendMessageBatchInput {
	in := &sqs.SendMessageBatchInput{QueueUrl: s.url}
	for i := range 10 {
		body := randomText(s.random, flowBody)
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body})
	}
	return in
}

func (s *flow) send(ctx context.Context, in *sqs.SendMessageBatchInput) {
	begin := time.Now()
	_, err := s.client.SendMessageBatch(ctx, in)
	took := time.Since(begin)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	s.sent.Add(10)
	s.mu.Lock()
	s.latency = append(s.latency, took)
	s.mu.Unlock()
}

// consume receives and deletes what is beyond the backlog.
func (s *flow) consume(ctx context.Context) {
	for ctx.Err() == nil {
		if s.sent.Load()-s.deleted.Load() < flowBacklog {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: s.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5})
		if err == nil && len(out.Messages) > 0 {
			in := &sqs.DeleteMessageBatchInput{QueueUrl: s.url}
			for i, m := range out.Messages {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
			_, err = s.client.DeleteMessageBatch(ctx, in)
			s.deleted.Add(int64(len(out.Messages)))
		}
		if err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
	}
}

func (s *flow) report(at, every time.Duration, disk, memory int64) {
	s.mu.Lock()
	latency := s.latency
	s.latency = nil
	s.mu.Unlock()
	slices.Sort(latency)
	quantile := func(q float64) float64 {
		if len(latency) == 0 {
			return 0
		}
		return float64(latency[int(q*float64(len(latency)-1))].Microseconds()) / 1000
	}
	sent, deleted := s.sent.Load(), s.deleted.Load()
	s.t.Logf("%8v %9.0f %9.0f %5d MiB %5d MiB %9.2f %9.2f %9.2f", at.Round(time.Second),
		float64(sent-s.reported.sent)/every.Seconds(), float64(deleted-s.reported.deleted)/every.Seconds(),
		disk>>20, memory>>20, quantile(0.5), quantile(0.99), quantile(1))
	s.reported.sent, s.reported.deleted = sent, deleted
}

// diskUsage is the size of the files in a directory.
func diskUsage(t *testing.T, dir string) (total int64) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var info fs.FileInfo
		if info, err = name.Info(); err == nil { // else it was removed meanwhile
			total += info.Size()
		}
	}
	return total
}

// residentMemory is the memory that a process has, in bytes.
func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	memory, err := memoryOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return memory
}

// memoryOf is residentMemory of a process that may have ended.
func memoryOf(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in %s", status)
}
