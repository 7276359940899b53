//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// upWithDashboard runs reprise up for the queue orders.
func upWithDashboard(t *testing.T, target string, args ...string) (p *process, endpoint string) {
	t.Helper()
	chromium(t)
	p = start(t, append([]string{
		"up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--url", target,
		"--retry", "constant(1h) jitter=none attempts=3", "--permanent-status", "422",
	}, args...)...)
	return p, p.await("SQS endpoint  ")
}

// TestDashboardOverview: the page shows what happens without being loaded again, to everybody: in both color
// schemes, on a phone, by keyboard.
func TestDashboardOverview(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	_, endpoint := upWithDashboard(t, target.URL)
	b := newTab(t, endpoint)
	b.open("/")
	b.awaitText("Nothing needs attention.")
	b.await("that the page is live", "document.querySelector('#connection').textContent === 'live'")
	target.broken.Store(true)
	sendOrders(t, endpoint, 60)
	b.awaitText("the breaker is open: outage since ")
	b.awaitText("critical")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.look(width, scheme)
			b.checkLook(scheme)
		}
	}
	b.do(chromedp.KeyEvent("\t"))
	if got := eval[string](b, "document.activeElement.textContent"); got != "Skip to content" {
		t.Errorf("the first thing that the keyboard reaches is %q", got)
	}
	dark := "getComputedStyle(document.documentElement).colorScheme"
	before := eval[string](b, "getComputedStyle(document.body).backgroundColor")
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	if after := eval[string](b, "getComputedStyle(document.body).backgroundColor"); after == before {
		t.Errorf("the button leaves the color scheme %s", eval[string](b, dark))
	}
}

// TestDashboardSurvivesARestart: a page that is open goes on when the program comes back, and says meanwhile that
// its figures are old.
func TestDashboardSurvivesARestart(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	p, endpoint := upWithDashboard(t, target.URL)
	b := newTab(t, endpoint)
	b.expect("ERR_CONNECTION_REFUSED")
	b.expect("hx-sse")
	b.open("/")
	b.await("that the page is live", "document.querySelector('#connection').textContent === 'live'")
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	b.awaitText("not connected: the figures are old")
	_, again := upWithDashboard(t, target.URL, "--addr", strings.TrimPrefix(endpoint, "http://"))
	if again != endpoint {
		t.Fatalf("it is at %s now", again)
	}
	b.await("that the page is live again", "document.querySelector('#connection').textContent === 'live'")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "orders-dead", "x"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	b.awaitText("1 dead letter.")
}

// TestDashboardAsksForTheToken once, and the page then is as without one.
func TestDashboardAsksForTheToken(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	const token = "0123456789abcdef0123456789abcdef"
	chromium(t)
	p := startIn(t, environment("TOKEN="+token), "up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--url", target.URL, "--admin-token", "env:TOKEN")
	b := newTab(t, p.await("SQS endpoint  "))
	b.expect("401 (Unauthorized)")
	b.open("/")
	b.checkLook("the form")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	b.awaitText("This is not the token of this process.")
	b.checkLook("the form, after a mistake")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	b.awaitText("Nothing needs attention.")
	b.await("that the page is live", "document.querySelector('#connection').textContent === 'live'")
	if cookies := eval[string](b, "document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookies %q", cookies)
	}
	b.do(chromedp.Click(chromedp.CSS("form[action='/ui/sign-out'] button")), chromedp.WaitVisible(chromedp.CSS("#token")))

	// A page whose session ends elsewhere, or by time, does not stand there as if the process were gone.
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	b.await("that the page is live", "document.querySelector('#connection')?.textContent === 'live'")
	b.expect("SSE reconnect failed with status 401")
	eval[bool](b, "fetch('/ui/sign-out', {method: 'POST'}) !== null")
	b.do(chromedp.WaitVisible(chromedp.CSS("#token")))
}

// TestDashboardPages: each page is for everybody, in both color schemes and on a phone, and a page acts when it is
// clicked. With -update it takes the pictures of docs/dashboard.md.
func TestDashboardPages(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	_, endpoint := upWithDashboard(t, target.URL)
	send := func(queue, body string) {
		t.Helper()
		if got := reprise(t, "", "send", "--endpoint", endpoint, queue, body); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	const hostile = `{"order":1,"note":"<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">","lines":[{"sku":"a-1","count":2}]}`
	send("orders-dead", hostile)
	b := newTab(t, endpoint)
	b.open("/ui/workers")
	b.do(chromedp.Click(chromedp.CSS("form[action='/ui/workers/pause'] button")))
	b.awaitText("orders is paused: it receives nothing more")
	b.awaitText("paused: nothing is received until it is resumed")
	send("orders", hostile)
	b.open("/ui/queues/orders")
	b.await("the list of messages", "document.querySelector('#list table a')")
	b.await("figures of charts", "document.querySelector('[data-points] canvas')")
	b.awaitText("Within")
	message := eval[string](b, "document.querySelector('#list table a').getAttribute('href')")
	b.open(message)
	b.awaitText("is here")
	if title := eval[string](b, "document.title"); !strings.HasPrefix(title, "Message ") {
		t.Errorf("the title is %q", title)
	}
	pages := map[string]string{"overview": "/", "queue": "/ui/queues/orders", "message": message, "dead": "/ui/dead", "letters": "/ui/dead/orders-dead", "workers": "/ui/workers", "timeline": "/ui/timeline"}
	pictures := map[string]bool{"overview-1440-light": true, "message-1440-dark": true}
	for name, path := range pages {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1440, 390} {
				b.look(width, scheme)
				b.open(path)
				b.awaitParts()
				b.checkLook(name + ", " + scheme)
				if picture := fmt.Sprintf("%s-%d-%s", name, width, scheme); *update && pictures[picture] {
					b.picture("../../docs/dashboard-" + picture + ".png")
				}
			}
		}
	}
	b.open("/ui/workers")
	b.do(chromedp.Click(chromedp.CSS("form[action='/ui/workers/resume'] button")))
	b.awaitText("orders goes on.")
	b.open("/")
	b.awaitText("1 dead letter.")
}
