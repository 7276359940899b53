package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	patronsqs "github.com/beatlabs/patron/component/sqs"
	patronlog "github.com/beatlabs/patron/observability/log"
	patrontrace "github.com/beatlabs/patron/observability/trace"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
)

// startGocloud starts goroutines that receive from one subscription of gocloud.dev.
// By default it parses every body to find out whether it is from SNS; with raw it does not.
func startGocloud(raw bool) func(string, site, *sqs.Client) (*contender, error) {
	return func(name string, at site, client *sqs.Client) (*contender, error) {
		ctx, cancel := context.WithCancel(context.Background())
		subscription := awssnssqs.OpenSubscription(ctx, client, at.url, &awssnssqs.SubscriptionOptions{Raw: raw})
		var receivers sync.WaitGroup
		errs := make(chan error, 16)
		for range cap(errs) {
			receivers.Go(func() {
				if err := receive(ctx, subscription); ctx.Err() == nil {
					errs <- err
				}
			})
		}
		return &contender{name, at.workload, func() error {
			cancel()
			receivers.Wait()
			close(errs)
			return errors.Join(<-errs, subscription.Shutdown(context.Background()))
		}}, nil
	}
}

// receive handles the messages of a subscription until it fails.
func receive(ctx context.Context, subscription *pubsub.Subscription) error {
	for {
		m, err := subscription.Receive(ctx)
		if err != nil {
			return err
		}
		handle(m.Body)
		m.Ack()
	}
}

// startWatermill starts subscriptions of watermill-aws. Each handles one message at a time and deletes
// it before the next. By default a receive asks for one message; most sets the number.
func startWatermill(most int32) func(string, site, *sqs.Client) (*contender, error) {
	return func(name string, at site, client *sqs.Client) (*contender, error) {
		subscriber, err := watermillsqs.NewSubscriber(watermillsqs.SubscriberConfig{
			AWSConfig: aws.Config{Credentials: client.Options().Credentials},
			OptFns:    []func(*sqs.Options){func(o *sqs.Options) { *o = client.Options() }},
			GenerateReceiveMessageInput: func(ctx context.Context, url watermillsqs.QueueURL) (*sqs.ReceiveMessageInput, error) {
				in, err := watermillsqs.GenerateReceiveMessageInputDefault(ctx, url)
				if err != nil {
					return nil, err
				}
				in.MaxNumberOfMessages = most
				return in, nil
			},
		}, watermill.NopLogger{})
		if err != nil {
			return nil, err
		}
		var handlers sync.WaitGroup
		for range 16 {
			messages, err := subscriber.Subscribe(context.Background(), at.name)
			if err != nil {
				return nil, errors.Join(err, subscriber.Close())
			}
			handlers.Go(func() {
				for m := range messages {
					handle(m.Payload)
					m.Ack()
				}
			})
		}
		return &contender{name, at.workload, func() error {
			err := subscriber.Close()
			handlers.Wait()
			return err
		}}, nil
	}
}

// startPatron starts components of patron. Each handles a received batch and deletes it, one batch
// after another. By default a receive asks for three messages without a long poll; here it is
// configured like the others. Its spans are dropped.
func startPatron(name string, at site, client *sqs.Client) (*contender, error) {
	tracePatron()
	process := func(_ context.Context, batch patronsqs.Batch) {
		for _, m := range batch.Messages() {
			handle(m.Body())
		}
		_, _ = batch.ACK() // messages that are not deleted come again, and the count shows that they are missing
	}
	ctx, cancel := context.WithCancel(patronlog.WithContext(context.Background(), slog.New(slog.DiscardHandler)))
	var components sync.WaitGroup
	errs := make(chan error, 4)
	for range cap(errs) {
		component, err := patronsqs.New(name, at.name, client, process,
			patronsqs.WithMaxMessages(10), patronsqs.WithPollWaitSeconds(20), patronsqs.WithQueueStatsInterval(time.Hour))
		if err != nil {
			cancel()
			return nil, err
		}
		components.Go(func() { errs <- component.Run(ctx) })
	}
	return &contender{name, at.workload, func() error {
		cancel()
		components.Wait()
		close(errs)
		var problems []error
		for err := range errs {
			problems = append(problems, err)
		}
		return errors.Join(problems...)
	}}, nil
}

// tracePatron sets up the tracing that patron needs to run. Other tracers of this process do nothing.
var tracePatron = sync.OnceFunc(func() {
	nothing := noop.NewTracerProvider()
	otel.SetTracerProvider(nothing) // the first provider is for tracers that were requested before
	patrontrace.Setup("bench", nil, nil)
	otel.SetTracerProvider(nothing)
})
