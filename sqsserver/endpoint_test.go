package sqsserver_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var (
	endpointFlag = flag.String("endpoint", "", "URL of the SQS to run TestConformanceAgainstEndpoint against (default a server of the test's own)")
	longestWait  = flag.Duration("endpoint.wait", time.Minute, "leave out cases that wait longer at -endpoint")
)

// The suite against any endpoint, AWS itself included:
//
//	AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... \
//	go test ./sqsserver -run TestConformanceAgainstEndpoint -timeout 2h -endpoint https://sqs.eu-west-1.amazonaws.com
//
// It makes about 250 queues, named reprise-..., which it deletes, and sends about a thousand
// requests, which cost less than a cent. It leaves out cases that are this server's own
// choice, and waits of more than -endpoint.wait. Counts of messages and changes of attributes
// take up to a minute on AWS, so that cases about them may fail there. Without -endpoint it
// runs against this server over TCP, which tests the test itself.
func TestConformanceAgainstEndpoint(t *testing.T) {
	endpoint, longest := *endpointFlag, *longestWait
	if endpoint == "" {
		server := httptest.NewServer(newServer(t))
		t.Cleanup(server.Close)
		endpoint, longest = server.URL, 0
	}
	client := sqs.New(sqs.Options{
		Region: valueOr(os.Getenv("AWS_REGION"), "us-east-1"), BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     valueOr(os.Getenv("AWS_ACCESS_KEY_ID"), "AKID"),
				SecretAccessKey: valueOr(os.Getenv("AWS_SECRET_ACCESS_KEY"), "secret"),
				SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}),
	})
	run := "reprise-" + strconv.FormatInt(time.Now().Unix(), 36)
	account := ""
	for i, c := range allCases(t) {
		if c.is("local") || c.is("choice") || c.is("not sdk") || c.waits() > longest {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			transport := &namingTransport{transport: sdkTransport{client}, prefix: fmt.Sprintf("%s-%d-", run, i)}
			t.Cleanup(func() { transport.deleteQueues(t) })
			if account == "" {
				account = transport.account(t)
			}
			if failed, err := c.play(t.Context(), transport, account); err != nil {
				t.Errorf("%s: %s %s\n%v", failed.line, failed.action, failed.rest, err)
			}
		})
	}
}

func valueOr(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// namingTransport gives the queues of a script names that were never used before: a deleted
// name cannot be used for a minute.
type namingTransport struct {
	transport
	prefix string
	urls   []string
}

// prefixable are names that stay as valid as they are with a prefix.
var prefixable = regexp.MustCompile(`^[0-9A-Za-z_-]{1,50}(\.fifo)?$`)

func (d *namingTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	var members map[string]any
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, "", "", err
	}
	if name, _ := members["QueueName"].(string); prefixable.MatchString(name) {
		members["QueueName"] = d.prefix + name
	}
	if url, _ := members["QueueUrl"].(string); !strings.Contains(url, d.prefix) { // written in the script
		start, name := url[:strings.LastIndexByte(url, '/')+1], url[strings.LastIndexByte(url, '/')+1:]
		members["QueueUrl"] = start + d.prefix + name
	}
	if action == "ListQueues" {
		start, _ := members["QueueNamePrefix"].(string)
		members["QueueNamePrefix"] = d.prefix + start
	}
	input, err := json.Marshal(members)
	if err != nil {
		return nil, "", "", err
	}
	reply, code, message, err := d.transport.call(ctx, action, input)
	var created struct{ QueueUrl string }
	if action == "CreateQueue" && json.Unmarshal(reply, &created) == nil {
		d.urls = append(d.urls, created.QueueUrl)
	}
	return reply, code, strings.ReplaceAll(message, " "+d.prefix, " "), err
}

// account finds the account in the URL of a queue.
func (d *namingTransport) account(t *testing.T) string {
	if _, _, message, err := d.call(t.Context(), "CreateQueue", []byte(`{"QueueName":"account"}`)); err != nil || message != "" {
		t.Fatal(message, err)
	}
	parts := strings.Split(d.urls[0], "/")
	return parts[len(parts)-2]
}

func (d *namingTransport) deleteQueues(t *testing.T) {
	deleted := make(map[string]bool)
	for _, url := range d.urls {
		if deleted[url] {
			continue
		}
		deleted[url] = true
		_, code, message, err := d.transport.call(context.Background(), "DeleteQueue", fmt.Appendf(nil, `{"QueueUrl":%q}`, url))
		if err != nil || code != "" && code != "AWS.SimpleQueueService.NonExistentQueue" {
			t.Errorf("%s is left behind: %s: %s, %v", url, code, message, err)
		}
	}
}
