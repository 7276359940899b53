//go:build unix

package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDashboardMessage: the page of a message shows what an action has changed, and what happens without one, while it
// is open.
func TestDashboardMessage(t *testing.T) {
	t.Parallel()
	chromium(t)
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead")
	sendJSON(t, endpoint, "orders", `{"order":1}`, nil)
	b := newTab(t, endpoint)
	b.expect("dialog: ") // which confirm what is asked for
	b.open("/ui/queues/orders")
	b.await("the message", "document.querySelector('#list table a')")
	b.open(eval[string](b, "document.querySelector('#list table a').getAttribute('href')"))
	state := "document.querySelector('#standing').innerText"
	b.await("that it is visible", state+" === 'visible'")
	b.awaitText("is here")

	eval[bool](b, "document.querySelector('#delay').value = '10m', true") // as a sender could
	b.do(chromedp.Click(chromedp.CSS("#delay-form button")))
	b.awaitText("The message is hidden for 10m.")
	b.await("that it is hidden", state+" !== 'visible'")
	b.awaitText("delayed by an operator, not by its sender")
	b.await("its story again", "document.querySelector('.story').innerText.includes('delayed, received')")
	b.await("what can be done now", "document.querySelector('#release-form') && !document.querySelector('#delay-form') && document.querySelector('#delete-form button').innerText === 'Delete'")
	b.do(chromedp.Click(chromedp.CSS("#release-form button")))
	b.await("that it is visible again", state+" === 'visible' && document.querySelector('#delay-form')")

	// The page keeps the text that somebody has typed when it shows the rest anew.
	b.do(chromedp.Click(chromedp.CSS("details.edit summary")), chromedp.WaitVisible(chromedp.CSS("#edit-body")))
	eval[bool](b, "document.querySelector('#delay').value = '7m', document.querySelector('#edit-body').value = '{\"order\":2}', true")
	if received := receive(t, endpoint, "orders"); len(received) != 1 {
		t.Fatalf("received %q", received)
	}
	b.await("that another has received it", state+" !== 'visible'")
	if typed := eval[string](b, "document.querySelector('#edit-body').value"); typed != `{"order":2}` {
		t.Errorf("the text that was typed is %q now", typed)
	}
	b.do(chromedp.Click(chromedp.CSS("#dead-letter-form button")))
	b.await("where it is", "document.querySelector('#live a')?.getAttribute('href').startsWith('/ui/queues/orders-dead/messages/')")
	b.checkLook("a message that has gone")
	b.do(chromedp.Click(chromedp.CSS("#live a")), chromedp.WaitVisible(chromedp.CSS("#delete-form")))
	b.do(chromedp.Click(chromedp.CSS("#delete-form button")))
	b.awaitText("The message is deleted.")
	b.awaitText("no longer in orders-dead")
	b.await("the end of what can be done", "!document.querySelector('#delete-form')")
	b.awaitText("order") // the body is still there, to be copied
}

// TestDashboardRetriesACopy: a retry that waits in the retry lane, as a copy with a delay, starts when somebody clicks
// Retry now on its page, and once only.
func TestDashboardRetriesACopy(t *testing.T) {
	t.Parallel()
	chromium(t)
	var attempts atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts.Add(1); r.Header.Get("X-Reprise-Attempt") == "1" {
			http.Error(w, "out of paper", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(target.Close)
	config := filepath.Join(t.TempDir(), "reprise.yaml")
	text := "queues:\n  - name: lane\n  - name: orders\n    consume: {url: " + target.URL + ", retry-lane: lane, retry: constant(10m) jitter=none attempts=9}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "up", "--memory", "--addr", "127.0.0.1:0", "--config", config)
	endpoint := p.await("SQS endpoint")
	sendJSON(t, endpoint, "orders", `{"order":1}`, nil)
	b := newTab(t, endpoint)
	b.open("/ui/queues/lane")
	b.await("the copy", "document.querySelector('#list table a')")
	b.open(eval[string](b, "document.querySelector('#list table a').getAttribute('href')"))
	b.await("that it waits for its retry", "document.querySelector('#standing').innerText.startsWith('waiting for a retry, attempt 2')")
	b.awaitText("out of paper")
	if n := attempts.Load(); n != 1 {
		t.Errorf("%d attempts before the click, want 1", n)
	}
	b.do(chromedp.Click(chromedp.CSS("#retry-form button")))
	// While the consumer is hiding the copy the page asks to wait: then it is clicked once more.
	b.await("that it is retried", "document.body.innerText.includes('starts the next attempt') || document.body.innerText.includes('wait until its attempt has ended') && document.querySelector('#retry-form button').click()")
	b.awaitText("no longer in lane")
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}
