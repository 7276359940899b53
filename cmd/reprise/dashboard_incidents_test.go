//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The tests of this file walk the ways of docs/dashboard.md through three incidents, with the words of that page: what
// needs attention is told, and what is clicked happens.

// store is a target that the incidents happen to.
type store struct {
	*httptest.Server
	down, bad atomic.Bool // an outage; a deploy that refuses Swedish crowns
	mu        sync.Mutex
	sold      map[string]bool // the orders that it took
}

func newStore(t *testing.T) *store {
	s := &store{sold: make(map[string]bool)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var order struct {
			ID, Currency string
			Quantity     int
		}
		switch err := json.Unmarshal(body, &order); {
		case s.down.Load():
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
		case err != nil || order.Quantity < 0:
			http.Error(w, fmt.Sprintf("panic: makeslice: len out of range (%d)", order.Quantity), 500)
		case s.bad.Load() && order.Currency == "SEK":
			http.Error(w, "unknown currency SEK, says version v2.4.0", http.StatusUnprocessableEntity)
		default:
			s.mu.Lock()
			s.sold[order.ID] = true
			s.mu.Unlock()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// awaitSold waits until the store has taken so many orders.
func (s *store) awaitSold(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		sold := len(s.sold)
		s.mu.Unlock()
		if sold == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d orders are sold, and not %d", sold, n)
		}
	}
}

// order sends orders with ids from first on, every third of them in Swedish crowns.
func order(t *testing.T, endpoint, queue string, first, n, quantity int) {
	t.Helper()
	var lines strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&lines, `{"id":"o-%d","currency":"%s","quantity":%d}`+"\n", i, []string{"SEK", "EUR", "EUR"}[i%3], quantity)
	}
	if got := reprise(t, lines.String(), "send", "--endpoint", endpoint, queue); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
}

// clickUntil clicks what a selector names, if it is there, until a text is on the page.
func (b *tab) clickUntil(selector, text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	where, _ := json.Marshal(selector)
	b.await(fmt.Sprintf("%q after a click on %s", text, selector),
		fmt.Sprintf("document.body.innerText.includes(%s) || (document.querySelector(%s)?.click(), new Promise(r => setTimeout(() => r(document.body.innerText.includes(%[1]s)), 500)))", quoted, where))
}

// TestDashboardOutage: the overview tells the outage, probes, and tells when nothing is left of it. Afterwards the pages tell
// who comes later when and why the breaker opened, and when it closed.
func TestDashboardOutage(t *testing.T) {
	t.Parallel()
	target := newStore(t)
	p, endpoint := upWithDashboard(t, target.URL)
	b := newTab(t, endpoint)
	b.open("/")
	b.awaitText("Nothing needs attention.")
	target.down.Store(true)
	order(t, endpoint, "orders", 0, 60, 1)
	b.awaitText("the breaker is open: outage since ")
	b.awaitText("last error: unavailable: the target answered 503 Service Unavailable: no healthy upstream")
	b.awaitText("more wait in the queue. No attempts are counted until a probe succeeds; then all are delivered.")
	b.clickUntil("form[action='/ui/workers/probe'] button", "orders: 1 probe started. If the target answers, messages are delivered again; if not, the breaker stays open, with the new error.")
	p.await("action=probe")
	target.down.Store(false)
	target.awaitSold(t, 60)
	b.awaitText("Nothing needs attention.")
	b.open("/ui/dead")
	if text := b.mainText(); !strings.Contains(text, "orders-dead\torders\t0") {
		t.Errorf("the outage left dead letters: %s", text)
	}

	b.look(390, "light") // somebody who comes later, with a phone
	for _, path := range []string{"/", "/ui/queues/orders", "/ui/timeline", "/ui/timeline?queue=orders"} {
		b.open(path)
		b.awaitText("The circuit breaker closed after ") // the page is live: this may come only now
		for _, want := range []string{
			"s; last error: unavailable: the target answered 503 Service Unavailable: no healthy upstream",
			"The circuit breaker opened: unavailable: the target answered 503 Service Unavailable: no healthy upstream",
			"An operator at 127.0.0.1:", " asked open breakers to probe now",
		} {
			if text := b.mainText(); !strings.Contains(text, want) {
				t.Errorf("%s does not have %q: %s", path, want, text)
			}
		}
		b.checkLayout(path)
	}
	b.open("/")
	b.do(chromedp.Click(chromedp.CSS("a[href='/ui/timeline']")))
	b.awaitText("The process started, version ")
	b.do(chromedp.SetValue(chromedp.CSS("#of"), "orders"), chromedp.Click(chromedp.CSS("form[role='search'] button")))
	b.await("the page of the queue", "location.search === '?queue=orders' && document.querySelector('#live table')")
	if text := b.mainText(); strings.Contains(text, "The process started") {
		t.Errorf("what happened to the queue has what happened to the process: %s", text)
	}
}

// TestDashboardPoison: the overview leads to the message that fails every time, and its page sends it again, mended.
func TestDashboardPoison(t *testing.T) {
	t.Parallel()
	target := newStore(t)
	_, endpoint := upWithDashboard(t, target.URL, "--retry", "constant(2s) jitter=none attempts=2")
	b := newTab(t, endpoint)
	b.open("/")
	order(t, endpoint, "orders", 0, 10, 1)
	order(t, endpoint, "orders", 10, 1, -8)
	b.awaitText("it has 1 dead letter")
	b.do(chromedp.Click(chromedp.CSS("a.button[href='/ui/dead/orders-dead']")))
	b.awaitText("unavailable: the target answered 500 Internal Server Error: panic: makeslice: len out of range (-8)")
	b.do(chromedp.Click(chromedp.CSS("a.sample")))
	b.awaitText("given up after 2 attempts")
	b.do(chromedp.Click(chromedp.CSS("details.edit summary")))
	b.await("the form", "document.querySelector('#edit-body')") // it is loaded when it is opened
	eval[bool](b, `(() => { const e = document.querySelector('#edit-body'); e.value = e.value.replace('-8', '8'); return true })()`)
	b.do(chromedp.Click(chromedp.CSS("details.edit button")))
	b.awaitText("Sent to orders as ")
	b.awaitText("The original is deleted.")
	b.await("a link to the new message", "document.querySelector('#notice a')?.getAttribute('href') === '/ui/queues/orders/messages/' + document.querySelector('#notice a').innerText")
	target.awaitSold(t, 11)
	b.open("/")
	b.awaitText("Nothing needs attention.")
}

// grouped is a number as the pages write it: 1,050.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// TestDashboardBadDeploy: the overview tells that many messages are given up and pauses the queue; when the deploy is
// undone, the dead letters that it caused go back, and no others.
func TestDashboardBadDeploy(t *testing.T) {
	t.Parallel()
	target := newStore(t)
	_, endpoint := upWithDashboard(t, target.URL)
	order(t, endpoint, "orders-dead", 1_000_000, 1, 1) // a letter of old
	b := newTab(t, endpoint)
	b.open("/")
	b.awaitText("it has 1 dead letter")
	target.bad.Store(true)
	sent := 0
	for deadline := time.Now().Add(patience); !eval[bool](b, "document.body.innerText.includes('it gives up 3')"); sent += 30 {
		if time.Now().After(deadline) {
			t.Fatalf("of %d orders a third is given up, and the page has: %s", sent, b.mainText())
		}
		order(t, endpoint, "orders", sent, 30, 1)
	}
	for deadline := time.Now().Add(patience); inQueue(t, endpoint, "orders-dead") < sent/3+1; time.Sleep(50 * time.Millisecond) { // what waits now waits after the pause
		if time.Now().After(deadline) {
			t.Fatalf("of %d orders %d are given up", sent, inQueue(t, endpoint, "orders-dead")-1)
		}
	}
	b.clickUntil("form[action='/ui/workers/pause'] button", "orders is paused: it receives nothing more, and what runs ends.")
	order(t, endpoint, "orders", sent, 30, 1)
	sent += 30
	b.awaitText("paused: nothing is received until it is resumed")

	target.bad.Store(false)
	b.do(chromedp.Click(chromedp.CSS("a.button[href='/ui/dead/orders-dead']")))
	b.awaitText("the target answered 422 Unprocessable Entity: unknown currency SEK, says version v2.4.0")
	b.do(chromedp.Click(chromedp.CSS("a[href*='currency']")))
	b.await("the selection", "document.querySelector('#error')?.value.includes('currency')")
	b.do(chromedp.Click(chromedp.CSS("button[value='count']")))
	b.awaitText("would be redriven.")
	lost := eval[string](b, "document.querySelector('#notice').innerText")
	if want := fmt.Sprintf("%s letters of %s match", grouped((sent-30)/3), grouped((sent-30)/3+1)); !strings.Contains(lost, want) {
		t.Errorf("the count is %q, and not %q", lost, want)
	}
	b.awaitText(fmt.Sprintf("Redrive %s letters", grouped((sent-30)/3)))
	b.do(chromedp.Click(chromedp.CSS("form[action$='/carry-out'] button")))
	b.awaitText("has begun to redrive: its progress is below")
	b.await("the end of the job", "[...document.querySelectorAll('#jobs ~ div tr')].some(r => r.innerText.includes('redrive') && !r.innerText.includes('count') && r.innerText.includes('done'))")
	b.awaitText("1 letter, in 1 group")
	b.open("/")
	b.clickUntil("form[action='/ui/workers/resume'] button", "orders goes on.")
	target.awaitSold(t, sent)
	b.awaitText("it has 1 dead letter")
}
