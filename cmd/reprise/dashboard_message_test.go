//go:build unix

package main_test

import (
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

	b.do(chromedp.Click(chromedp.CSS("#delay-form button")))
	b.awaitText("The message is hidden for 15m.")
	b.await("that it is hidden", state+" !== 'visible'")
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
