package dashboard

import (
	"net/http"
	"strings"
	"time"
)

const signInPath = Path + "sign-in"

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
	if err := d.cfg.API.SignIn(r, r.PostFormValue("token")); err != nil {
		problem := "This is not the token of this process. It is in the place that --admin-token names."
		if !err.Unauthorized() {
			problem = "This is not the token of this process, and many wrong ones are tried at the moment. The right one is taken at any time."
		}
		w.Header().Set("Connection", "close")
		refuse(err.Status(), problem)
		return
	}
	port := portOf(r)
	d.setCookie(w, r, d.sessions.begin(port, time.Now()), int(sessionLife.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// signOut ends the session in the process too: whoever else has the cookie cannot use it any more.
func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) {
	port := portOf(r)
	for _, cookie := range r.CookiesNamed(cookiePrefix + port) {
		d.sessions.finish(cookie.Value, port)
	}
	d.setCookie(w, r, "", -1)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}

// setCookie sets the cookie of a session, for a number of seconds; a negative one removes it.
func (*Dashboard) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookiePrefix + portOf(r), Value: value, Path: Home, MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}
