package dashboard_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// TestMessage: where it stands, its body as a tree, its story, and what can be done to it.
func TestMessage(t *testing.T) {
	s := serve(t, nil)
	id := s.send("orders", `{"customer":{"id":42,"vip":true},"lines":["a",null]}`)
	path := "/ui/queues/orders/messages/" + id
	got := s.do("GET", path, nil)
	for _, want := range []string{"<h2 id=\"standing\">visible", `<span class="name">id</span>: <span class="number">42</span>`, "array of 2", `action="` + path + `/delete"`, `action="` + path + `/dead-letter"`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page lacks %s:\n%s", want, got.text)
		}
	}
	if strings.Contains(got.text, "/release") {
		t.Error("a message that is visible is offered to be made visible")
	}
	if got := s.do("GET", path+"/story", nil); got.StatusCode != 200 || !strings.Contains(got.text, "<b>sent</b>") || !strings.Contains(got.text, "is here") {
		t.Errorf("the story: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("POST", path+"/dead-letter", url.Values{}, s.browser()...); got.StatusCode != 200 || s.inQueue("orders-dead") != 1 {
		t.Errorf("dead-letter: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", path, nil); got.StatusCode != 404 || !strings.Contains(got.text, "has no such message") {
		t.Errorf("where it was: %d %s", got.StatusCode, got.text)
	}
	path = "/ui/queues/orders-dead/messages/" + id
	if got := s.do("GET", path, nil); !strings.Contains(got.text, "/ui/dead/orders-dead?ids="+id) {
		t.Errorf("the letter: %s", got.text)
	}
	if got := s.do("POST", path+"/delete", url.Values{}, s.browser()...); got.StatusCode != 200 || s.inQueue("orders-dead") != 0 {
		t.Errorf("delete: %d %s", got.StatusCode, got.text)
	}
}

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
