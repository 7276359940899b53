package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// resolve returns the URL of a queue that is given by URL or name. Either way a queue that does not exist is an error.
// At a URL there may be one whose attributes may not be read.
func resolve(ctx context.Context, client *sqs.Client, queue string) (string, error) {
	if strings.Contains(queue, "://") {
		_, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		_, missing := errors.AsType[*types.QueueDoesNotExist](err)
		if _, answered := errors.AsType[smithy.APIError](err); answered && !missing {
			err = nil
		}
		return queue, err
	}
	out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		return "", err
	}
	if aws.ToString(out.QueueUrl) == "" {
		return "", errors.New("the endpoint answers GetQueueUrl without a URL: check that it is one of SQS, or pass the queue's URL")
	}
	return *out.QueueUrl, nil
}

// queueName returns the name of a queue that the flag gives by URL or name.
func queueName(flag, queue string) (string, error) {
	if strings.HasPrefix(queue, "arn:") {
		return "", fmt.Errorf("%s %s is an ARN: pass the queue's URL or its name", flag, queue)
	}
	u, err := url.Parse(queue)
	if err != nil || !strings.Contains(queue, "://") {
		if queue == "" || strings.ContainsAny(queue, "/:") {
			return "", fmt.Errorf("%s %q is neither a name nor a URL: pass one like orders, or https://sqs.eu-west-1.amazonaws.com/123456789012/orders", flag, queue)
		}
		return queue, nil
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.Host == "" || len(path) < 2 {
		return "", fmt.Errorf("%s %s does not end in /account/name: pass the queue's URL as GetQueueUrl returns it", flag, queue)
	}
	return path[len(path)-1], nil
}

// sameEndpoint reports whether two URLs lead to the same host and port.
func sameEndpoint(a, b string) bool {
	first, err := url.Parse(a)
	if err != nil {
		return false
	}
	second, err := url.Parse(b)
	if err != nil {
		return false
	}
	return hostPort(first) == hostPort(second)
}

func hostPort(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if _, err := netip.ParseAddr(host); err != nil && sqsserver.IsLoopbackName(host) {
		host = "127.0.0.1" // localhost resolves to it nearly everywhere
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return host + ":" + port
}

// denials are SQS's error codes for requests that a policy of IAM or of the queue forbids.
var denials = map[string]bool{"AccessDenied": true, "AccessDeniedException": true}

// distrusted are the error codes for credentials that AWS does not accept.
var distrusted = map[string]bool{
	"InvalidClientTokenId": true, "SignatureDoesNotMatch": true, "ExpiredToken": true, "ExpiredTokenException": true,
	"InvalidSecurity": true, "MissingAuthenticationToken": true, "UnrecognizedClientException": true,
	"IncompleteSignature": true, "RequestExpired": true, "InvalidAccessKeyId": true,
}

// accessError explains why the queue that the flag names cannot be consumed. Errors that
// only a change of the settings can correct exit with exitAccess.
func accessError(ctx context.Context, err error, flag, queue string, found awsclient.Found) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, missing := errors.AsType[*awsclient.SettingsError](err); missing {
		return &failure{exitAccess, err}
	}
	place := found.Endpoint.String()
	if found.Endpoint.URL == "" {
		place = "AWS in " + found.Region
	}
	if _, missing := errors.AsType[*types.QueueDoesNotExist](err); missing {
		return &failure{exitAccess, fmt.Errorf("queue %q does not exist at %s: correct %s, --region or --endpoint, or create it (CreateQueue; on a server of your own: reprise serve --queue)", queue, place, flag)}
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case ok && denials[api.ErrorCode()]:
		return &failure{exitAccess, fmt.Errorf("access to queue %q at %s is denied: %s: permit sqs:GetQueueUrl, or pass the queue's URL", queue, place, apiText(api.ErrorMessage()))}
	case ok && distrusted[api.ErrorCode()]:
		return &failure{exitAccess, fmt.Errorf("the AWS credentials are not accepted at %s: %s: %s: renew them, or choose others with AWS_PROFILE", place, apiText(api.ErrorCode()), apiText(api.ErrorMessage()))}
	}
	return queueError(ctx, err, "looking up", queue, found.Endpoint)
}
