package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// aboutOperatorEndpoint describes the endpoint of the commands for operators.
const aboutOperatorEndpoint = `The endpoint is --endpoint, else that of the AWS settings (AWS_ENDPOINT_URL_SQS,
AWS_ENDPOINT_URL, endpoint_url of the profile), of the queue's URL, or AWS's own.
` + aboutSettings

// target is a queue that a command for operators works on.
type target struct {
	client *sqs.Client
	found  awsclient.Found
	name   string // as the user gave it
	url    string
}

// target finds a queue as reprise run finds it. what names the argument in errors.
func (f *awsFlags) target(ctx context.Context, what, queue string) (target, error) {
	if _, err := queueName(what, queue); err != nil {
		return target{}, usage(err)
	}
	found, err := awsclient.Find(ctx, f.endpoint, f.region, queue)
	t := target{client: found.Client, found: found, name: queue}
	if err == nil {
		t.url, err = resolve(ctx, found.Client, queue)
	}
	if err != nil {
		return target{}, accessError(ctx, err, what, queue, found)
	}
	return t, nil
}

// failed explains an error of a request about t; action is SQS's name for what must be permitted.
func (t target) failed(ctx context.Context, err error, action string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && denials[api.ErrorCode()] {
		return &failure{exitAccess, fmt.Errorf("sqs:%s on queue %q is denied: %s: permit it", action, t.name, apiText(api.ErrorMessage()))}
	}
	return accessError(ctx, err, "the queue", t.name, t.found)
}

// attributes returns all attributes of the queue at url.
func (t target) attributes(ctx context.Context, url string) (map[string]string, error) {
	return operate.Ref{URL: url, Client: t.client}.Attributes(ctx)
}

// urlOf returns the URL of the queue with an ARN, which is in t's region.
func (t target) urlOf(ctx context.Context, queueARN string) (string, error) {
	name, err := arn.Parse(queueARN)
	if err != nil {
		return "", err
	}
	// Without the owner it would be the caller's queue of that name, also for a queue that another account shares.
	out, err := t.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name.Resource, QueueOwnerAWSAccountId: &name.AccountID})
	if err != nil || out.QueueUrl == nil {
		return "", fmt.Errorf("the URL of %s: %w", queueARN, err)
	}
	return *out.QueueUrl, nil
}
