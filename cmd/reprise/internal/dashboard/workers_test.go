package dashboard_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestWorkers: what the forms of the page do is done by the API, which logs who did it, and the page shows it.
func TestWorkers(t *testing.T) {
	s := serve(t, nil)
	act := func(action string, form url.Values, want string) {
		t.Helper()
		form.Set("queue", s.URL+account+"orders")
		got := s.do("POST", "/ui/workers/"+action, form, append(s.browser(), "Hx-Request", "true")...)
		if got.StatusCode != 200 || !strings.Contains(got.text, want) || strings.Contains(got.text, "<html") {
			t.Errorf("%s: %d %s", action, got.StatusCode, got.text)
		}
	}
	page := func(want string) {
		t.Helper()
		if got := s.do("GET", "/ui/workers", nil); got.StatusCode != 200 || !strings.Contains(got.text, want) {
			t.Errorf("the page lacks %q: %d %s", want, got.StatusCode, got.text)
		}
	}
	page(`action="/ui/workers/pause"`)
	act("pause", url.Values{}, "orders is paused")
	page("paused: nothing is received until it is resumed")
	page(`action="/ui/workers/resume"`)
	act("resume", url.Values{}, "orders goes on")
	act("concurrency", url.Values{"concurrency": {"7"}}, "at most 7 handlers at once")
	page("0 of 7")
	act("rate", url.Values{"rate": {"2.5"}}, "the rate is 2.5/s")
	page("2.5/s")
	for _, path := range []string{"/", "/ui/queues/orders"} {
		if got := s.do("GET", path, nil); !strings.Contains(got.text, "at most 2.5 starts/s") {
			t.Errorf("%s does not say that a limit holds: %s", path, got.text)
		}
	}
	act("wake", url.Values{}, "0 messages to be retried, as fast as the handlers can work them off")
	act("probe", url.Values{}, "there is nothing to probe")
	act("concurrency", url.Values{"concurrency": {"many"}}, "not a whole number")
	act("concurrency", url.Values{"concurrency": {"0"}}, `class="notice critical"`)
	act("pause", url.Values{"key": {"acme"}}, "messages of this queue have no keys")
	for _, action := range []string{"pause", "resume", "concurrency", "rate", "wake", "probe"} {
		if !strings.Contains(s.log.String(), "action="+action+" ") {
			t.Errorf("the log has no line about %s", action)
		}
	}
	if strings.Contains(s.log.String(), "remote=dashboard") || !strings.Contains(s.log.String(), "remote=127.0.0.1:") {
		t.Errorf("the log does not say who did it:\n%s", s.log)
	}
	// Without script the answer is a page that leads back.
	got := s.do("POST", "/ui/workers/pause", url.Values{"queue": {"orders"}}, append(s.browser(), "Referer", s.URL+"/ui/workers")...)
	if got.StatusCode != 200 || !strings.Contains(got.text, "<html") || !strings.Contains(got.text, `href="/ui/workers">Back`) {
		t.Errorf("without script: %d %s", got.StatusCode, got.text)
	}
}

// TestWorkersTargetAndPolicy: the page says where messages go and by which policy they are retried, with a link that
// opens the policy in the playground.
func TestWorkersTargetAndPolicy(t *testing.T) {
	const policy = "constant(1h) jitter=none attempts=3 age=96h"
	s := serve(t, func(cfg *admin.Config) {
		consumers := cfg.Consumers
		cfg.Consumers = func() []admin.Running {
			all := consumers()
			for i := range all {
				all[i].Policy, all[i].Target = policy, "http://shop.example/<work>"
			}
			return all
		}
	})
	got := s.do("GET", "/ui/workers", nil)
	link := regexp.MustCompile(`href="(/ui/playground[?][^"]*)"[^>]*>([^<]*)<`).FindStringSubmatch(got.text)
	if !strings.Contains(got.text, "<code>http://shop.example/&lt;work&gt;</code>") || link == nil || html.UnescapeString(link[2]) != policy {
		t.Fatalf("the page: %q %s", link, got.text)
	}
	if got := s.do("GET", html.UnescapeString(link[1]), nil); got.StatusCode != 200 || !strings.Contains(got.text, ">"+policy+"</textarea>") || !strings.Contains(got.text, `<option selected>orders</option>`) {
		t.Errorf("the playground: %d %s", got.StatusCode, got.text)
	}
}

// TestReadOnly: pages offer no action and say why, and what is asked for all the same is refused by the API.
func TestReadOnly(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) { cfg.ReadOnly = true })
	id := s.send("orders-dead", "x")
	for _, path := range []string{"/", "/ui/workers", "/ui/dead", "/ui/dead/orders-dead", "/ui/queues/orders"} {
		got := s.do("GET", path, nil)
		if got.StatusCode != 200 || strings.Contains(got.text, `method="post"`) || !strings.Contains(got.text, "read-only") {
			t.Errorf("%s offers an action: %d %s", path, got.StatusCode, got.text)
		}
	}
	for path, form := range map[string]url.Values{
		"/ui/workers/pause":          {"queue": {"orders"}},
		"/ui/dead/orders-dead/start": {"action": {"delete"}, "ids": {id}},
	} {
		if got := s.do("POST", path, form, s.browser()...); got.StatusCode != 403 || !strings.Contains(got.text, "read-only") {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.text)
		}
	}
	if _, err := s.sqs.Message("orders-dead", id); err != nil {
		t.Error(err)
	}
}
