package admin_test

// Holds off: a web page that an operator visits, on any site or served by another program of this
// machine, while a process with the admin API runs there.

import (
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestAttackPageAdminAPI: no page but one that this very address serves can read or steer anything,
// whatever headers its browser sends, and what is refused changes nothing.
func TestAttackPageAdminAPI(t *testing.T) {
	s := serve(t, nil)
	own := strings.TrimPrefix(s.URL, "http://")
	for _, test := range []struct {
		what    string
		header  []string
		refused bool
	}{
		{"a program", nil, false},
		{"the address, typed", []string{"Sec-Fetch-Site", "none"}, false},
		{"a page of this address", []string{"Origin", s.URL, "Sec-Fetch-Site", "same-origin"}, false},
		{"a page elsewhere", []string{"Origin", "https://evil.example"}, true},
		{"a page elsewhere, as a form or image", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"a page of another program here", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, true},
		{"the same, as a form or image", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"a sandboxed page", []string{"Origin", "null"}, true},
		{"a name that was pointed here", []string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, true},
		{"the same without an Origin", []string{"Host", "evil.example"}, true},
		{"another spelling of this machine", []string{"Host", own, "Origin", "http://localhost.evil.example"}, true},
		{"a browser that invents a site", []string{"Sec-Fetch-Site", "same-origin, none"}, true},
	} {
		for _, request := range [][3]string{{"GET", "", ""}, {"GET", "queues", ""}, {"GET", "consumers", ""}, {"POST", "consumers/orders/pause", "{}"}, {"OPTIONS", "consumers/orders/pause", ""}} {
			status, text := s.call(request[0], admin.Path+request[1], request[2], test.header...)
			if (status == 403) != test.refused || test.refused && decode[admin.Error](t, text).Code != "forbidden" {
				t.Errorf("%s: %s %s answers %d %s", test.what, request[0], request[1], status, text)
			}
		}
		_, text := s.call("GET", admin.Path+"consumers/orders", "")
		if paused := decode[admin.Consumer](t, text).Paused; paused == test.refused {
			t.Errorf("%s: paused %t", test.what, paused)
		}
		s.call("POST", admin.Path+"consumers/orders/resume", "{}")
	}
	if n := strings.Count(s.log.String(), "refused a request"); n == 0 || n > 5 {
		t.Errorf("%d lines of the log tell of refusals, want few", n)
	}
}

// TestAttackPageSimpleRequest: what a page can send to another origin without asking first is no
// action: a form, plain text.
func TestAttackPageSimpleRequest(t *testing.T) {
	s := serve(t, nil)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/plain; application/json"} {
		if status, text := s.call("POST", admin.Path+"consumers/orders/pause", "{}", "Content-Type", kind); status != 415 {
			t.Errorf("%q: %d %s", kind, status, text)
		}
	}
	if _, text := s.call("GET", admin.Path+"consumers/orders", ""); decode[admin.Consumer](t, text).Paused {
		t.Error("it was paused")
	}
}
