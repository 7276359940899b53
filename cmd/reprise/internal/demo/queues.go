package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The queues.
const (
	queueName = "webhooks"
	deadName  = "webhooks-dead"
	region    = "us-east-1"
	account   = "000000000000"
)

const endPollsEvery = 100 * time.Millisecond

// queues are an SQS server in memory, with the demo's queues. The demo does not use the package
// daemon: its journal, metrics and SDKs of other services take longer to compile than the whole
// demo.
type queues struct {
	client   *sqs.Client
	listener net.Listener
	server   *sqsserver.Server
	http     *http.Server
	served   chan error
}

// startQueues listens on a free port of the loopback address and creates the queues.
func startQueues(ctx context.Context, cfg Config) (*queues, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the demo's SQS server: %w", err)
	}
	q := &queues{
		listener: listener,
		server: sqsserver.New(sqsserver.Config{
			Region: region, Account: account, Logger: cfg.Logger,
			Seed: max(1, cfg.Seed), // 0 would be a random one
		}),
		served: make(chan error, 1),
	}
	q.http = &http.Server{Handler: q.server, ReadHeaderTimeout: 10 * time.Second}
	go func() { q.served <- q.http.Serve(listener) }()
	q.client = sqs.New(sqs.Options{
		Region:       region,
		BaseEndpoint: aws.String(q.endpoint()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}, reprise.Tuned(reprise.Transport{}))
	if err := q.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("creating the demo's queues: %w", err), q.Close())
	}
	return q, nil
}

func (q *queues) create(ctx context.Context) error {
	if _, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(deadName)}); err != nil {
		return err
	}
	_, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(queueName), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:` + region + ":" + account + ":" + deadName +
			`","maxReceiveCount":` + strconv.Itoa(10*policy.MaxAttempts) + `}`,
	}})
	return err
}

// endpoint returns the URL of the server.
func (q *queues) endpoint() string { return "http://" + q.listener.Addr().String() }

// URL returns the URL of the queue called name.
func (q *queues) URL(name string) string { return q.endpoint() + "/" + account + "/" + name }

// messages returns what is in the queue called name, without receiving it.
func (q *queues) messages(name string) ([]sqsserver.MessageInfo, error) {
	return q.server.Messages(name, sqsserver.Page{})
}

// endPolls answers the long polls that wait.
func (q *queues) endPolls() { q.server.EndPolls() }

// Close ends the server and its requests.
func (q *queues) Close() error {
	err := q.http.Close()
	if end := <-q.served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return errors.Join(err, q.server.Close())
}
