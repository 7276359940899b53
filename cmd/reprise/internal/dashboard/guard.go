package dashboard

import (
	"net/http"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// The rule of the admin API decides who may see the dashboard. Two things differ:
//
//   - The token is asked for once, in a form, and a session cookie stands for it from then on.
//   - A link on another page, in a chat or a runbook, leads to a page without content, whose only link leads on:
//     the API refuses all requests that come from other sites.

// admit reports whether a request goes on; if not, it has been answered.
func (d *Dashboard) admit(w http.ResponseWriter, r *http.Request) bool {
	err := d.cfg.API.Check(r, d.signedIn(r))
	switch {
	case err != nil && err.Unauthorized():
		if r.URL.Path == signInPath || strings.HasPrefix(r.URL.Path, Path+"assets/") { // the form and what it needs
			err = nil
			break
		}
		d.askToSignIn(w, r)
		return false
	case err != nil:
		d.fail(w, r, err.Status(), err.Text)
		return false
	}
	// Browsers say in each POST which page it comes from. Programs that do not are to use the API.
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get("Origin") == "" {
		d.fail(w, r, http.StatusForbidden, "A request without the header Origin is no browser's: programs use the admin API, "+admin.Path+".")
		return false
	}
	return true
}

// isLink reports whether a request comes of a link on a page of another origin, which a browser shows as a page
// of its own.
func isLink(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Method == http.MethodGet && (site == "cross-site" || site == "same-site") && len(r.Header["Sec-Fetch-Site"]) == 1 &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Origin") == ""
}

// showLink shows where a link leads. The page is the same for everybody, also for a page whose name was pointed
// at this machine.
func (d *Dashboard) showLink(w http.ResponseWriter, r *http.Request) {
	to := r.URL.RequestURI()
	if r.URL.Path != Home && !strings.HasPrefix(r.URL.Path, Path) {
		to = Home
	}
	d.render(w, r, http.StatusOK, "link", frame{Title: "Open the dashboard", Bare: true, Data: to})
}
