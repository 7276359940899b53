package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/redisstore"
	"github.com/reprise-sqs/reprise/bench/canned"
	"github.com/reprise-sqs/reprise/bench/process"
	"github.com/reprise-sqs/reprise/idempotency"
)

// withRedis compares the consumer with idempotency in Redis to the bare one. The processor time is
// only the consumer's, because the server is another process.
func withRedis(w io.Writer, s scale) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		fmt.Fprintln(w, "The consumer with idempotency in Redis: not measured, for redis-server is not installed")
		return nil
	}
	addr, err := process.FreeAddr()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	server, err := process.Start(addr, exec.Command(program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no"))
	if err != nil {
		return err
	}
	defer server.Stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	for _, concurrency := range []int{10, 100} {
		if err := besideRedis(w, s, client, concurrency); err != nil {
			return err
		}
	}
	return nil
}

func besideRedis(w io.Writer, s scale, client *redis.Client, concurrency int) error {
	ctx := context.Background()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		return err
	}
	once, err := idempotency.New(store, idempotency.Config{})
	if err != nil {
		return err
	}
	var contenders []*contender
	for _, c := range []struct {
		name    string
		handler reprise.Handler
	}{{"bare", trivial}, {"idempotency in Redis", once(trivial)}} {
		q := canned.New()
		started, err := startHandler(c.name, q, q.SDK(tuned), canned.URL, c.handler, reprise.Config{Concurrency: concurrency})
		if err != nil {
			return err
		}
		contenders = append(contenders, started)
	}
	title := fmt.Sprintf("The consumer with idempotency in Redis over loopback at concurrency %d, over the SDK, replies canned below net/http", concurrency)
	if err := compare(w, title, contenders, s.rounds, s.sdk); err != nil {
		return err
	}
	records, err := client.DBSize(ctx).Result()
	if want := int64(s.rounds * s.sdk); err == nil && records < want {
		err = fmt.Errorf("Redis has %d records of at least %d messages: what was measured is not what it should be", records, want)
	}
	return err
}
