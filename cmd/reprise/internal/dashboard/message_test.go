package dashboard_test

import (
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
