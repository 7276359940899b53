package dashboard_test

// Holds off: a web page that an operator visits, on any site or served by another program of this machine,
// while a process with a dashboard runs there.

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestAttackPageDashboard: no page but those of this address gets anything, or has anything done.
func TestAttackPageDashboard(t *testing.T) {
	s := serve(t, nil)
	for _, test := range []struct {
		what    string
		header  []string
		refused bool
	}{
		{"the address, typed", []string{"Sec-Fetch-Site", "none"}, false},
		{"a page of this address", s.browser(), false},
		{"a page elsewhere", []string{"Origin", "https://evil.example"}, true},
		{"a page elsewhere, as an image", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"a page elsewhere, as a frame", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true},
		{"a page of another program here", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, true},
		{"a name that was pointed here", []string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, true},
		{"the same without an Origin", []string{"Host", "evil.example"}, true},
		{"a proxy", []string{"X-Forwarded-For", "10.0.0.1"}, true},
	} {
		for _, path := range []string{"/", "/?live=0", "/ui/nowhere"} {
			if strings.Contains(path, "live") && !test.refused {
				continue // it would not end
			}
			got := s.do("GET", path, nil, test.header...)
			if (got.StatusCode == 403) != test.refused || test.refused && strings.Contains(got.text, "orders") {
				t.Errorf("%s: GET %s answers %d", test.what, path, got.StatusCode)
			}
		}
		got := s.do("POST", "/ui/sign-out", url.Values{}, test.header...)
		if page := test.what == "a page of this address"; (got.StatusCode == 403) == page {
			t.Errorf("%s: POST answers %d", test.what, got.StatusCode)
		}
	}
}

// TestAttackPageLink: a link from elsewhere leads to a page that has nothing of the process in it, and leads on
// within this address alone.
func TestAttackPageLink(t *testing.T) {
	s := serve(t, nil)
	s.send("orders", "x")
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for path, want := range map[string]string{"/": "/", "/ui/queues/orders?state=visible": "/ui/queues/orders?state=visible"} {
		got := s.do("GET", path, nil, link...)
		if got.StatusCode != 200 || strings.Contains(got.text, "<nav") || !strings.Contains(got.text, `href="`+want+`" autofocus`) {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.text)
		}
	}
	if got := s.do("POST", "/ui/sign-out", url.Values{}, link...); got.StatusCode != 403 {
		t.Errorf("a form from elsewhere: %d", got.StatusCode)
	}
}

// TestContentPolicy: pages may run and show what this address serves, and nothing else; and they have no script
// and no style in them, which the policy would refuse.
func TestContentPolicy(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/", "/ui/nowhere", "/ui/sign-in"} {
		got := s.do("GET", path, nil)
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(got.Header.Get("Content-Security-Policy"), want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(got.Header.Get("Content-Security-Policy"), "unsafe") || got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: the headers %v", path, got.Header)
		}
		if found := regexp.MustCompile(`<style|<script>|\sstyle=|\son\w+=|href="(https?:)?//|src="(https?:)?//`).FindString(got.text); found != "" {
			t.Errorf("%s has %s in it", path, found)
		}
	}
}
