package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// The snippets of docs/retries.md.
func Example_plan() {
	policy := retry.Policy{
		Backoff:     retry.Exponential{Base: 5 * time.Second, Max: 12 * time.Hour},
		Jitter:      retry.Full,
		MaxAttempts: 14,
		MaxAge:      4 * 24 * time.Hour,
	}
	queue := plan.Queue{MaxReceives: 5, Retention: 4 * 24 * time.Hour, DeadLetterARN: "arn:aws:sqs:us-east-1:123456789012:dead", DeadLetterRetention: 14 * 24 * time.Hour}

	schedule := plan.NewSchedule(policy, queue, plan.Settings{})
	fmt.Println(schedule)
	for _, finding := range plan.Check(policy, queue, plan.Settings{}) {
		fmt.Println(finding.Severity, finding.Code, finding.Problem)
	}
	// Output:
	//   attempt  min wait  mean wait  max wait  earliest  expected  latest  by
	//         1                                       0s        0s      0s
	//         2        0s       2.5s        5s        0s      2.5s      5s  hide
	//         3        0s         5s       10s        0s      7.5s     15s  hide
	//         4        0s        10s       20s        0s     17.5s     35s  hide
	//         5        0s        20s       40s        0s     37.5s   1m15s  hide
	//         6        0s        40s     1m20s        0s     1m18s   2m35s  requeue
	//         7        0s      1m20s     2m40s        0s     2m38s   5m15s  hide
	//         8        0s      2m40s     5m20s        0s     5m18s  10m35s  hide
	//         9        0s      5m20s    10m40s        0s    10m38s  21m15s  hide
	//        10        0s     10m40s    21m20s        0s    21m18s  42m35s  hide
	//        11        0s     21m20s    42m40s        0s    42m38s   1h25m  requeue
	//        12        0s     42m40s     1h25m        0s     1h25m   2h51m  hide
	//        13        0s      1h25m     2h51m        0s     2h51m   5h41m  hide
	//        14        0s      2h51m     5h41m        0s     5h41m  11h23m  hide
	// with the shortest waits: 14 attempts, 2 copies, given up at the limit of attempts at 0s
	// with the expected waits: 14 attempts, 15 receives, 2 copies, given up at the limit of attempts at 5h41m
	// with the longest waits: 14 attempts, 15 receives, 2 copies, given up at the limit of attempts at 11h23m
	//
	// info max-receives-below-attempts the policy allows 14 attempts and the queue 5 receives: at its last permitted receive a message is sent back as a copy, which begins anew.
}

// webhooks stands for a service that a handler calls.
var webhooks webhookService

type webhookService struct{}

func (webhookService) Ping(context.Context, string) error { return nil }

// The snippet of docs/tuning.md.
func ExampleTuned_defaults() {
	cfg := aws.Config{Region: "eu-central-1"}
	client := sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{}))
	fmt.Println(client.Options().Region)
	// Output: eu-central-1
}

// The snippets of docs/outages.md.
func Example_outage() {
	cfg := reprise.Config{
		Outage: reprise.Outage{
			Key: func(m *reprise.Message) string { return m.GroupID }, // a tenant
			Probe: func(ctx context.Context, tenant string) error {
				return webhooks.Ping(ctx, tenant)
			},
		},
	}
	fmt.Println(cfg.Outage.Probe(context.Background(), "tenant"))
	// Output: <nil>
}

func Example_unavailable() {
	cfg := reprise.Config{
		Outage: reprise.Outage{
			Unavailable: func(err error) bool {
				return errors.Is(err, warehouse.ErrBusy) || reprise.IsUnavailable(err)
			},
		},
	}
	fmt.Println(cfg.Outage.Unavailable(warehouse.ErrBusy), cfg.Outage.Unavailable(warehouse.ErrUnknownSKU))
	// Output: true false
}
