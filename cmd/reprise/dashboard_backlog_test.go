//go:build unix

package main_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// waitingMessages is how many messages the tests of large queues send. REPRISE_WAITING is their number.
func waitingMessages(t *testing.T, otherwise int) int {
	t.Helper()
	text := cmp.Or(os.Getenv("REPRISE_WAITING"), strconv.Itoa(otherwise))
	n, err := strconv.Atoi(text)
	if err != nil || n < 200 {
		t.Fatalf("REPRISE_WAITING is %q: set it to a number from 200", text)
	}
	return n
}

// TestDashboardBacklog lists, pages through and searches a queue with very many messages, and prints how long each
// takes until the browser shows it. The page stays as small as with a few.
func TestDashboardBacklog(t *testing.T) {
	n := waitingMessages(t, 3_000)
	if os.Getenv("REPRISE_WAITING") == "" {
		t.Parallel()
	}
	chromium(t)
	p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders,dead-letter=orders-dead", "--queue", "mails")
	endpoint := p.await("SQS endpoint")
	began := time.Now()
	sendBatches(t, endpoint, "orders", n, orderEntry)
	t.Logf("%d messages sent in %v", n, time.Since(began).Round(time.Millisecond))
	sendBatches(t, endpoint, "orders-dead", n/10, deadOrderEntry)
	sendBatches(t, endpoint, "mails", n/10, func(i int) types.SendMessageBatchRequestEntry {
		e := orderEntry(i)
		e.DelaySeconds = int32(60 + i%800)
		return e
	})
	b := newTab(t, endpoint)
	timed := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		elements := eval[int](b, "document.getElementsByTagName('*').length")
		t.Logf("%-40s %8v %6d elements", what, time.Since(began).Round(time.Millisecond), elements)
		if elements > 1500 {
			t.Errorf("%s: %d elements", what, elements)
		}
	}
	shown := "document.querySelectorAll('#list tbody tr').length"
	first := "document.querySelector('#list tbody a').title"
	timed("the overview", func() { b.open("/"); b.awaitText(withCommas(n)) })
	timed("the queue", func() { b.open("/ui/queues/orders"); b.awaitText(withCommas(n)) })
	timed("its list", func() { b.await("50 messages", shown+" === 50") })
	for i := range 3 {
		timed(fmt.Sprintf("page %d", i+2), func() {
			before := eval[string](b, first)
			eval[bool](b, "[...document.querySelectorAll('.pager button')].find(b => b.textContent.includes('Next page')).click(), true")
			b.await("another page", fmt.Sprintf("document.querySelector('#list tbody a')?.title && %s !== %q", first, before))
		})
	}
	timed("a search that finds one among the first", func() {
		b.open("/ui/queues/orders?where=order%3D1000150")
		b.await("it", shown+" === 1")
	})
	timed("a search that finds none", func() {
		b.open("/ui/queues/orders?text=nowhere")
		b.await("the answer", "document.querySelector('#list .empty')?.textContent.includes('atch')")
	})
	timed("a message", func() {
		b.open("/ui/queues/orders")
		b.await("50 messages", shown+" === 50")
		b.open(eval[string](b, "document.querySelector('#list tbody a').getAttribute('href')"))
		b.awaitText("visible")
	})
	timed("its story", func() { b.awaitText("is here") })
	timed("what comes due of those that are delayed", func() {
		b.open("/ui/queues/mails")
		b.await("the table", "document.querySelector('#due ~ div table')")
	})
	timed("the dead letters by reason", func() {
		b.open("/ui/dead/orders-dead")
		b.await("samples", "document.querySelector('.sample')")
	})
	b.lookAt("backlog", map[string]string{
		"overview": "/", "queue": "/ui/queues/orders", "delayed": "/ui/queues/mails", "dead": "/ui/dead", "letters": "/ui/dead/orders-dead", "local": "/ui/local",
	})
}

// withCommas is a number as pages show it.
func withCommas(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
