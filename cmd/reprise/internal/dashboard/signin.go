package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	signInPath = Path + "sign-in"
	// cookieName has no prefix __Host-, which would need HTTPS.
	cookieName = "reprise-session"
	// sessionLife is a shift.
	sessionLife = 12 * time.Hour
)

// signedIn reports whether the request has a session that has not ended: the time of its end, with a code
// that only who has the token can compute. The process remembers none, so sessions outlive a restart, and
// end when the token changes.
func (d *Dashboard) signedIn(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(text) != sessionHead+sha256.Size || !hmac.Equal(text[sessionHead:], d.sign(text[:sessionHead])) {
		return false
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(text)), 0) //nolint:gosec // G115: it is ours
	return time.Now().Before(end)
}

// sessionHead is the length of what a session has before its code: its end, and 16 random bytes.
const sessionHead = 8 + 16

func (d *Dashboard) newSession(now time.Time) string {
	var head [sessionHead]byte
	binary.BigEndian.PutUint64(head[:], uint64(now.Add(sessionLife).Unix())) //nolint:gosec // G115: after 1970
	_, _ = rand.Read(head[8:])                                               // it never fails
	return base64.RawURLEncoding.EncodeToString(slices.Concat(head[:], d.sign(head[:])))
}

func (d *Dashboard) sign(head []byte) []byte {
	code := hmac.New(sha256.New, d.session)
	code.Write(head)
	return code.Sum(nil)
}

// signInForm is the content of the page that asks for the token.
type signInForm struct {
	Next    string // where it leads
	Problem string
}

// askToSignIn answers a request that needs the token.
func (d *Dashboard) askToSignIn(w http.ResponseWriter, r *http.Request) {
	next := Home
	if r.Method == http.MethodGet && r.Header.Get("Hx-Request") == "" {
		next = r.URL.RequestURI()
	}
	d.render(w, r, http.StatusUnauthorized, "signin", frame{Title: "Sign in", Bare: true, Data: signInForm{Next: next}})
}

func (d *Dashboard) showSignIn(w http.ResponseWriter, r *http.Request) {
	d.render(w, r, http.StatusOK, "signin", frame{Title: "Sign in", Bare: true, Data: signInForm{Next: Home}})
}

func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	next := r.PostFormValue("next")
	if next != Home && !strings.HasPrefix(next, Path) && !strings.HasPrefix(next, Home+"?") {
		next = Home // never to another site
	}
	refuse := func(status int, problem string) {
		d.render(w, r, status, "signin", frame{Title: "Sign in", Bare: true, Data: signInForm{next, problem}})
	}
	if wait := d.logins.take(r.RemoteAddr, time.Now()); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
		refuse(http.StatusTooManyRequests, fmt.Sprintf("Too many attempts from this address: try again in %d seconds.", int(wait.Seconds())+1))
		return
	}
	if err := d.cfg.API.SignIn(r, r.PostFormValue("token")); err != nil {
		refuse(http.StatusUnauthorized, "This is not the token of this process. It is in the place that --admin-token names.")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: d.newSession(time.Now()), Path: Home, MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: Home, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}

// attempts bounds how often an address may try tokens.
type attempts struct {
	mu   sync.Mutex
	from map[netip.Prefix]*attempt
}

type attempt struct {
	left int
	last time.Time
}

const (
	// maxAttempts may follow each other at once, then one every attemptEvery.
	maxAttempts  = 10
	attemptEvery = 10 * time.Second
	// maxAddresses bounds the memory. Above it all other addresses share one allowance.
	maxAddresses = 1000
)

// take returns how long an address has to wait before its next attempt; 0: this one counts.
func (a *attempts) take(remote string, now time.Time) time.Duration {
	from := networkOf(remote)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.from == nil {
		a.from = make(map[netip.Prefix]*attempt)
	}
	if a.from[from] == nil && len(a.from) >= maxAddresses {
		for other, then := range a.from { // those whose allowance is whole again
			if now.Sub(then.last) >= maxAttempts*attemptEvery {
				delete(a.from, other)
			}
		}
		if len(a.from) >= maxAddresses {
			from = netip.Prefix{}
		}
	}
	of := a.from[from]
	if of == nil {
		of = &attempt{left: maxAttempts, last: now}
		a.from[from] = of
	}
	if back := int(now.Sub(of.last) / attemptEvery); back > 0 {
		of.left, of.last = min(maxAttempts, of.left+back), of.last.Add(time.Duration(back)*attemptEvery)
	}
	if of.left == 0 {
		return attemptEvery - now.Sub(of.last)
	}
	of.left--
	return 0
}

// networkOf is the address of a client, or of IPv6 the network, of which one client has all addresses.
func networkOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{} // a Unix socket
	}
	bits := 32
	if addr := at.Addr().Unmap(); !addr.Is4() {
		bits = 64
	}
	prefix, _ := at.Addr().Unmap().WithZone("").Prefix(bits) // it is valid
	return prefix
}
