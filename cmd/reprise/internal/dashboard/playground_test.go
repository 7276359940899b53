package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestPlayground simulates what nobody has filled in, a comparison on a queue, and what is wrong.
func TestPlayground(t *testing.T) {
	const used = "constant(7s) jitter=none attempts=4 age=1h"
	s := serve(t, func(cfg *admin.Config) {
		plain := cfg.Consumers
		cfg.Consumers = func() []admin.Running {
			all := plain()
			all[0].Policy = used
			return all
		}
	})
	get := func(values url.Values) string {
		t.Helper()
		got := s.do("GET", "/ui/playground?"+values.Encode(), nil)
		if got.StatusCode != 200 {
			t.Fatalf("%v: %d %s", values, got.StatusCode, got.text)
		}
		return got.text
	}
	has := func(page string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
	}
	quick := url.Values{"messages": {"50"}, "rate": {"0"}, "outage": {"0"}}
	with := func(more ...string) url.Values {
		v := url.Values{}
		for name, value := range quick {
			v[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}

	page := get(quick)
	has(page, "exponential(base=1s,factor=2,max=1h)", "<svg ", "messages that are done", "retry.Policy{", `<option>orders</option>`)
	if strings.Contains(page, `<option>orders-dead</option>`) {
		t.Error("a dead-letter queue can be chosen")
	}

	page = get(with("policy", "exponential(base=1s) attempts=30", "against", "constant(1m)", "breaker", "compare", "queue", "orders"))
	has(page, "On orders", "maxReceiveCount", "without a circuit breaker", "constant(1m)", "This process consumes the queue with", used, "--compare breaker=on")

	page = get(with("by", "sliders", "kind", "constant", "base", "6", "policy", "constant(3s)"))
	has(page, `>constant(10s) jitter=full`, `<output for="base">10s</output>`)

	page = get(with("policy", `<script>alert(1)</script>`, "queue", "absent"))
	has(page, "Nothing was simulated", "&lt;script&gt;alert(1)", `knows no queue &#34;absent&#34;`, `aria-invalid="true"`)
	if strings.Contains(page, "<script>alert") {
		t.Error("a policy is shown as markup")
	}

	page = get(with("policy", "constant(1s) attempts=unlimited age=unlimited", "failing", "100%"))
	has(page, "never gives up")
}

// TestPlaygroundOfAFIFOQueue finds what conflicts with it, and says when it is gone.
func TestPlaygroundOfAFIFOQueue(t *testing.T) {
	s := serve(t, nil)
	s.create("ordered.fifo", map[string]string{"FifoQueue": "true"})
	got := s.do("GET", "/ui/playground?messages=50&rate=0&outage=0&queue=ordered.fifo", nil)
	if got.StatusCode != 200 || !strings.Contains(got.text, "On ordered.fifo") || !strings.Contains(got.text, "dead-letter queue") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
	at := s.URL + account + "ordered.fifo"
	if _, err := s.client.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &at}); err != nil {
		t.Fatal(err)
	}
	if got := s.do("GET", "/ui/playground?messages=50&rate=0&queue=ordered.fifo", nil); !strings.Contains(got.text, "knows no queue") {
		t.Errorf("of a queue that is gone: %s", got.text)
	}
}
