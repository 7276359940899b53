package admin_test

import (
	"net/url"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestAttackPageOfAnotherPort: a page that another program of this machine serves is of this host and of another
// origin. Each of the two headers alone refuses it: some browsers send no Sec-Fetch-Site, and images no Origin.
func TestAttackPageOfAnotherPort(t *testing.T) {
	s := serve(t, nil)
	own, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range [][]string{
		{"Origin", "http://" + own.Hostname() + ":1"},
		{"Origin", "http://" + own.Hostname()},
		{"Origin", "http://" + own.Hostname() + ":1", "Sec-Fetch-Site", "same-origin"}, // a browser would say same-site
		{"Sec-Fetch-Site", "same-site"},
	} {
		for _, request := range [][3]string{{"GET", "consumers", ""}, {"POST", "consumers/orders/pause", "{}"}} {
			if status, text := s.call(request[0], admin.Path+request[1], request[2], header...); status != 403 || decode[admin.Error](t, text).Code != "forbidden" {
				t.Errorf("%q: %s %s answers %d %s", header, request[0], request[1], status, text)
			}
		}
	}
	_, text := s.call("GET", admin.Path+"consumers/orders", "")
	if decode[admin.Consumer](t, text).Paused {
		t.Error("a page has paused the consumer")
	}
}
