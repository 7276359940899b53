package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

// slots is how many hash slots a cluster has.
const slots = 16384

// startCluster starts two primaries, each with half of the slots, and returns their
// addresses.
func startCluster(t *testing.T) []string {
	t.Helper()
	needProgram(t)
	var addrs []string
	var nodes []*redis.Client
	for i := range 2 {
		port, bus := freePort(t), freePort(t)
		s, err := start("--bind", "127.0.0.1", "--port", port, "--cluster-port", bus, "--cluster-enabled", "yes")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.stop)
		addr := net.JoinHostPort("127.0.0.1", port)
		if err := ready(&redis.Options{Addr: addr}); err != nil {
			t.Fatal(err)
		}
		node := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = node.Close() })
		if err := node.ClusterAddSlotsRange(t.Context(), i*slots/2, (i+1)*slots/2-1).Err(); err != nil {
			t.Fatal(err)
		}
		addrs, nodes = append(addrs, addr), append(nodes, node)
		if err := nodes[0].Do(t.Context(), "CLUSTER", "MEET", "127.0.0.1", port, bus).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range nodes {
		eventually(t, "the cluster is whole", func() error {
			info, err := node.ClusterInfo(t.Context()).Result()
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New(info)
			}
			return err
		})
	}
	return addrs
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// TestCluster: a batch goes to all nodes, whatever its keys are, also keys with braces.
func TestCluster(t *testing.T) {
	t.Parallel()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: startCluster(t), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	idempotencytest.Run(t, idempotencytest.Config{
		Open:  func(t *testing.T) idempotency.Store { return newStore(t, client) },
		Games: 2,
	})
	spread := make([]idempotency.Request, 100)
	for i := range spread {
		spread[i] = idempotency.Request{Key: strconv.Itoa(i), Lease: time.Hour, Retention: time.Hour}
	}
	if _, err := newStore(t, client).Acquire(t.Context(), spread); err != nil {
		t.Fatal(err)
	}
	err := client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		if n, err := node.DBSize(ctx).Result(); err != nil || n < 20 {
			return fmt.Errorf("a node has %d of 100 records, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
