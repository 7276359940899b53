package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// guard decides who may call. There is one rule for all of the API:
//
//   - Of web pages only those that this very address serves may call: the Origin is the Host, and
//     Sec-Fetch-Site says same-origin. The rules of [sqsserver.PageGuard] hold too, against names
//     that were pointed at this machine.
//   - Any process that can connect to a Unix socket may call: the socket's permissions decide.
//   - By TCP a call needs the token. If no token is set, only clients of this machine may call, by
//     a loopback name and through no proxy, and no client may if the queues require signatures.
//   - A request that changes something has to be JSON or a DELETE, which a page of another origin
//     cannot send unasked, and is refused in read-only mode.
type guard struct {
	cfg     *Config
	guesses guesses
	signed  signed

	mu     sync.Mutex
	logged time.Time // when a refusal was logged last
	unsaid int       // refusals since then
}

// check returns why a request is refused, nil if it is not, and logs it.
func (g *guard) check(r *http.Request) error {
	if err := g.judge(r, false); err != nil {
		g.log(r, err)
		return err
	}
	return nil
}

// judge is check without the log. signedIn reports that the client has shown the token before.
func (g *guard) judge(r *http.Request, signedIn bool) *Error {
	if err := g.cfg.Pages.Check(r); err != nil {
		return &Error{Text: err.Error(), Code: "forbidden", status: http.StatusForbidden, logged: true}
	}
	if err := checkPage(r); err != nil {
		return err
	}
	if byUnixSocket(r) {
		return nil
	}
	return g.checkClient(r, signedIn)
}

// checkPage refuses pages of other origins, those of this machine too: any program may have served
// them.
func checkPage(r *http.Request) *Error {
	for _, origin := range r.Header["Origin"] {
		if from, err := url.Parse(origin); err != nil || !strings.EqualFold(from.Host, r.Host) {
			return problem(http.StatusForbidden, "forbidden", "web pages of other origins may not use the admin API, and this one is of %q: call it from a program", origin)
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return problem(http.StatusForbidden, "forbidden", "web pages of other origins may not use the admin API (Sec-Fetch-Site: %s): call it from a program", site)
		}
	}
	return nil
}

func byUnixSocket(r *http.Request) bool {
	_, is := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return is
}

func (g *guard) checkClient(r *http.Request, signedIn bool) *Error {
	switch {
	case g.cfg.Token != "":
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if signedIn || strings.EqualFold(scheme, "Bearer") && g.isToken(token) {
			return nil
		}
		if scheme == signedScheme {
			if ok, refused := g.signed.check(r, g.cfg.Token, token, time.Now()); ok {
				return refused
			}
		}
		if token != "" {
			if err := g.guesses.wrong(r.Context()); err != nil {
				return err
			}
		}
		return problem(http.StatusUnauthorized, "unauthorized", "the admin API of this process asks for its token: send the header Authorization: Bearer TOKEN (commands: --admin-token)")
	case g.cfg.NeedsToken:
		return problem(http.StatusForbidden, "forbidden", "the queues require signatures, which the admin API does not support: start the process with --admin-token")
	default:
		if err := sqsserver.CheckLocal(r, "the admin API"); err != nil {
			return problem(http.StatusForbidden, "forbidden", "%v; or start the process with --admin-token", err)
		}
	}
	return nil
}

// isToken compares digests, which have one length, so that the time that it takes tells nothing.
func (g *guard) isToken(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(g.cfg.Token))
	return g.cfg.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// checkAction returns why a request that changes something is refused; nil if it is not. It has
// passed check.
func (g *guard) checkAction(r *http.Request) error {
	if g.cfg.ReadOnly {
		return problem(http.StatusForbidden, "read-only", "the admin API of this process is read-only: start it without --admin-read-only")
	}
	if r.Method == http.MethodDelete {
		return nil // pages of other origins cannot send it unasked, and it has no content
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "unsupported-media-type", "the Content-Type is %q: send application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

// logEvery limits how often refusals are logged, so that no client can fill the log.
const logEvery = 10 * time.Second

func (g *guard) log(r *http.Request, err *Error) {
	if err.logged {
		return
	}
	g.mu.Lock()
	if now := time.Now(); !g.logged.IsZero() && now.Sub(g.logged) < logEvery {
		g.unsaid++
		g.mu.Unlock()
		return
	}
	unsaid := g.unsaid
	g.logged, g.unsaid = time.Now(), 0
	g.mu.Unlock()
	g.cfg.Logger.Warn("refused a request to the admin API", "error", err, "remote", r.RemoteAddr, "more_refused", unsaid)
}
