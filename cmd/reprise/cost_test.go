//go:build unix

package main_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
)

// posterVariable makes this binary post the messages of a queue with the library: ENDPOINT,URL.
const posterVariable = "REPRISE_TEST_POSTER"

// runPoster is what a user of the library writes in place of reprise run --url.
func runPoster(where string) {
	endpoint, url, _ := strings.Cut(where, ",")
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")},
		library.Tuned(library.Transport{}))
	poster := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}
	handler := library.HandlerFunc(func(ctx context.Context, m *library.Message) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(m.Body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		reply, err := poster.Do(r)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			return err
		}
		if reply.StatusCode != http.StatusOK {
			return fmt.Errorf("the target answered %s", reply.Status)
		}
		return nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	consumer, err := library.New(client, endpoint+"/000000000000/orders", handler, library.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err == nil {
		err = consumer.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// BenchmarkRunURL compares the processor time of reprise run --url with that of a program that
// posts with the library and net/http, both in processes of their own, in turn. The messages have
// 1 KiB.
func BenchmarkRunURL(b *testing.B) {
	messages := 10_000
	if testing.Short() {
		messages = 100
	}
	var posted atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		posted.Add(1)
	}))
	defer target.Close()
	server := exec.Command(program(b), "serve", "--memory", "--addr", freeAddress(b), "--queue", "orders", "--log-level", "error")
	server.Env = environment()
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // says that it was killed
	}()
	endpoint := "http://" + server.Args[4]
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if reply, err := http.Get(endpoint + "/health"); err == nil {
			reply.Body.Close()
			break
		} else if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	contenders := []func() *exec.Cmd{
		func() *exec.Cmd {
			cmd := exec.Command(program(b), "run", "--queue", "orders", "--endpoint", endpoint, "--url", target.URL, "--admin-addr", "127.0.0.1:0")
			cmd.Env = environment()
			return cmd
		},
		func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = environment(posterVariable + "=" + endpoint + "," + target.URL)
			return cmd
		},
	}
	var each [2][]float64 // microseconds a message
	var ratios []float64
	for b.Loop() {
		for i, contender := range contenders {
			fillOrders(b, endpoint, messages)
			posted.Store(0)
			cmd := contender()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			for deadline := time.Now().Add(patience); posted.Load() < int64(messages); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					b.Fatalf("%v posted %d messages of %d", cmd.Args, posted.Load(), messages)
				}
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				b.Fatalf("%v: %v", cmd.Args, err)
			}
			spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			each[i] = append(each[i], float64(spent.Microseconds())/float64(messages))
		}
		ratios = append(ratios, each[0][len(ratios)]/each[1][len(ratios)])
	}
	slices.Sort(ratios)
	b.ReportMetric(middle(each[0]), "µs/run")
	b.ReportMetric(middle(each[1]), "µs/library")
	b.ReportMetric(middle(ratios), "ratio")
	b.ReportMetric(ratios[len(ratios)/4], "ratio-25%")
	b.ReportMetric(ratios[len(ratios)*3/4], "ratio-75%")
	b.ReportMetric(0, "ns/op") // of no use: it has the time of the server and the target
}

func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// fillOrders sends messages of 1 KiB.
func fillOrders(b *testing.B, endpoint string, messages int) {
	b.Helper()
	body := strings.Repeat("x", 1<<10)
	c := client(endpoint)
	for sent := 0; sent < messages; sent += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, "orders")}
		for i := range 10 {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
		}
		if out, err := c.SendMessageBatch(b.Context(), in); err != nil || len(out.Failed) > 0 {
			b.Fatal(out, err)
		}
	}
}
