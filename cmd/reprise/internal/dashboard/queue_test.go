package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestQueue: the page of a queue, what it loads later, and one that does not exist.
func TestQueue(t *testing.T) {
	s := serve(t, nil)
	s.send("orders", `{"customer":42}`)
	got := s.do("GET", "/ui/queues/orders", nil)
	if got.StatusCode != 200 || !strings.Contains(got.text, "<h1>orders</h1>") || !strings.Contains(got.text, `data-figures="/ui/queues/orders/figures"`) {
		t.Fatalf("%d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", "/ui/queues/orders/due", nil); got.StatusCode != 200 || !strings.Contains(got.text, "No message is hidden") {
		t.Errorf("what comes due of messages that are visible: %d %s", got.StatusCode, got.text)
	}
	s.sendLater("orders", `{"customer":43}`, 600)
	if got := s.do("GET", "/ui/queues/orders/due", nil); got.StatusCode != 200 || strings.Count(got.text, "<tr>") != 5 || strings.Contains(got.text, "<html") {
		t.Errorf("what comes due: %d %s", got.StatusCode, got.text)
	}
	got = s.do("GET", "/ui/queues/orders/figures", nil)
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "application/json" || !strings.Contains(got.text, `"visible":[1`) {
		t.Errorf("the figures: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", "/ui/queues/orders/figures?after=1e12", nil); !strings.Contains(got.text, `"visible":[]`) {
		t.Errorf("the figures after all: %s", got.text)
	}
	if got := s.do("GET", "/ui/queues/nothing", nil); got.StatusCode != 404 || !strings.Contains(got.text, "This process knows no queue") {
		t.Errorf("a queue that does not exist: %d %s", got.StatusCode, got.text)
	}
}

// TestNewQueue: the page of a queue that was created a moment ago is there.
func TestNewQueue(t *testing.T) {
	s := serve(t, nil)
	if got := s.do("GET", "/ui/queues/new", nil); got.StatusCode != 404 {
		t.Fatalf("before: %d", got.StatusCode)
	}
	s.create("new", nil)
	time.Sleep(300 * time.Millisecond) // longer than the sample is young
	if got := s.do("GET", "/ui/queues/new", nil); got.StatusCode != 200 || !strings.Contains(got.text, "<h1>new</h1>") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
}

var nextPage = regexp.MustCompile(`hx-get="([^"]*after=[^"]*)"`)

// TestMessages: a list goes on page by page to the end, each message once, and a search is one of the server.
func TestMessages(t *testing.T) {
	s := serve(t, nil)
	want := make(map[string]bool)
	for i := range 120 {
		want[s.send("orders", fmt.Sprintf(`{"n":%d,"text":"1+1 (%d)"}`, i, i%2))] = true
	}
	id := regexp.MustCompile(`title="([0-9a-f-]{36})"`)
	pages := 0
	for path := "/ui/queues/orders/messages"; path != ""; pages++ {
		got := s.do("GET", path, nil)
		for _, m := range id.FindAllStringSubmatch(got.text, -1) {
			if !want[m[1]] {
				t.Errorf("%s comes twice, or from nowhere", m[1])
			}
			delete(want, m[1])
		}
		path = ""
		if next := nextPage.FindStringSubmatch(got.text); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(want) != 0 || pages != 3 {
		t.Errorf("%d are missing from %d pages", len(want), pages)
	}
	for query, found := range map[string]int{"text=1%2B1+%281": 50, "text=%281%29&where=n%3D7": 1, "where=n%3D7": 1, "where=n%3D700": 0, "state=delayed": 0, "older=1h": 0} {
		if got := s.do("GET", "/ui/queues/orders/messages?"+query, nil); len(id.FindAllString(got.text, -1)) != found {
			t.Errorf("%s finds %d, want %d", query, len(id.FindAllString(got.text, -1)), found)
		}
	}
	if got := s.do("GET", "/ui/queues/orders/messages?where=x", nil); !strings.Contains(got.text, "is not of the form path=value") {
		t.Errorf("a search that cannot be: %s", got.text)
	}
	if got := s.do("GET", "/ui/queues/orders?text="+url.QueryEscape(`"><b>`), nil); strings.Contains(got.text, "<b>") || !strings.Contains(got.text, "text=%22%3E%3Cb%3E") {
		t.Errorf("a hostile search:\n%s", got.text)
	}
}

// TestQueueOfSQS: where messages cannot be seen, the page says why and which command shows them.
func TestQueueOfSQS(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) { cfg.Server = nil })
	got := s.do("GET", "/ui/queues/orders", nil)
	if got.StatusCode != 200 || !strings.Contains(got.text, "SQS shows a message to its receiver only") || strings.Contains(got.text, `id="list"`) {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
}
