package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestManyDeadLetters puts many dead letters into queues of a server in memory, and of one with a
// journal, and prints how long it takes to group and to redrive them. REPRISE_DEAD_LETTERS is
// their number. Default: 2,000, to see that it works.
func TestManyDeadLetters(t *testing.T) {
	letters := 2_000
	if text := os.Getenv("REPRISE_DEAD_LETTERS"); text != "" {
		var err error
		if letters, err = strconv.Atoi(text); err != nil || letters < 100 {
			t.Fatalf("REPRISE_DEAD_LETTERS is %q: set it to a number from 100", text)
		}
	} else {
		t.Parallel()
	}
	for _, kept := range [][]string{{"--memory"}, {"--data", t.TempDir(), "--min-free", "0"}} {
		t.Run(strings.Trim(kept[0], "-"), func(t *testing.T) {
			server := start(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--queue", "orders,dead-letter=dead"}, kept...)...)
			endpoint := server.await("SQS endpoint")
			began := time.Now()
			sendDeadLetters(t, endpoint, letters)
			t.Logf("%d dead letters sent in %v", letters, time.Since(began).Round(time.Millisecond))

			pid := server.cmd.Process.Pid
			before, cpu := residentMemory(t, pid), cpuTime(t, pid)
			out, took, memory := measured(t, "dead", "dead", "--endpoint", endpoint, "-o", "json")
			t.Logf("grouped in %v, of which the server's processors worked %v; the command has %d MiB, the server %d after %d MiB",
				took, cpuTime(t, pid)-cpu, memory>>20, residentMemory(t, pid)>>20, before>>20)
			count := 0
			for _, g := range records(t, out) {
				count += int(g["count"].(float64))
			}
			if count != letters {
				t.Errorf("the groups have %d letters, want %d:\n%s", count, letters, out)
			}

			out, took, memory = measured(t, "redrive", "dead", "--endpoint", endpoint)
			t.Logf("redriven in %v, %.0f a second; the command has %d MiB", took, float64(letters)/took.Seconds(), memory>>20)
			if !strings.HasPrefix(out, fmt.Sprint(letters, " sent back to ")) || inQueue(t, endpoint, "orders") != letters {
				t.Errorf("redrive: %s; %d messages in the queue", out, inQueue(t, endpoint, "orders"))
			}
		})
	}
}

// measured runs the program, and returns its output, time and largest memory.
func measured(t *testing.T, args ...string) (stdout string, took time.Duration, memory int64) {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Env = environment()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, problems.String())
	}
	return out.String(), time.Since(began).Round(time.Millisecond), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// sendDeadLetters sends letters with bodies of 1 KiB, and stories whose errors have numbers of their
// own.
func sendDeadLetters(t *testing.T, endpoint string, letters int) {
	t.Helper()
	body := strings.Repeat("x", 1<<10)
	batches := make(chan int)
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			c := client(endpoint)
			for first := range batches {
				in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, "dead")}
				for i := first; i < min(first+10, letters); i++ {
					story := fmt.Sprintf(`{"reason":"attempts","attempts":20,"error":"order %d: the target answered %d: try later","source":"arn:aws:sqs:us-east-1:000000000000:orders","last":"2026-11-24T11:00:00Z"}`, i, 500+i%4)
					in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body,
						MessageAttributes: map[string]types.MessageAttributeValue{"reprise-story": {DataType: aws.String("String"), StringValue: &story}}})
				}
				if out, err := c.SendMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
					t.Error(out, err)
				}
			}
		})
	}
	for first := 0; first < letters; first += 10 {
		batches <- first
	}
	close(batches)
	senders.Wait()
}
