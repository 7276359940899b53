//go:build unix

package main_test

// Holds off: a producer, whose messages an operator looks at in a browser.

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// canary is script that a page must not run. Its request would leave for another host.
	canary = `window.pwned=1;alert('pwned');fetch('http://192.0.2.1/pwned')`
	// markup runs it in several ways.
	markup = `</textarea></pre></code></script>'"><script>` + canary + `</script><img src=x onerror="` + canary + `"><svg onload="` + canary + `"></svg>` +
		`<iframe srcdoc="<script>parent.pwned=1</script>"></iframe><a href="javascript:` + canary + `">x</a><form action="http://192.0.2.1/"><button autofocus onfocus="` + canary + `">y</button></form>` +
		`<link rel=stylesheet href="http://192.0.2.1/x.css"><meta http-equiv=refresh content="0;url=http://192.0.2.1/"><base href="http://192.0.2.1/">` +
		`<div hx-get="/ui/sign-out" hx-trigger="load" hx-on:click="` + canary + `">z</div>{{.}}`
	// reversing has the characters that change the direction of text, and plain Hebrew.
	reversing = "invoice \u202efdp.exe\u202c \u2066x\u2069 \u200f \u061c אבג 123"
)

// hostileBodies are bodies, by what they try.
func hostileBodies() map[string]string {
	svg := `<svg xmlns="http://www.w3.org/2000/svg" onload="` + canary + `"><script>` + canary + `</script></svg>`
	inBase64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return map[string]string{
		"markup":             markup,
		"markup in JSON":     fmt.Sprintf(`{%q:%q,"__proto__":{"a":1},"constructor":null,"<b>":["javascript:%s"]}`, markup, markup, canary),
		"link":               "javascript:" + canary,
		"link in JSON":       `{"url":"javascript:` + canary + `","href":"data:text/html,<script>` + canary + `</script>"}`,
		"SVG":                svg,
		"SVG as an image":    inBase64(svg),
		"HTML as PNG":        inBase64("\x89PNG\r\n\x1a\n<html><script>" + canary + "</script>"),
		"HTML as GIF":        inBase64("GIF89a/*<html><script>*/=1;" + canary + "</script>"),
		"large HTML as PNG":  inBase64("\x89PNG\r\n\x1a\n" + strings.Repeat("<script>"+canary+"</script>", 500)),
		"direction":          reversing,
		"direction in JSON":  fmt.Sprintf(`{"%s":"%s"}`, reversing, reversing),
		"controls in JSON":   `{"a\u0000b":"\u0000\u0001\u001b]0;pwned\u0007\u009b31m\u007f"}`,
		"1 MiB":              strings.Repeat("<b>", 1<<20/3),
		"1 MiB on one line":  `"` + strings.Repeat("x", 1<<20-10) + `"`,
		"wide JSON":          "[" + strings.Repeat(`"<b>",`, 150_000) + "1]",
		"deep JSON":          strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		"deep objects":       strings.Repeat(`{"<b>":`, 10_000) + "1" + strings.Repeat("}", 10_000),
		"huge numbers":       `{"a":1e999999,"b":-` + strings.Repeat("9", 60_000) + `,"c":0.` + strings.Repeat("0", 2000) + `1}`,
		"combining":          "a" + strings.Repeat("\u0301", 20_000),
		"a path":             "../../../ui/queues/orders-dead/messages/x?y=1#z",
		"htmx and templates": `<hx-partial hx-target="body"><b hx-get="/ui/sign-out" hx-trigger="load">{{.}} ${` + canary + `}`,
	}
}

// TestAttackProducerInABrowser: whatever messages contain, and errors about them, the pages that show them run no script,
// ask no other host, keep their order and their size, and go on to work.
func TestAttackProducerInABrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // each message is refused, with all of that in the error
		http.Error(w, markup+reversing+"\x00\x1b]0;pwned\x07", http.StatusUnprocessableEntity)
	}))
	t.Cleanup(target.Close)
	_, endpoint := upWithDashboard(t, target.URL)
	c := client(endpoint)
	send := func(queue, body string) string {
		t.Helper()
		in := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, queue), MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{}}
		if strings.HasSuffix(queue, ".fifo") {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String("<svg/onload="+strings.ReplaceAll(canary, " ", "")+">"), aws.String("\"><img/src=x/onerror=pwned=1>")
		}
		if len(body) < 64<<10 {
			in.MessageAttributes["text"] = types.MessageAttributeValue{DataType: aws.String("String.<b>"), StringValue: aws.String(markup + reversing)}
			in.MessageAttributes["bytes"] = types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte(markup)}
		}
		out, err := c.SendMessage(t.Context(), in)
		if err != nil && in.MessageAttributes["text"].DataType != nil { // the type is refused
			in.MessageAttributes["text"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: in.MessageAttributes["text"].StringValue}
			out, err = c.SendMessage(t.Context(), in)
		}
		if err != nil {
			t.Fatalf("%.40q to %s: %v", body, queue, err)
		}
		return *out.MessageId
	}
	for name, attributes := range map[string]map[string]string{"quiet": nil, "quiet.fifo": {"FifoQueue": "true"}} {
		if _, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}

	b := newTab(t, endpoint)
	check := func(what, path string) {
		t.Helper()
		b.open(path)
		b.awaitParts()
		eval[bool](b, "document.querySelectorAll('details').forEach(d => d.open = true), true") // the body in every form
		b.awaitParts()
		if problems := eval[[]string](b, `(() => {
			const found = [], page = document.documentElement, text = page.outerHTML;
			if (window.pwned || document.title.includes('pwned')) found.push('a script has run');
			if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text)) found.push('there are characters that change directions, or controls');
			const elements = document.getElementsByTagName('*').length;
			if (elements > 12000) found.push(elements + ' elements');
			if (text.length > 2 << 20) found.push(text.length + ' characters');
			for (const e of document.querySelectorAll('iframe, object, embed, base, main script, main link, main meta, main style')) found.push(e.outerHTML.slice(0, 80));
			for (const e of document.querySelectorAll('*')) for (const a of e.attributes) if (/^on/i.test(a.name) || /^hx-on/.test(a.name) || /^(href|src|action|formaction)$/.test(a.name) && /^\s*(javascript|data:(?!image\/(png|jpeg|gif|webp);base64,)|https?:)/i.test(a.value)) found.push(a.name + ' of ' + e.outerHTML.slice(0, 80));
			return found;
		})()`); len(problems) > 0 {
			t.Errorf("%s, %s: %s", what, path, strings.Join(problems, "; "))
		}
		b.checkLayout(what)
	}
	b.look(390, "light") // where what is too wide is seen
	for name, body := range hostileBodies() {
		queue := "quiet"
		if name == "markup" {
			queue = "quiet.fifo"
		}
		check(name, "/ui/queues/"+queue+"/messages/"+send(queue, body))
	}
	for _, body := range []string{markup, reversing} {
		send("orders", body)
	}
	b.open("/ui/dead/orders-dead")
	// The page is loaded again only when it has shown what there is, which takes a while on a busy machine.
	b.await("letters with the errors", "document.querySelectorAll('.sample').length >= 2 || document.querySelector('#letters')?.textContent.includes('Looking') === false && location.reload()")
	letter := eval[string](b, "document.querySelector('.sample').getAttribute('href')")
	for what, path := range map[string]string{
		"the list": "/ui/queues/quiet", "groups": "/ui/queues/quiet.fifo", "letters": "/ui/dead/orders-dead", "a letter and its story": letter, "letters in their queue": "/ui/queues/orders-dead",
		"overview": "/", "workers": "/ui/workers", "timeline": "/ui/timeline", "timeline of no queue": "/ui/timeline?queue=" + url.QueryEscape(markup), "dead": "/ui/dead", "local": "/ui/local",
		"no such queue": "/ui/queues/" + url.PathEscape(markup), "no such message": "/ui/queues/quiet/messages/" + url.PathEscape(markup),
		"a search": "/ui/queues/quiet?text=" + url.QueryEscape(markup) + "&id=" + url.QueryEscape(markup), "a selection": "/ui/dead/orders-dead?error=" + url.QueryEscape(markup) + "&reason=" + url.QueryEscape(markup),
		"a policy": "/ui/playground?policy=" + url.QueryEscape(markup) + "&queue=" + url.QueryEscape(markup),
	} {
		if strings.HasPrefix(what, "no such") {
			b.expect("404 (Not Found)")
		}
		check(what, path)
	}
	b.open("/ui/queues/quiet") // the pages still work
	b.await("the list", fmt.Sprintf("document.querySelectorAll('#list tbody tr').length === %d", len(hostileBodies())-1))
}
