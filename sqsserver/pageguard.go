package sqsserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// PageGuard distinguishes the requests of programs from those that a web page makes in a
// browser. A page that a developer visits reaches every address of the developer's machine,
// so every service that requires no signature needs a PageGuard:
//
//   - Origin, which browsers send with every POST and with every request whose answer a
//     script may read, must be that of a page of this machine (http or https; localhost, a
//     name below .localhost, or a loopback address; any port) or one of AllowedOrigins.
//     Anything else is refused: "null", an empty line, two lines.
//   - Sec-Fetch-Site without an Origin must not be cross-site. same-site is permitted only
//     on a loopback name, where the other page is one of this machine too. none (the user
//     typed the address) and same-origin are permitted.
//   - The Host of a request that arrived on a loopback address must be a loopback name, or
//     the host of one of AllowedOrigins: any other name may be that of a page whose owner
//     pointed it here (DNS rebinding). A request that arrived on another address may have
//     any Host, such as the name of a service in docker-compose.
//
// With a PageGuardConfig.Host the rule is narrower: the Host must be exactly that one,
// and there must be no Origin and no Sec-Fetch-Site at all.
//
// Programs send none of these headers but Host. A PageGuard may be used by many
// goroutines at once.
type PageGuard struct {
	cfg     PageGuardConfig
	origins []pageOrigin // AllowedOrigins

	mu       sync.Mutex
	reported time.Time // the last call of OnRefused
	unsaid   int       // refusals since then
}

// PageGuardConfig are the settings of a PageGuard. The zero value permits programs and
// the pages of this machine.
type PageGuardConfig struct {
	// AllowedOrigins are pages of other machines that are permitted, in the form
	// scheme://host[:port]. Their hosts are permitted as Host too. Default: none.
	AllowedOrigins []string

	// Host is the address, as host:port, that was given to the only program that may call. Default:
	// the rule for servers, which many programs call.
	Host string

	// OnRefused is called when a request is refused, at most once in ten seconds, so that
	// a page cannot fill a log; unreported is the number of earlier refusals for which it was not
	// called. err is that of Check. Default: none.
	OnRefused func(r *http.Request, err error, unreported int)
}

// refusalInterval is the least time between two calls of OnRefused.
const refusalInterval = 10 * time.Second

// NewPageGuard fails if one of the AllowedOrigins is not an origin.
func NewPageGuard(cfg PageGuardConfig) (*PageGuard, error) {
	g := &PageGuard{cfg: cfg}
	for _, text := range cfg.AllowedOrigins {
		origin, err := parseOrigin(text)
		if err != nil {
			return nil, err
		}
		g.origins = append(g.origins, origin)
	}
	return g, nil
}

// CheckOrigin returns an error if text is not an origin, and so cannot be one of the
// AllowedOrigins.
func CheckOrigin(text string) error {
	_, err := parseOrigin(text)
	return err
}

// Check returns why a request is refused, nil if it is permitted. The error names the
// origin or the host, and the remedy; its answer has status 403.
func (g *PageGuard) Check(r *http.Request) error { return g.report(r, g.judge(r)) }

// checkAction is Check for requests whose GETs change something too.
func (g *PageGuard) checkAction(r *http.Request) error {
	err := g.judge(r)
	if err == nil {
		err = g.judgeGet(r)
	}
	return g.report(r, err)
}

// Handler answers requests that are refused with status 403 and the reason as plain text,
// and passes all others on to next. It adds no CORS headers: pages of other origins cannot
// read what next answers.
func (g *PageGuard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(r); err != nil {
			writePageRefusal(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writePageRefusal(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, err.Error(), http.StatusForbidden)
}

// AllowOrigin adds to a reply the headers that let the requesting page read it, after Check has
// permitted the request. The answer to a request of method OPTIONS has only these headers. Requests
// without an Origin get none.
func (g *PageGuard) AllowOrigin(h http.Header, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Add("Vary", "Origin")
		allowOrigin(h, r, origin)
	}
}

// allowOrigin lets the pages of an origin, "*" for all, use the server. The browser sends no
// cookies, so a page has no rights beyond its own headers.
func allowOrigin(h http.Header, r *http.Request, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "authorization, content-type, x-amz-date, x-amz-content-sha256, "+
		"x-amz-security-token, x-amz-target, x-amzn-query-mode, x-amz-user-agent, amz-sdk-invocation-id, amz-sdk-request, "+
		"x-amz-invocation-type, x-amz-log-type, x-amz-client-context")
	h.Set("Access-Control-Expose-Headers", "x-amzn-requestid, x-amzn-query-error, "+
		"x-amzn-errortype, x-amz-function-error, x-amz-log-result, x-amz-executed-version")
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		// Asked by browsers before a page of a public address may call a private one.
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// report passes a refusal to OnRefused, at most once per refusalInterval.
func (g *PageGuard) report(r *http.Request, err error) error {
	if err == nil || g.cfg.OnRefused == nil {
		return err
	}
	g.mu.Lock()
	if now := time.Now(); g.reported.IsZero() || now.Sub(g.reported) >= refusalInterval {
		unsaid := g.unsaid
		g.reported, g.unsaid = now, 0
		g.mu.Unlock()
		g.cfg.OnRefused(r, err, unsaid)
		return err
	}
	g.unsaid++
	g.mu.Unlock()
	return err
}

// judge applies the rule and returns the refusal, or nil.
func (g *PageGuard) judge(r *http.Request) error {
	if g.cfg.Host != "" {
		return judgeProgram(r, g.cfg.Host)
	}
	if arrivedOnLoopback(r) && r.Host != "" && !isLoopbackHost(r.Host) && !g.allowsHost(r.Host) {
		return fmt.Errorf("the server is not to be called by the name %s, which the owner of a web page could have pointed at this machine: "+
			"use localhost or 127.0.0.1%s", quoted(r.Host), remedy("http://"+r.Host))
	}
	site, fromBrowser := r.Header["Sec-Fetch-Site"]
	if fromBrowser && (len(site) != 1 || !slices.Contains([]string{"none", "same-origin", "same-site", "cross-site"}, site[0])) {
		return fmt.Errorf("the header Sec-Fetch-Site is %s, a value that no browser sends: leave it out", quoted(strings.Join(site, ", ")))
	}
	origins, fromPage := r.Header["Origin"]
	if fromPage {
		return g.judgeOrigin(origins)
	}
	if fromBrowser && (site[0] == "cross-site" || site[0] == "same-site" && !isLoopbackHost(r.Host)) {
		return fmt.Errorf("a web page of another origin made this request, and it does not say which (Sec-Fetch-Site: %s): "+
			"only pages of this machine, and those of --allow-origin, may use the server, by fetch in the mode cors; "+
			"to look at this page, type its address into the browser", site[0])
	}
	return nil
}

// CheckLocal returns why a request does not come straight from a client of this machine, which
// what, a path or a name, requires; nil if it does. The client's address and the Host have to be
// loopback ones, and no header may tell of a proxy. Web pages of this machine pass: see
// [PageGuard].
func CheckLocal(r *http.Request, what string) error {
	if !isLoopbackAddrPort(r.RemoteAddr) {
		return fmt.Errorf("%s is for clients on the server's own machine, and %s is not", what, r.RemoteAddr)
	}
	if !isLoopbackHost(r.Host) {
		return fmt.Errorf("%s is not to be called by the name %s, which web pages can point here: use localhost or 127.0.0.1", what, quoted(r.Host))
	}
	for _, name := range proxyHeaders {
		if _, present := r.Header[name]; present {
			return fmt.Errorf("%s is not for requests that a proxy passes on, as the header %s says: call the server itself", what, name)
		}
	}
	return nil
}

// proxyHeaders are headers that proxies add. Their presence counts, not their value: a proxy that
// does not know its client may leave them empty. Not all proxies add one.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Client-Ip", "X-Real-Ip", "Via"}

// judgeProgram permits the one program to which the address host was given.
func judgeProgram(r *http.Request, host string) error {
	_, fromPage := r.Header["Origin"]
	_, fromBrowser := r.Header["Sec-Fetch-Site"]
	switch {
	case r.Host != host:
		return fmt.Errorf("the Host is %s, and only the program that was given the address %s may call: use that", quoted(r.Host), host)
	case fromPage:
		return fmt.Errorf("the web page of origin %s may not call: this address is only for the program that it was given to", quoted(strings.Join(r.Header["Origin"], ", ")))
	case fromBrowser:
		return errors.New("a browser may not call: this address is only for the program that it was given to")
	}
	return nil
}

func (g *PageGuard) judgeOrigin(origins []string) error {
	const who = "only pages of this machine (http://localhost, http://127.0.0.1) may use the server"
	switch {
	case len(origins) != 1:
		return fmt.Errorf("the request has %d headers Origin: browsers send one", len(origins))
	case origins[0] == "":
		return errors.New("the header Origin is empty: leave it out, or name the origin of the page")
	case origins[0] == "null":
		return errors.New(`a web page without an origin ("null": a file, a sandboxed frame, a redirect) may not use the server: ` +
			who + ", so serve it over HTTP from there or from an origin of --allow-origin")
	}
	origin, err := parseOrigin(origins[0])
	if err != nil {
		return fmt.Errorf("the header Origin is %s: %s", quoted(origins[0]), who)
	}
	if origin.local() || slices.Contains(g.origins, origin) {
		return nil
	}
	return fmt.Errorf("the web page of origin %s may not use the server: %s%s", quoted(origins[0]), who, remedy(origins[0]))
}

// judgeGet refuses GETs that a page may have made although they have no Origin: browsers
// send neither Origin nor Sec-Fetch-Site when the page and the server have plain HTTP
// addresses beyond loopback. A page cannot change the browser's User-Agent in a request to another
// origin, and nobody can register an address or a name without a dot.
func (g *PageGuard) judgeGet(r *http.Request) error {
	_, fromPage := r.Header["Origin"]
	_, fromBrowser := r.Header["Sec-Fetch-Site"]
	if fromPage || fromBrowser || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") {
		return errors.New("a browser sent this GET without saying for which web page: send it by POST")
	}
	local := localAddr(r)
	if local == nil || r.Host == "" || isLoopbackHost(r.Host) || g.allowsHost(r.Host) {
		return nil
	}
	host, _, _ := splitHost(r.Host)
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ".") {
		return fmt.Errorf("a GET to the name %s could be that of a web page, whose owner pointed it here: send it by POST%s", quoted(r.Host), remedy("http://"+r.Host))
	}
	return nil
}

// checkLink refuses a GET that a browser makes because a link was opened, in a chat or a document too, or because a page
// shows an image: nobody may have meant what the address says. Requests of scripts and programs pass.
func checkLink(r *http.Request) error {
	_, fromBrowser := r.Header["Sec-Fetch-Site"]
	if !fromBrowser || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	switch mode := r.Header["Sec-Fetch-Mode"]; {
	case len(mode) == 1 && (mode[0] == "cors" || mode[0] == "same-origin"):
		return nil
	default:
		return fmt.Errorf("a browser sent this GET for a link or an image (Sec-Fetch-Mode: %s), and it would change something: send it by POST, or from a program",
			quoted(strings.Join(mode, ", ")))
	}
}

// remedy returns how to permit an origin, "" if it is not one. The text is safe to paste
// into a shell.
func remedy(origin string) string {
	if parsed, err := parseOrigin(origin); err == nil {
		return "; to permit it, start the server with --allow-origin " + parsed.String() + " (in Go: Config.AllowedOrigins)"
	}
	return ""
}

// quoted quotes a part of a request for a message: logs and terminals get at most 128 bytes
// of it, and no control characters.
func quoted(text string) string {
	const limit = 128
	if len(text) > limit {
		return fmt.Sprintf("%+q...", text[:limit])
	}
	return fmt.Sprintf("%+q", text)
}

// allowsHost reports whether a Host is that of one of the AllowedOrigins.
func (g *PageGuard) allowsHost(hostport string) bool {
	host, port, ok := splitHost(hostport)
	return ok && slices.ContainsFunc(g.origins, func(o pageOrigin) bool {
		return o.host == host && (port == o.port || port == "" && (o.port == "80" || o.port == "443"))
	})
}

func localAddr(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}

// arrivedOnLoopback reports whether a request came over a loopback address. A request that came
// over no network did not.
func arrivedOnLoopback(r *http.Request) bool { return IsLoopbackAddr(localAddr(r)) }

// splitHost splits a Host, the name in lower case; an IPv6 address without its brackets.
func splitHost(hostport string) (host, port string, ok bool) {
	u, err := url.Parse("//" + hostport)
	if err != nil || u.Host != hostport || u.User != nil || strings.HasSuffix(hostport, ":") {
		return "", "", false
	}
	host = strings.ToLower(u.Hostname())
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:", c)
	}
	if host == "" || strings.ContainsFunc(host, func(c rune) bool { return !plain(c) }) {
		return "", "", false
	}
	return host, u.Port(), true
}

// pageOrigin is the origin of a web page.
type pageOrigin struct{ scheme, host, port string }

// parseOrigin reads an origin as browsers send it.
func parseOrigin(text string) (pageOrigin, error) {
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	letters := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.'
	}
	host, port, ok := splitHost(rest)
	if !found || scheme == "" || strings.ContainsFunc(scheme, func(c rune) bool { return !letters(c) }) || !ok {
		return pageOrigin{}, fmt.Errorf("%s is not the origin of a web page: write it as scheme://host or scheme://host:port, like https://app.example.com", quoted(text))
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return pageOrigin{scheme, host, port}, nil
}

// local reports whether the page is one of this machine.
func (o pageOrigin) local() bool {
	return (o.scheme == "http" || o.scheme == "https") && IsLoopbackName(o.host)
}

func (o pageOrigin) String() string {
	host := o.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.port != "" && (o.scheme != "http" || o.port != "80") && (o.scheme != "https" || o.port != "443") {
		host += ":" + o.port
	}
	return o.scheme + "://" + host
}
