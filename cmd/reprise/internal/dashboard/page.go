package dashboard

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// page is a page of the dashboard. Its template, templates/NAME.html, defines "main"; if the page is live, it
// also defines "live", which "main" shows by {{template "stream" .}} and which is sent anew when it changes.
type page struct {
	// path is the pattern of its requests for http.ServeMux, without the method.
	path string
	// template is the name of its template, and nav its name in the navigation; empty: it is not in it.
	template, nav string
	// only reports whether a process has the page. Default: each has it.
	only func(*Config) bool
	// live is how often it is looked whether the page has changed; 0: it does not change.
	live time.Duration
	// charts reports that it has charts: only such pages load what draws them.
	charts bool
	// data returns the title and what the template shows.
	data func(*view) (title string, data any, err error)
	// parts are what the page loads by itself later, by the last part of their paths: templates of these names, with
	// what the funcs return.
	parts map[string]func(*view) (data any, err error)
	// figures are what charts ask for, likewise, as JSON.
	figures map[string]func(*view) (any, error)
	// actions are what forms of the page ask for, by the last part of the path that they post to. Each returns
	// what it has done, in a sentence.
	actions map[string]func(*view) (done string, err error)
}

// pages are those of the dashboard, in the order of the navigation.
var pages = []page{overviewPage, queuePage, messagePage, deadPage, deadQueuePage, workersPage, timelinePage, lambdaPage, playgroundPage, localPage}

// below is the path of something that belongs to the page.
func (p page) below(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(p.path, "{$}"), "/") + "/" + name
}

// view is a request for a page.
type view struct {
	*http.Request
	*Dashboard
	// api calls the admin API for who looks.
	api *admin.Client
	now time.Time
	// led is what an action names in what it has done, and where that is. Default: nothing.
	led link
}

// isStream reports whether a request is for the stream of a page.
func (v *view) isStream() bool { return v.URL.Query().Has("live") }

func (d *Dashboard) view(r *http.Request) *view {
	return &view{Request: r, Dashboard: d, api: d.cfg.API.Inside(r.RemoteAddr), now: time.Now()}
}

// frame is what the layout shows, around the Data of the page.
type frame struct {
	Title    string
	Nav      []navItem
	Version  string
	ReadOnly bool
	Session  bool   // there is one to be ended
	Bare     bool   // without the navigation
	Charts   bool   // there are some
	Stream   string // the URL of the stream of a page that is live
	Now      time.Time
	Data     any
}

type navItem struct {
	Name, URL string
	Current   bool
}

func (d *Dashboard) frame(r *http.Request, p page, title string, data any) frame {
	f := frame{Title: title, Data: data, Now: time.Now(), Session: d.signedIn(r), Charts: p.charts}
	for _, other := range d.pages {
		if other.nav != "" {
			f.Nav = append(f.Nav, navItem{other.nav, urlOf(other.path), other.path == p.path || strings.HasPrefix(p.path, other.path+"/")})
		}
	}
	if p.live > 0 {
		query := r.URL.Query()
		query.Set("live", "1")
		f.Stream = r.URL.EscapedPath() + "?" + query.Encode()
	}
	return f
}

// urlOf is the path of a pattern without wildcards.
func urlOf(pattern string) string {
	if pattern == Home+"{$}" {
		return Home
	}
	return pattern
}

// page serves p, and its stream.
func (d *Dashboard) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.live > 0 && r.URL.Query().Has("live") {
			d.stream(w, r, p)
			return
		}
		title, data, err := p.data(d.view(r))
		if err != nil {
			d.failWith(w, r, err)
			return
		}
		d.render(w, r, http.StatusOK, p.template, d.frame(r, p, title, data))
	})
}

// part serves a part of p that is loaded later.
func (d *Dashboard) part(p page, name string, data func(*view) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := data(d.view(r))
		if err != nil {
			_, problem := explain(err)
			d.renderPart(w, r, http.StatusOK, "problem", "trouble", frame{Data: problem})
			return
		}
		d.renderPart(w, r, http.StatusOK, p.template, name, d.frame(r, p, "", v))
	})
}

// figure serves what a chart asks for.
func (d *Dashboard) figure(data func(*view) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := data(d.view(r))
		if err != nil {
			status, problem := explain(err)
			http.Error(w, problem, status)
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			d.failWith(w, r, err)
			return
		}
		write(w, r, http.StatusOK, "application/json", text)
	})
}

// action serves a form of a page.
func (d *Dashboard) action(act func(*view) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := d.view(r)
		done, err := act(v)
		n := notice{Done: done, Back: Home, Link: v.led}
		status := http.StatusOK
		if err != nil {
			if status, n.Problem = explain(err); status == http.StatusInternalServerError { // it is not the API's, but about the form
				status = http.StatusBadRequest
			}
		}
		if from := r.Header.Get("Referer"); from != "" {
			n.Back = pathOfURL(from)
		}
		if r.Header.Get("Hx-Request") != "" { // it is shown on the page that asks
			w.Header().Set("Hx-Trigger", "acted") // for the parts of the page that show what has changed
			d.renderPart(w, r, http.StatusOK, "done", "notice", frame{Data: n})
			return
		}
		title := "Done"
		if n.Problem != "" {
			title = "Not done"
		}
		d.render(w, r, status, "done", frame{Title: title, Bare: true, Data: n})
	})
}

// notice is what has become of an action: Done or, if that is empty, Problem. Back is the page that asked.
type notice struct {
	Done, Problem, Back string
	// Link has a part of Done as its label. Default: there is none.
	Link link
}

// linked is a text with a link in it, which may be missing.
type linked struct {
	Before string
	Link   link
	After  string
}

// Text is Done around its link.
func (n notice) Text() linked {
	before, after, found := strings.Cut(n.Done, n.Link.Label)
	if !found || n.Link.Label == "" {
		return linked{Before: n.Done}
	}
	return linked{before, n.Link, after}
}

//go:embed templates
var templateFiles embed.FS

// parse returns the templates of pages, by their name: each is the layout with what the page's own file defines.
func parse(pages []page) map[string]*template.Template {
	base := template.Must(template.New("layout.html").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	all := make(map[string]*template.Template)
	names := []string{"signin", "link", "problem", "done"}
	for _, p := range pages {
		names = append(names, p.template)
	}
	for _, name := range names {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return all
}

// render answers with a page.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, status int, name string, f frame) {
	d.renderPart(w, r, status, name, "layout.html", f)
}

// renderPart answers with a part of a page. It is whole before it is sent, so that one that fails is not sent
// half.
func (d *Dashboard) renderPart(w http.ResponseWriter, r *http.Request, status int, name, part string, f frame) {
	text, err := d.text(name, part, f)
	if err != nil {
		d.cfg.Logger.Error("a page of the dashboard could not be rendered", "page", name, "error", err)
		http.Error(w, "this page could not be rendered: the log has the error", http.StatusInternalServerError)
		return
	}
	write(w, r, status, "text/html; charset=utf-8", text)
}

func (d *Dashboard) text(name, part string, f frame) ([]byte, error) {
	f.Version, f.ReadOnly = d.cfg.Version, d.cfg.ReadOnly
	if f.Now.IsZero() {
		f.Now = time.Now()
	}
	var b bytes.Buffer
	err := d.templates[name].ExecuteTemplate(&b, part, f)
	return b.Bytes(), err
}

// fail answers with a page that says what is wrong.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, status int, problem string) {
	d.render(w, r, status, "problem", frame{Title: "This page cannot be shown", Bare: true, Data: problem})
}

func (d *Dashboard) failWith(w http.ResponseWriter, r *http.Request, err error) {
	status, problem := explain(err)
	d.fail(w, r, status, problem)
}
