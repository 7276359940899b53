//go:build unix

package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// serve starts a server that keeps nothing, and returns it with its endpoint.
func serve(t *testing.T, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"serve", "--memory", "--addr", "127.0.0.1:0"}, args...)...)
	return p, p.await("SQS endpoint")
}

func client(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: bodyKeeper{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}},
	})
}

// bodyKeeper does not let the SDK close the body of a request. The SDK closes it when it has the
// head of the reply. This server is so near that it replies before net/http has seen the body's
// end; net/http then takes the closed body for a failure to send, closes the connection, and the
// rest of the reply is lost (about one receive of ten larger messages in a hundred, with
// smithy-go 1.28).
type bodyKeeper struct{ *http.Client }

func (c bodyKeeper) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.WithContext(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.Client.Do(r)
}

// queueURL is the URL of a queue of the server at endpoint.
func queueURL(endpoint, name string) *string {
	return aws.String(endpoint + "/000000000000/" + name)
}

// receive returns the bodies of up to ten messages, waiting for the first.
func receive(t *testing.T, endpoint, queue string) []string {
	t.Helper()
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(endpoint, queue), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

// TestServe: the AWS SDK takes it for SQS; queues of the command line exist; a
// signal answers the long poll that waits, and ends the program with 0.
func TestServe(t *testing.T) {
	t.Parallel()
	p, endpoint := serve(t, "--queue", "orders,VisibilityTimeout=77,dead-letter=orders-dead,max-receives=5", "--queue", "jobs.fifo,ContentBasedDeduplication=true")
	p.await("storage       memory: messages are lost")

	resp, err := http.Get(endpoint + "/health")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(text) != `{"status":"ok","storage":"memory"}`+"\n" {
		t.Errorf("GET /health = %d %s", resp.StatusCode, text)
	}

	c := client(endpoint)
	out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queueURL(endpoint, "orders"), AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if v := out.Attributes["VisibilityTimeout"]; v != "77" {
		t.Errorf("VisibilityTimeout is %q, want 77", v)
	}
	if v := out.Attributes["RedrivePolicy"]; !strings.Contains(v, "orders-dead") || !strings.Contains(v, "5") {
		t.Errorf("RedrivePolicy is %q", v)
	}

	if got := reprise(t, "", "send", "--endpoint", endpoint, "jobs.fifo", "--group", "g", "one", "two"); got.code != 0 {
		t.Fatalf("send failed: %+v", got)
	}
	if got := receive(t, endpoint, "jobs.fifo"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("received %q", got)
	}

	// The poll has reached the server once the queue says that it was seen: that
	// cannot be asked for, so the signal may also come first; both must end well.
	polled := make(chan error, 1)
	go func() {
		_, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "orders"), WaitTimeSeconds: 20},
			func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
		polled <- err
	}()
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d after SIGINT:\n%s", code, output)
	}
	<-polled
}
