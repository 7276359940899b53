package dashboard_test

// Holds off: a producer, whose messages an operator looks at.

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestAttackProducerBodies: whatever a body contains is text to the browser, and a page stays small.
func TestAttackProducerBodies(t *testing.T) {
	s := serve(t, nil)
	for name, body := range map[string]string{
		"script":         `<script>alert(1)</script><img src=x onerror=alert(2)>`,
		"script in JSON": `{"<script>alert(1)</script>":"</pre><img src=x onerror=alert(2)>","__proto__":{"a":1}}`,
		"htmx":           `<hx-partial hx-target="body"><b hx-get="/ui/sign-out" hx-trigger="load">`,
		"template":       `{{.}} {{"{{"}} ${alert(1)}`,
		"bidi":           "invoice \u202efdp.exe \u2066x\u2069",
		"control":        "a\tb\r\nc",
		"deep":           strings.Repeat("[", 500_000),
		"deep and whole": strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"wide":           "[" + strings.Repeat("1,", 400_000) + "1]",
		"long":           strings.Repeat("x", 1<<20),
		"SVG":            base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)),
		"HTML":           base64.StdEncoding.EncodeToString([]byte(`<html><script>alert(1)</script>`)),
	} {
		id := s.send("orders", body)
		got := s.do("GET", "/ui/queues/orders/messages/"+id, nil)
		if got.StatusCode != 200 || len(got.text) > 400<<10 {
			t.Errorf("%s: %d, %d bytes", name, got.StatusCode, len(got.text))
		}
		for _, raw := range []string{"<script>alert", "<img src=x", "<hx-partial", "<b hx-get", "\u202e", "data:image/svg", "data:text/html"} {
			if strings.Contains(got.text, raw) {
				t.Errorf("%s: the page has %q", name, raw)
			}
		}
	}
	list := s.do("GET", "/ui/queues/orders/messages", nil).text
	if strings.Contains(list, "<script>alert") || strings.Contains(list, "\u202e") || len(list) > 100<<10 {
		t.Errorf("the list: %d bytes", len(list))
	}
	pixel := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	id := s.send("orders", pixel)
	if got := s.do("GET", "/ui/queues/orders/messages/"+id, nil); !strings.Contains(got.text, `src="data:image/png;base64,`) {
		t.Error("an image is not shown")
	}
}
