//go:build unix

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
)

// otherServers are servers that others have written. start starts one, if it is installed.
// ordered reports whether its sequence numbers are in the order of the messages. Moto's are random,
// and a group of a FIFO queue goes by them.
var otherServers = map[string]struct {
	ordered bool
	start   func(t *testing.T) (endpoint string)
}{
	"moto": {false, func(t *testing.T) string {
		address := freeAddress(t)
		host, port, _ := strings.Cut(address, ":")
		startServer(t, exec.Command(installed(t, "moto_server"), "-H", host, "-p", port))
		return "http://" + address
	}},
	"ElasticMQ": {true, func(t *testing.T) string {
		java, classes := installed(t, "java"), classpath(t, "servers")
		address := freeAddress(t)
		host, port, _ := strings.Cut(address, ":")
		config := written(t, "elasticmq.conf", fmt.Sprintf("include classpath(\"application.conf\")\nnode-address { host = %q, port = %[2]s }\n"+
			"rest-sqs { bind-hostname = %[1]q, bind-port = %[2]s }\nrest-stats { enabled = false }\n", host, port))
		startServer(t, exec.Command(java, "-Xmx256m", "-Dconfig.file="+config, "-cp", classes, "org.elasticmq.server.Main"))
		return "http://" + address
	}},
}

// startServer starts a server, which is killed at the end of the test.
func startServer(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	})
}

// TestRunOnOtherServers: run works off standard and FIFO queues of servers that it knows nothing
// of: what fails is retried, what is refused is dead-lettered with its story, and groups keep
// their order.
func TestRunOnOtherServers(t *testing.T) {
	t.Parallel()
	for name, server := range otherServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := server.start(t)
			awaitServer(t, endpoint)
			for _, suffix := range []string{"", ".fifo"} {
				t.Run("orders"+suffix, func(t *testing.T) { runOn(t, endpoint, suffix, server.ordered) })
			}
		})
	}
}

// awaitServer waits until the server at endpoint lists its queues.
func awaitServer(t *testing.T, endpoint string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, err := client(endpoint).ListQueues(t.Context(), new(sqs.ListQueuesInput))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Skipf("skipped: the server never answered: %v", err)
		}
	}
}

// runOn works a queue off. The bodies of messages begin with what the target does: it accepts
// good ones, fails the first attempt of flaky ones, and refuses bad ones.
func runOn(t *testing.T, endpoint, suffix string, ordered bool) {
	create := func(name, redrive string) (url string) {
		attributes := map[string]string{}
		if suffix != "" {
			attributes["FifoQueue"] = "true"
		}
		if redrive != "" {
			attributes["RedrivePolicy"] = redrive
		}
		out, err := client(endpoint).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + suffix), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	dead := create("orders-dead", "")
	about, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &dead, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	url := create("orders", fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"100"}`, about.Attributes["QueueArn"]))

	var mu sync.Mutex
	attempts := make(map[string]int)
	var done []string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body := string(text)
		mu.Lock()
		defer mu.Unlock()
		attempts[body]++
		switch {
		case strings.HasPrefix(body, "bad"):
			http.Error(w, "no such article", http.StatusUnprocessableEntity)
		case strings.HasPrefix(body, "flaky") && attempts[body] == 1:
			http.Error(w, "too busy", http.StatusTooManyRequests)
		default:
			done = append(done, body)
		}
	}))
	defer target.Close()

	var want []string
	for i := range 12 {
		body := []string{"good", "flaky", "bad"}[i%3] + fmt.Sprintf(" %02d שלום", i)
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{"team": {DataType: aws.String("String"), StringValue: aws.String("shop")}}}
		if suffix != "" {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String(fmt.Sprintf("group-%d", i/6)), aws.String(fmt.Sprint(i))
		}
		if _, err := client(endpoint).SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if i%3 < 2 {
			want = append(want, body)
		}
	}
	p := startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint), "run", "--queue", "orders"+suffix, "--admin-addr", "127.0.0.1:0", "--long-poll", "1s",
		"--url", target.URL, "--retry", "constant(1s) jitter=none attempts=5")
	admin, _, _ := strings.Cut(p.await("admin         "), "/health")
	awaitHealth(t, admin, func(h health) bool { return h.Consumer.Deleted == 8 && h.Consumer.DeadLettered == 4 })
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}

	mu.Lock()
	defer mu.Unlock()
	if suffix != "" { // each group has its messages in order, the groups go side by side
		slices.SortStableFunc(done, func(a, b string) int { return strings.Compare(groupOf(want, a), groupOf(want, b)) })
	}
	if suffix == "" || !ordered {
		slices.Sort(done)
		slices.Sort(want)
	}
	if !slices.Equal(done, want) {
		t.Errorf("done in this order:\n%q\nwant\n%q", done, want)
	}
	for body, n := range attempts {
		if expected := map[bool]int{true: 2, false: 1}[strings.HasPrefix(body, "flaky")]; n != expected {
			t.Errorf("%q was tried %d times, want %d", body, n, expected)
		}
	}
	letters := 0
	for letters < 4 {
		out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"}})
		if err != nil || len(out.Messages) == 0 {
			t.Fatalf("%d dead letters, want 4: %v", letters, err)
		}
		for _, m := range out.Messages {
			letters++
			story := aws.ToString(m.MessageAttributes[library.StoryAttribute].StringValue)
			if !strings.HasPrefix(*m.Body, "bad") || !strings.Contains(story, "no such article") || aws.ToString(m.MessageAttributes["team"].StringValue) != "shop" {
				t.Errorf("dead letter %q with %v", *m.Body, m.MessageAttributes)
			}
			if _, err := client(endpoint).DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Error(err)
			}
		}
	}
	left, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := left.Attributes; a["ApproximateNumberOfMessages"] != "0" || a["ApproximateNumberOfMessagesNotVisible"] != "0" {
		t.Errorf("messages are left: %v", a)
	}
}

// groupOf returns the group of a message: the first half of all, or the second.
func groupOf(all []string, body string) string {
	return fmt.Sprint(slices.Index(all, body) / (len(all) / 2))
}
