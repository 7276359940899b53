//go:build unix

package main_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDashboardLocal: what a form does shows without another look, and a purge asks first.
func TestDashboardLocal(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	target.broken.Store(true) // so that messages stay
	_, endpoint := upWithDashboard(t, target.URL)
	b := newTab(t, endpoint)
	b.open("/ui/local")
	b.awaitText("None: the server behaves as SQS does.")

	eval[string](b, "document.querySelector('#times').value = '10'")
	b.do(chromedp.SendKeys(chromedp.CSS("#body"), `{"order": 1}`), chromedp.Click(chromedp.CSS("form[action$='/send'] button")))
	b.awaitText("10 messages sent to orders.")
	b.await("the new counts", "[...document.querySelectorAll('#live tbody tr')].some(r => r.cells[0].innerText === 'orders' && +r.cells[1].innerText + +r.cells[2].innerText === 10)")

	b.do(chromedp.SendKeys(chromedp.CSS("#action"), "ListQueues"), chromedp.Click(chromedp.CSS("form[action$='/add-fault'] button")))
	b.awaitText("throttle, of ListQueues")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.look(width, scheme)
			b.checkLook(scheme)
		}
	}
	b.do(chromedp.Click(chromedp.CSS("form[action$='/remove-fault'] button")))
	b.awaitText("None: the server behaves as SQS does.")

	b.do(chromedp.SendKeys(chromedp.CSS("#by"), "30m"), chromedp.Click(chromedp.CSS("form[action$='/advance'] button")))
	b.awaitText("The server's time has moved on by 30m")

	purge := chromedp.Click(chromedp.CSS("form[action$='/purge'] button"))
	b.do(purge) // without the box that confirms it
	if sure := eval[bool](b, "document.querySelector('form[action$=\"/purge\"]').checkValidity()"); sure {
		t.Error("a purge needs no confirmation")
	}
	b.do(chromedp.Click(chromedp.CSS("[name=sure]")), purge)
	b.awaitText("Purged orders: it had ")
	b.await("an empty queue", "[...document.querySelectorAll('#live tbody tr')].some(r => r.cells[0].innerText === 'orders' && r.cells[1].innerText === '0' && r.cells[2].innerText === '0')")
}
