//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestDashboardPlayground: a control changes the policy, the text changes the controls, each at once and with the
// focus where it was; the address opens the same again.
func TestDashboardPlayground(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	_, endpoint := upWithDashboard(t, target.URL)
	b := newTab(t, endpoint)
	b.open("/ui/playground?messages=200&rate=0&outage=0&queue=orders")
	b.awaitText("What happens")
	b.awaitText("This process consumes the queue with constant(1h)")
	policy := "document.querySelector('#policy').value"
	b.await("the policy of nobody", policy+".startsWith('exponential(base=1s,')")

	// The slider of the first wait: two seconds is one step further.
	b.do(chromedp.Focus(chromedp.CSS("#base")), chromedp.KeyEvent(kb.ArrowRight))
	b.await("the policy of the control", policy+".startsWith('exponential(base=2s,')")
	b.await("the address", "new URLSearchParams(location.search).get('policy')?.startsWith('exponential(base=2s,')")
	if got := eval[string](b, "document.activeElement.id"); got != "base" {
		t.Errorf("the focus is on %q, want the control that was changed", got)
	}
	if got := eval[string](b, "document.querySelector('output[for=base]').value"); got != "2s" {
		t.Errorf("the control says %q", got)
	}

	// The text, with what cannot be used in between.
	b.do(chromedp.Focus(chromedp.CSS("#policy")))
	eval[bool](b, "document.querySelector('#policy').select(); true")
	b.do(chromedp.KeyEvent("linear(bass=5s)\t"))
	b.awaitText("Nothing was simulated")
	b.await("which field it is", "document.querySelector('#policy').getAttribute('aria-invalid') === 'true'")
	b.checkLook("with a problem")
	eval[bool](b, "document.querySelector('#policy').select(); true")
	b.do(chromedp.Focus(chromedp.CSS("#policy")), chromedp.KeyEvent("linear(base=5s) attempts=7\t"))
	b.await("the controls of the text", "document.querySelector('#kind').value === 'linear' && document.querySelector('#attempts').value === '7'")
	b.awaitText("retry.Linear{Base: 5 * time.Second")

	b.do(chromedp.Click(chromedp.CSS("[name=breaker]")))
	b.await("the comparison", "document.querySelectorAll('.compared thead th').length === 3")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.look(width, scheme)
			b.checkLook(scheme)
		}
	}
	at := eval[string](b, "location.pathname + location.search")
	if !strings.Contains(at, "breaker=compare") {
		t.Errorf("the address is %s", at)
	}
	b.open(at)
	b.await("the same by its address", "document.querySelectorAll('.compared thead th').length === 3 && "+policy+".startsWith('linear(base=5s')")
}
