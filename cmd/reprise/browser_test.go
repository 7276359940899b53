//go:build unix

package main_test

// The dashboard in a real browser: the program as users run it, and Chromium.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium returns the program of the browser; a test skips without one.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("skipped: Chromium is not installed (apt-get install chromium)")
	return ""
}

// tab is a tab of a browser. What its pages complain about fails the test, and so does a request to another
// host than theirs.
type tab struct {
	t   *testing.T
	ctx context.Context
	own string // the address of the program

	mu         sync.Mutex
	complaints []string
	expected   []string // parts of complaints that are no failures
	received   float64  // bytes over the network, headers included
	withoutAxe bool     // it was said that axe-core is not installed
}

// newTab opens a tab of a browser of its own, for pages of one address.
func newTab(t *testing.T, own string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-quic", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, own: own}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, page.Enable, page.EnableParams{})
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.complaints {
			b.t.Errorf("the browser complains: %s", text)
		}
	})
	return b
}

// hear is called for each event.
func (b *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complain(fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text, _ := json.Marshal(e.Args)
			b.complain(fmt.Sprintf("console: %s", text))
		}
	case *log.EventEntryAdded: // also what the content policy refuses
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.complain(fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.complain(fmt.Sprintf("dialog: %s", e.Message))
		go func() { // the page waits for the answer, and this function must not
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventLoadingFinished:
		b.mu.Lock()
		b.received += e.EncodedDataLength
		b.mu.Unlock()
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, b.own+"/") && !strings.HasPrefix(at, "data:") && !strings.HasPrefix(at, "about:") {
			b.complain("request to " + at)
		}
	}
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return
		}
	}
	b.complaints = append(b.complaints, text)
}

// expect has complaints with a text in them be no failures.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

// within returns a context for what has to happen soon.
func (b *tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, patience/4)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("the browser: %v; the page has: %s", err, b.mainText())
	}
}

// open opens a page of the program.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.own+path), chromedp.WaitVisible(chromedp.CSS("main")))
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	return result
}

// eval evaluates an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression is true in the page.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience / 4); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := b.within()
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) { // a page that is left meanwhile has no answer
			b.t.Fatalf("%s: it does not come (%v); the page has: %s", what, err, b.mainText())
		}
	}
}

// awaitParts waits until the parts of the page that load later are there.
func (b *tab) awaitParts() {
	b.t.Helper()
	b.await("what loads later", "![...document.querySelectorAll('.empty')].some(e => e.checkVisibility() && e.textContent.startsWith('Looking'))")
}

// awaitText waits until a text is on the page.
func (b *tab) awaitText(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.await(fmt.Sprintf("the text %q", text), "document.body.innerText.includes("+string(quoted)+")")
}

// mainText is what the page shows now.
func (b *tab) mainText() string {
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''"))
	if err != nil {
		return err.Error()
	}
	return text
}

// look has pages be shown to somebody with a screen so wide who prefers a color scheme.
func (b *tab) look(width int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	b.do(chromedp.EmulateViewport(width, 900))
}

// checkLook checks what can be asserted of how a page looks; what names the page and its state.
func (b *tab) checkLook(what string) {
	b.t.Helper()
	b.checkAccess(what)
	b.checkLayout(what)
}

// checkAccess fails the test for what axe-core finds on the page, against WCAG 2.2 at level AA.
func (b *tab) checkAccess(what string) {
	b.t.Helper()
	const script = "testdata/browser/node_modules/axe-core/axe.min.js"
	axe, err := os.ReadFile(script)
	if err != nil {
		if !b.withoutAxe {
			b.t.Run("accessibility", func(t *testing.T) {
				t.Skipf("skipped: axe-core is not installed (npm ci in testdata/browser): %v", err)
			})
		}
		b.withoutAxe = true
		return
	}
	eval[bool](b, string(axe)+"; true") // by the debugger, which no policy binds
	found := eval[[]struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}](b, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(r => r.violations)`)
	for _, v := range found {
		for _, node := range v.Nodes {
			b.t.Errorf("%s: %s: %s: %s: %s", what, v.ID, v.Help, node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", " "))
		}
	}
}

// checkLayout fails the test for a page that is wider than the screen, for text that is cut off without a title that
// has all of it, and for controls that a finger misses.
func (b *tab) checkLayout(what string) {
	b.t.Helper()
	for _, problem := range eval[[]string](b, `(() => {
		const found = [], name = e => e.outerHTML.slice(0, 120);
		const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
		if (wide > 0) found.push('the page is ' + wide + ' pixels wider than the screen');
		for (const e of document.querySelectorAll('body *')) {
			const box = e.getBoundingClientRect();
			if (!e.checkVisibility() || box.width <= 1 || e.closest('.visually-hidden, .skip, thead, .u-wrap')) continue;
			const style = getComputedStyle(e);
			const ownText = [...e.childNodes].some(n => n.nodeType === 3 && n.nodeValue.trim());
			const cutOff = /hidden|clip/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1 || /hidden|clip/.test(style.overflowY) && e.scrollHeight > e.clientHeight + 1;
			if (ownText && cutOff && !e.closest('[title]')) found.push('cut off: ' + name(e));
			if (e.matches('button, input, select, textarea, summary, nav a, a.button') && !e.matches('[type=hidden]') && (box.height < 24 || box.width < 24) && !e.closest('label')) found.push('small: ' + Math.round(box.width) + ' by ' + Math.round(box.height) + ': ' + name(e));
		}
		return found;
	})()`) {
		b.t.Errorf("%s: %s", what, problem)
	}
}

// picture saves the page as it is seen.
func (b *tab) picture(file string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// pictureOfAll saves the whole page, also what is below the screen.
func (b *tab) pictureOfAll(file string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
