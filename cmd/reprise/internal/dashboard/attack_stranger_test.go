package dashboard_test

// Holds off: somebody who can connect to the process, and does not have its token.

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

const token = "0123456789abcdef0123456789abcdef"

func withToken(cfg *admin.Config) { cfg.Token = token }

// signIn returns the session that a token gives.
func (s *served) signIn(given, next string) (reply, string) {
	s.t.Helper()
	got := s.do("POST", "/ui/sign-in", url.Values{"token": {given}, "next": {next}}, s.browser()...)
	cookies := got.Cookies()
	if len(cookies) == 0 {
		return got, ""
	}
	c := cookies[0]
	if len(cookies) > 1 || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || strings.Contains(c.Value, given) {
		s.t.Errorf("the cookies %v", cookies)
	}
	return got, c.Name + "=" + c.Value
}

// TestAttackStrangerDashboard: without the token there is the form and nothing else, whatever cookie is sent, and
// the token is in no page, cookie or log.
func TestAttackStrangerDashboard(t *testing.T) {
	s := serve(t, withToken)
	got := s.do("GET", "/ui/queues/orders", nil)
	if got.StatusCode != 401 || !strings.Contains(got.text, `name="next" value="/ui/queues/orders"`) || strings.Contains(got.text, "<nav") {
		t.Fatalf("without a session: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", "/?live=1", nil, "Hx-Request", "true"); got.StatusCode != 401 {
		t.Errorf("a stream without a session: %d", got.StatusCode)
	}
	if got := s.do("GET", "/ui/assets/dashboard.css", nil); got.StatusCode != 200 {
		t.Errorf("the form's style: %d", got.StatusCode)
	}
	if got, session := s.signIn(token[1:]+"0", "/"); got.StatusCode != 401 || session != "" || !strings.Contains(got.text, "not the token") {
		t.Errorf("a wrong token: %d %s", got.StatusCode, session)
	}
	got, session := s.signIn(token, "/ui/queues/orders")
	if got.StatusCode != 303 || got.Header.Get("Location") != "/ui/queues/orders" || session == "" {
		t.Fatalf("the token: %d %v", got.StatusCode, got.Header)
	}
	if got := s.do("GET", "/", nil, "Cookie", session); got.StatusCode != 200 || !strings.Contains(got.text, "Sign out") || strings.Contains(got.text, token) {
		t.Errorf("with a session: %d", got.StatusCode)
	}
	name, value, _ := strings.Cut(session, "=")
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text { // one bit of it changed anywhere
		text[i] ^= 1
		if got := s.do("GET", "/", nil, "Cookie", name+"="+base64.RawURLEncoding.EncodeToString(text)); got.StatusCode != 401 {
			t.Errorf("a session with byte %d changed: %d", i, got.StatusCode)
		}
		text[i] ^= 1
	}
	for _, forged := range []string{"", "x", token, value[:len(value)-2], value + "AA"} {
		if got := s.do("GET", "/", nil, "Cookie", name+"="+forged); got.StatusCode != 401 {
			t.Errorf("the session %q: %d", forged, got.StatusCode)
		}
	}
	if got := s.do("GET", "/admin/v1/queues", nil, "Cookie", session); got.StatusCode != 401 {
		t.Errorf("the API takes a session: %d", got.StatusCode) // it has no form, and so none of its protections
	}
	if strings.Contains(s.log.String(), token) || strings.Count(s.log.String(), "action=sign-in") != 2 {
		t.Errorf("the log:\n%s", s.log)
	}
}

// TestAttackStrangerRedirect: the form leads to no other site.
func TestAttackStrangerRedirect(t *testing.T) {
	s := serve(t, withToken)
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/000000000000/orders"} {
		if got, _ := s.signIn(token, next); got.Header.Get("Location") != "/" {
			t.Errorf("%q leads to %q", next, got.Header.Get("Location"))
		}
	}
}

// TestNeedsToken: where the queues require signatures and there is no token, nobody sees anything, and the page
// says what to do.
func TestNeedsToken(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) { cfg.NeedsToken = true })
	if got := s.do("GET", "/", nil); got.StatusCode != 403 || !strings.Contains(got.text, "start the process with --admin-token") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
}
