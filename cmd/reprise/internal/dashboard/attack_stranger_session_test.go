package dashboard_test

// Holds off: somebody who has got a session's cookie, such as another program at another port of the same host, to which
// browsers send it too; and somebody who guesses the token, or takes all streams.

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/dashboard"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// virtual is a dashboard with a token that is called without a connection, so that time can be virtual.
type virtual struct {
	t     *testing.T
	pages *dashboard.Dashboard
	api   *admin.API
	log   *journal
}

// inVirtualTime runs a test of a dashboard in a bubble.
func inVirtualTime(t *testing.T, test func(*virtual)) {
	synctest.Test(t, func(t *testing.T) {
		server := sqsserver.New(sqsserver.Config{})
		defer server.Close()
		v := &virtual{t: t, log: new(journal)}
		logger := slog.New(slog.NewTextHandler(v.log, nil))
		v.api = admin.New(admin.Config{Events: new(admin.Events), Logger: logger, Token: token, Pages: server.Pages(), Consumers: func() []admin.Running { return nil }})
		v.pages = dashboard.New(dashboard.Config{API: v.api, Logger: logger})
		defer func() { _ = v.pages.Stop(context.Background()) }()
		test(v)
	})
}

// request is one of a browser to a host, with the Cookie header.
func (v *virtual) request(method, target, cookie string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	return r.WithContext(v.t.Context())
}

func (v *virtual) do(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	v.pages.ServeHTTP(w, r)
	return w.Result()
}

// signIn returns the cookie that the form at a host sets.
func (v *virtual) signIn(host, given string) (status int, cookie string) {
	got := v.do(v.request("POST", "http://"+host+"/ui/sign-in", "", url.Values{"token": {given}}))
	for _, c := range got.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	return got.StatusCode, cookie
}

// sees reports whether a cookie shows pages of a host.
func (v *virtual) sees(host, cookie string) bool {
	switch got := v.do(v.request("GET", "http://"+host+"/ui/nowhere", cookie, nil)); got.StatusCode {
	case 404:
		return true
	case 401:
		return false
	default:
		v.t.Fatalf("the status is %d", got.StatusCode)
		return false
	}
}

const here = "localhost:9325"

// TestAttackStrangerSessionEnds: a session ends at its life, to the nanosecond, and at once when it is signed out, for whoever has
// its cookie.
func TestAttackStrangerSessionEnds(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		_, aged := v.signIn(here, token)
		time.Sleep(12*time.Hour - time.Nanosecond)
		if !v.sees(here, aged) {
			t.Error("the session has ended before its time")
		}
		time.Sleep(time.Nanosecond)
		if v.sees(here, aged) {
			t.Error("the session outlives its twelve hours")
		}
		_, left := v.signIn(here, token)
		_, other := v.signIn(here, token)
		if got := v.do(v.request("POST", "http://"+here+"/ui/sign-out", left, nil)); got.StatusCode != 303 || got.Cookies()[0].MaxAge >= 0 {
			t.Errorf("sign-out: %d %v", got.StatusCode, got.Cookies())
		}
		if v.sees(here, left) {
			t.Error("the cookie of a session that was signed out shows pages")
		}
		if !v.sees(here, other) {
			t.Error("another session has ended with it")
		}
	})
}

// limitless is a recorder of a reply whose time limits can be lifted, as a stream does.
type limitless struct{ *httptest.ResponseRecorder }

func (limitless) SetReadDeadline(time.Time) error  { return nil }
func (limitless) SetWriteDeadline(time.Time) error { return nil }

// TestAttackStrangerStreamEnds: a page that is kept up to date is kept so for as long as its session lasts, and shows nothing of what
// happens later, also if nobody signs out.
func TestAttackStrangerStreamEnds(t *testing.T) {
	for later, shown := range map[time.Duration]bool{5 * time.Second: true, 9 * time.Second: false} { // the page is looked at every two seconds
		inVirtualTime(t, func(v *virtual) {
			_, cookie := v.signIn(here, token)
			time.Sleep(12*time.Hour - 10*time.Second)
			page, ended := httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(ended)
				v.pages.ServeHTTP(limitless{page}, v.request("GET", "http://"+here+"/ui/timeline?live=1", cookie, nil))
			}()
			time.Sleep(later)
			v.signIn(here, "a wrong token")
			time.Sleep(20*time.Second - later)
			select {
			case <-ended:
			default:
				t.Fatal("the page is kept up to date when its session has ended")
			}
			if has := strings.Contains(page.Body.String(), "asked for sign-in, which failed"); has != shown {
				t.Errorf("what happens %v after the beginning, 10s before the end of the session, is shown: %t, want %t", later, has, shown)
			}
		})
	}
}

// TestAttackStrangerSessionOfAnotherPort: two processes on one host have cookies of their own, and neither takes the other's, whatever
// it is called.
func TestAttackStrangerSessionOfAnotherPort(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		_, cookie := v.signIn(here, token)
		name, value, _ := strings.Cut(cookie, "=")
		if name != "reprise-session-9325" {
			t.Errorf("the cookie is called %s, as that of another port may be", name)
		}
		const there = "localhost:9326"
		for _, sent := range []string{cookie, "reprise-session-9326=" + value, "reprise-session=" + value} {
			if v.sees(there, sent) {
				t.Errorf("%s shows pages at another port", sent[:24])
			}
		}
		if got := v.do(v.request("POST", "http://"+there+"/ui/sign-out", "reprise-session-9326="+value, nil)); got.StatusCode == 303 && !v.sees(here, cookie) {
			t.Error("another port ends the session")
		}
		_, second := v.signIn(there, token)
		if both := cookie + "; " + second; !v.sees(here, both) || !v.sees(there, both) {
			t.Error("with the cookies of both, one of them shows nothing")
		}
		if planted := name + "=x; " + cookie; !v.sees(here, planted) {
			t.Error("a cookie that another port has set locks the operator out")
		}
		inVirtualTimeOfAnother(v, func(w *virtual) {
			if w.sees(here, cookie) {
				t.Error("another process with the same token, such as this one after a restart, takes the cookie")
			}
		})
	})
}

// TestAttackStrangerSessionOverTLS: the cookie of a session that was begun over TLS is sent over nothing else, such as
// to another program at port 80 of the same host, and it is another one than that of a session without.
func TestAttackStrangerSessionOverTLS(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		for at, want := range map[string]struct {
			name   string
			secure bool
		}{
			"https://localhost": {"reprise-session-443", true},
			"https://" + here:   {"reprise-session-9325", true},
			"http://localhost":  {"reprise-session-80", false},
			"http://" + here:    {"reprise-session-9325", false},
		} {
			r := v.request("POST", at+"/ui/sign-in", "", url.Values{"token": {token}})
			r.Header.Set("Origin", at)
			got := v.do(r)
			if cookies := got.Cookies(); got.StatusCode != 303 || len(cookies) != 1 || cookies[0].Name != want.name || cookies[0].Secure != want.secure || cookies[0].MaxAge != 12*60*60 {
				t.Errorf("%s: %d, the cookies %v, want %+v", at, got.StatusCode, cookies, want)
			}
		}
	})
}

// inVirtualTimeOfAnother runs a test of a second process in the same bubble.
func inVirtualTimeOfAnother(v *virtual, test func(*virtual)) {
	other := *v
	other.pages = dashboard.New(dashboard.Config{API: v.api, Logger: slog.New(slog.DiscardHandler)})
	test(&other)
	_ = other.pages.Stop(context.Background())
}

// TestStreamsThatEnded: who has looked at many pages one after the other may look at the next: streams that have ended
// take no place.
func TestStreamsThatEnded(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		_, cookie := v.signIn(here, token)
		for i := range 300 {
			ctx, cancel := context.WithTimeout(v.t.Context(), time.Second)
			page := httptest.NewRecorder()
			v.pages.ServeHTTP(limitless{page}, v.request("GET", "http://"+here+"/ui/timeline?live=1", cookie, nil).WithContext(ctx))
			if cancel(); page.Code != 200 {
				t.Fatalf("page %d: %d %s", i+1, page.Code, page.Body)
			}
		}
	})
}

// TestSessionsAreBounded: of those above 256 the oldest ends.
func TestSessionsAreBounded(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		_, first := v.signIn(here, token)
		time.Sleep(time.Second)
		_, second := v.signIn(here, token)
		for range 255 {
			time.Sleep(time.Second)
			v.signIn(here, token)
		}
		if v.sees(here, first) || !v.sees(here, second) {
			t.Errorf("of 257 sessions the first lasts %t, the second %t", v.sees(here, first), v.sees(here, second))
		}
	})
}

// TestAttackStrangerGuesses: wrong tokens are answered ten at once and then one in a second, whether they come by the form or
// by the API and from whatever address; the right one is taken at once all the while, by both, from the same address too.
func TestAttackStrangerGuesses(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		api := func(from, given string) int {
			r := httptest.NewRequest("GET", "http://"+here+admin.Path, nil)
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+given)
			w := httptest.NewRecorder()
			v.api.ServeHTTP(w, r)
			return w.Code
		}
		const attackers = 60
		ctx, stop := context.WithCancel(v.t.Context())
		var answered atomic.Int64
		var attack sync.WaitGroup
		for i := range attackers {
			attack.Go(func() {
				for ctx.Err() == nil {
					var status int
					if i%2 == 0 {
						status = api("192.0.2.1:1", "wrong")
					} else {
						status, _ = v.signIn(here, "wrong")
					}
					switch status {
					case 401:
						answered.Add(1)
					case 429:
						time.Sleep(time.Second)
					default:
						t.Errorf("a wrong token: %d", status)
						return
					}
				}
			})
		}
		for range 20 {
			time.Sleep(time.Second)
			synctest.Wait()
			asked := time.Now()
			if status := api("192.0.2.1:1", token); status != 200 {
				t.Errorf("the right token by the API: %d", status)
			}
			if status, cookie := v.signIn(here, token); status != 303 || cookie == "" {
				t.Errorf("the right token by the form: %d", status)
			}
			if took := time.Since(asked); took != 0 {
				t.Errorf("the right token waits %v", took)
			}
		}
		if n := answered.Load(); n != 30 {
			t.Errorf("in 20 s %d wrong tokens were answered, want ten and one a second", n)
		}
		stop()
		attack.Wait()
		if n := strings.Count(v.log.String(), "\n"); n > 120 { // 40 of them for the right ones
			t.Errorf("they make %d lines in the log", n)
		}
	})
}

// TestAttackStrangerAllStreams: one session, or one address, cannot take the streams of all others.
func TestAttackStrangerAllStreams(t *testing.T) {
	s := serve(t, nil)
	var open []*http.Response
	defer func() {
		for _, r := range open {
			r.Body.Close()
		}
	}()
	for i := range 65 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/?live=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Hx-Request", "true")
		got, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, got)
		if want := map[bool]int{true: 200, false: 503}[i < 64]; got.StatusCode != want {
			t.Fatalf("stream %d of one address: %d, want %d", i+1, got.StatusCode, want)
		}
	}
}
