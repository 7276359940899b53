package failures_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var awsFailures = []failure{
	{"AWS SDK", "no such host", "no such host", true, func(t *testing.T) error {
		client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Resolver: nowhere(t)}).DialContext}}
		return send(t, "http://sqs.invalid", func(o *sqs.Options) { o.HTTPClient = client })
	}},
	{"AWS SDK", "connection refused", "connect: connection refused", true, func(t *testing.T) error {
		return send(t, "http://"+closedAddr(t))
	}},
	{"AWS SDK", "connection refused, and no quota of retries", "retry quota exceeded", true, func(t *testing.T) error {
		return send(t, "http://"+closedAddr(t), func(o *sqs.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.RetryCost = 1000
				o.RetryTimeoutCost = 1000
			})
		})
	}},
	{"AWS SDK", "cut before the answer", "EOF", true, func(t *testing.T) error {
		return send(t, answering(t, func(net.Conn) {}))
	}},
	{"AWS SDK", "cut in the body", "deserialization failed", true, func(t *testing.T) error {
		return send(t, answering(t, says("HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 100\r\n\r\n{\"MessageId\":")))
	}},
	{"AWS SDK", "500", "InternalError", true, answers("500 Internal Server Error", "InternalError")},
	{"AWS SDK", "503", "ServiceUnavailable", true, answers("503 Service Unavailable", "ServiceUnavailable")},
	{"AWS SDK", "503 without a body", "StatusCode: 503", true, func(t *testing.T) error {
		return send(t, answering(t, says("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")))
	}},
	{"AWS SDK", "a 400 that throttles", "ThrottlingException", true, answers("400 Bad Request", "ThrottlingException")},
	{"AWS SDK", "a 400 that says the request timed out", "RequestTimeout", true, answers("400 Bad Request", "RequestTimeout")},
	{"AWS SDK", "a 400 of the request", "InvalidMessageContents", false, answers("400 Bad Request", "InvalidMessageContents")},
	{"AWS SDK", "a 403", "AccessDenied", false, answers("403 Forbidden", "AccessDenied")},
}

// answers has a queue answer each call with an error.
func answers(status, code string) func(*testing.T) error {
	body := `{"__type":"com.amazonaws.sqs#` + code + `","message":"no"}`
	head := fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n", status, len(body))
	return func(t *testing.T) error { return send(t, answering(t, says(head+body))) }
}

func send(t *testing.T, url string, options ...func(*sqs.Options)) error {
	client := sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
		Retryer: aws.NopRetryer{},
	}, options...)
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(url + "/000000000000/orders"), MessageBody: aws.String("{}")})
	return err
}
