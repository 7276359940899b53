package sqsserver_test

// Holds off: a web page that a developer visits, on any site. It may have the browser send
// what HTML and fetch can send without asking (forms, images, frames, simple requests),
// preflights before anything else, and it may point its own name at the developer's
// machine. It may not make or drop the headers that the browser adds: Origin,
// Sec-Fetch-Site, Host.

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// arriving makes a request that arrived at the address local; empty: over no network. A
// header may have several lines, and empty ones.
func arriving(method, target, local string, header map[string][]string) *http.Request {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = "localhost:9324"
	r.RemoteAddr = "127.0.0.1:50000"
	for name, values := range header {
		if name == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[name] = values
	}
	if local != "" {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
	}
	return r
}

const (
	loopback  = "127.0.0.1:9324"
	container = "172.18.0.2:9324"
)

// pageRule is the rule, as requests and whether they are permitted. Allowed are
// https://app.example and http://queues.lan:9324.
var pageRule = []struct {
	name   string
	local  string
	header map[string][]string
	reason string // a part of it; empty: permitted
}{
	{"a program", loopback, nil, ""},
	{"a program, by IPv6", "[::1]:9324", map[string][]string{"Host": {"[::1]:9324"}}, ""},
	{"a program, by a name below localhost", loopback, map[string][]string{"Host": {"sqs.us-east-1.localhost:9324"}}, ""},
	{"a program, by a name with a final dot", loopback, map[string][]string{"Host": {"LocalHost.:9324"}}, ""},
	{"a program, by another loopback address", loopback, map[string][]string{"Host": {"127.9.9.9"}}, ""},
	{"a program without a Host", loopback, map[string][]string{"Host": {""}}, ""},
	{"a program in docker-compose", container, map[string][]string{"Host": {"sqs:9324"}}, ""},
	{"a program in a cluster", container, map[string][]string{"Host": {"sqs.default.svc.cluster.local:9324"}}, ""},
	{"a program by the address", container, map[string][]string{"Host": {"172.18.0.2:9324"}}, ""},
	{"a program by an allowed name", loopback, map[string][]string{"Host": {"queues.lan:9324"}}, ""},
	{"a program by the allowed name of a proxy", loopback, map[string][]string{"Host": {"app.example"}}, ""},
	{"a page of this machine", loopback, map[string][]string{"Origin": {"http://localhost:3000"}}, ""},
	{"a page of this machine, another site", loopback, map[string][]string{"Host": {"127.0.0.1:9324"}, "Origin": {"http://localhost:3000"}, "Sec-Fetch-Site": {"cross-site"}}, ""},
	{"a page of this machine, HTTPS", loopback, map[string][]string{"Origin": {"https://[::1]"}}, ""},
	{"a page of this machine, named", loopback, map[string][]string{"Origin": {"http://shop.localhost:8080"}}, ""},
	{"a page of the server itself", loopback, map[string][]string{"Sec-Fetch-Site": {"same-origin"}}, ""},
	{"the address bar", loopback, map[string][]string{"Sec-Fetch-Site": {"none"}}, ""},
	{"an image in a page of this machine", loopback, map[string][]string{"Sec-Fetch-Site": {"same-site"}}, ""},
	{"an allowed page", loopback, map[string][]string{"Origin": {"https://app.example"}, "Sec-Fetch-Site": {"cross-site"}}, ""},
	{"an allowed page in capitals, with its port", loopback, map[string][]string{"Origin": {"HTTPS://App.Example:443"}}, ""},

	{"a page", loopback, map[string][]string{"Origin": {"https://evil.example"}}, `origin "https://evil.example" may not use`},
	{"a page, to a container", container, map[string][]string{"Host": {"sqs:9324"}, "Origin": {"http://evil.example"}}, "--allow-origin http://evil.example "},
	{"a page that looks local", loopback, map[string][]string{"Origin": {"http://localhost.evil.example"}}, "--allow-origin"},
	{"a page that looks allowed", loopback, map[string][]string{"Origin": {"https://app.example.evil.example"}}, "--allow-origin"},
	{"an allowed page's other port", loopback, map[string][]string{"Origin": {"https://app.example:8443"}}, "--allow-origin"},
	{"an allowed page's other scheme", loopback, map[string][]string{"Origin": {"http://app.example"}}, "--allow-origin"},
	{"a frame, a file, a redirect", loopback, map[string][]string{"Origin": {"null"}}, `"null"`},
	{"an empty Origin", loopback, map[string][]string{"Origin": {""}}, "Origin is empty"},
	{"two origins", loopback, map[string][]string{"Origin": {"http://localhost:3000", "https://evil.example"}}, "2 headers Origin"},
	{"two origins in a line", loopback, map[string][]string{"Origin": {"http://localhost, https://evil.example"}}, "Origin is"},
	{"an origin with a user", loopback, map[string][]string{"Origin": {"http://localhost:80@evil.example"}}, "Origin is"},
	{"an origin with a path", loopback, map[string][]string{"Origin": {"http://localhost/"}}, "Origin is"},
	{"another scheme on localhost", loopback, map[string][]string{"Origin": {"evil://localhost"}}, "may not use"},
	{"an address that is no loopback", loopback, map[string][]string{"Origin": {"http://192.168.1.7"}}, "may not use"},
	{"what would break a log", loopback, map[string][]string{"Origin": {"http://x\u009b\x1b[2J"}}, `Origin is "http://x\u009b\x1b[2J"`},
	{"an image", loopback, map[string][]string{"Sec-Fetch-Site": {"cross-site"}}, "Sec-Fetch-Site: cross-site"},
	{"an image on a sibling", container, map[string][]string{"Host": {"sqs.corp.example"}, "Sec-Fetch-Site": {"same-site"}}, "Sec-Fetch-Site: same-site"},
	{"an unknown site", loopback, map[string][]string{"Sec-Fetch-Site": {"friendly"}}, "no browser sends"},
	{"an empty site", loopback, map[string][]string{"Sec-Fetch-Site": {""}}, "no browser sends"},
	{"two sites", loopback, map[string][]string{"Sec-Fetch-Site": {"none", "cross-site"}}, "no browser sends"},
	{"a rebound name", loopback, map[string][]string{"Host": {"evil.example:9324"}}, `by the name "evil.example:9324"`},
	{"a rebound name, same origin", loopback, map[string][]string{"Host": {"evil.example:9324"}, "Origin": {"http://evil.example:9324"}}, "--allow-origin http://evil.example:9324 "},
	{"a rebound name, as if local", loopback, map[string][]string{"Host": {"evil.example:9324"}, "Origin": {"http://localhost"}}, "localhost or 127.0.0.1"},
	{"a rebound name by IPv6", "[::1]:9324", map[string][]string{"Host": {"evil.example"}}, "by the name"},
	{"a rebound name by IPv4 in IPv6", "[::ffff:127.0.0.1]:9324", map[string][]string{"Host": {"evil.example"}}, "by the name"},
	{"a rebound name, to a container", container, map[string][]string{"Host": {"evil.example"}, "Origin": {"http://evil.example"}}, "may not use"},
	{"a name that looks local", loopback, map[string][]string{"Host": {"localhost.evil.example"}}, "by the name"},
	{"an address with a name behind", loopback, map[string][]string{"Host": {"127.0.0.1.evil.example:9324"}}, "by the name"},
	{"an address of all", loopback, map[string][]string{"Host": {"0.0.0.0:9324"}}, "by the name"},
	{"an allowed name's other port", loopback, map[string][]string{"Host": {"queues.lan:9325"}}, "by the name"},
	{"a name that is none", loopback, map[string][]string{"Host": {"localhost:80@evil.example"}}, "by the name"},
}

var allowedPages = []string{"https://app.example", "http://queues.lan:9324"}

// TestAttackPageRule checks the rule, and that every part of the server that needs no
// signature applies it. A refusal gives the reason in the form of the protocol, and no page
// may read it.
func TestAttackPageRule(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{AllowedOrigins: allowedPages, Logger: withoutOutput()})
	defer server.Close()
	keyed := sqsserver.New(sqsserver.Config{AllowedOrigins: allowedPages, Logger: withoutOutput(),
		Credentials: []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}})
	defer keyed.Close()
	reached := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	json10 := map[string]string{"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
	for _, test := range pageRule {
		t.Run(test.name, func(t *testing.T) {
			if err := server.Pages().Check(arriving("GET", "/", test.local, test.header)); (err == nil) != (test.reason == "") ||
				err != nil && !strings.Contains(err.Error(), test.reason) {
				t.Errorf("Check = %v, want %q", err, test.reason)
			}
			for _, surface := range []struct {
				name, method, target, contentType, mark string
				handler                                 http.Handler
				header                                  map[string]string
			}{
				{"JSON", "POST", "/", "application/x-amz-json-1.0", "AccessDeniedException", server, json10},
				{"Query", "POST", "/?Action=ListQueues", "text/xml", "<Code>AccessDenied</Code>", server, nil},
				{"a preflight", "OPTIONS", "/", "text/xml", "AccessDenied", server, nil},
				{"the landing page", "GET", "/", "text/plain; charset=utf-8", "", server, nil},
				{"the landing page of a server with keys", "GET", "/", "text/plain; charset=utf-8", "", keyed, nil},
				{"what else is served", "GET", "/health", "text/plain; charset=utf-8", "", server.Pages().Handler(reached), nil},
			} {
				r := arriving(surface.method, surface.target, test.local, test.header)
				if len(surface.header) > 0 {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
				}
				for name, value := range surface.header {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				surface.handler.ServeHTTP(w, r)
				got := w.Result().Header
				if test.reason == "" {
					if w.Code != 200 {
						t.Errorf("%s: %d %s", surface.name, w.Code, w.Body)
					}
					if origin := r.Header.Get("Origin"); surface.handler == server && surface.name != "the landing page" && got.Get("Access-Control-Allow-Origin") != origin ||
						origin != "" && got.Get("Access-Control-Allow-Origin") != "" && got.Get("Vary") != "Origin" {
						t.Errorf("%s: the header is %v; want the origin %q to be allowed, alone", surface.name, got, origin)
					}
					continue
				}
				if w.Code != 403 || got.Get("Content-Type") != surface.contentType || !strings.Contains(w.Body.String(), surface.mark) || len(got.Values("Access-Control-Allow-Origin")) > 0 {
					t.Errorf("%s: %d %v %s", surface.name, w.Code, got, w.Body)
				}
			}
		})
	}
}

// TestAttackPageByGet: a GET to a plain HTTP address beyond loopback says nothing of the
// page that made it, so a browser's is refused, and so is one to a name that the owner of
// a page can have. Programs send POST, or GET by an address or a bare name.
func TestAttackPageByGet(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{AllowedOrigins: allowedPages, Logger: withoutOutput()})
	defer server.Close()
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, test := range []struct {
		name, method, local, host, agent, site string
		status                                 int
	}{
		{"an image", "GET", container, "172.18.0.2:9324", firefox, "", 403},
		{"an image, by a bare name", "HEAD", container, "sqs:9324", firefox, "", 403},
		{"an image of an old browser", "GET", loopback, "localhost:9324", firefox, "", 403},
		{"a rebound name", "GET", container, "evil.example:9324", "", "", 403},
		{"the address bar", "GET", loopback, "localhost:9324", firefox, "none", 200},
		{"curl", "GET", loopback, "localhost:9324", "curl/8.0", "", 200},
		{"curl in docker-compose", "GET", container, "sqs:9324", "curl/8.0", "", 200},
		{"curl by the address", "GET", container, "172.18.0.2:9324", "curl/8.0", "", 200},
		{"curl by an allowed name", "GET", container, "queues.lan:9324", "curl/8.0", "", 200},
		{"an SDK by a long name", "POST", container, "sqs.corp.example:9324", "aws-sdk-go-v2/1.0", "", 200},
	} {
		header := map[string][]string{"Host": {test.host}, "User-Agent": {test.agent}}
		if test.site != "" {
			header["Sec-Fetch-Site"] = []string{test.site}
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, arriving(test.method, "/?Action=ListQueues", test.local, header))
		if w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
}

// TestAttackPageOfAServerWithKeys: where a signature is asked for, the origin does not
// matter, since a page that can sign has the key; no page can without.
func TestAttackPageOfAServerWithKeys(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{Logger: withoutOutput(), Credentials: []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}})
	defer server.Close()
	for method, status := range map[string]int{"OPTIONS": 200, "POST": 403, "GET": 403} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, arriving(method, "/?Action=ListQueues", loopback, map[string][]string{"Origin": {"https://app.example"}}))
		got := w.Result().Header
		if w.Code != status || got.Get("Access-Control-Allow-Origin") != "*" || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", method, w.Code, got)
		}
	}
}

// TestAttackPagePrivateNetwork: a page of a public address that is allowed may call a private
// one; one that is not may not even ask.
func TestAttackPagePrivateNetwork(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{AllowedOrigins: allowedPages, Logger: withoutOutput()})
	defer server.Close()
	for origin, want := range map[string]string{"https://app.example": "true", "https://evil.example": ""} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, arriving("OPTIONS", "/", loopback, map[string][]string{
			"Origin": {origin}, "Access-Control-Request-Private-Network": {"true"}, "Access-Control-Request-Method": {"POST"}}))
		if got := w.Result().Header.Get("Access-Control-Allow-Private-Network"); got != want {
			t.Errorf("%s: %q, want %q", origin, got, want)
		}
	}
}

// TestAttackPageProgramOnly: a handler that is for one program accepts only requests to its
// exact address, and none of a browser.
func TestAttackPageProgramOnly(t *testing.T) {
	guard, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{Host: "127.0.0.1:4000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		header    map[string][]string
		permitted bool
	}{
		{map[string][]string{"Host": {"127.0.0.1:4000"}}, true},
		{map[string][]string{"Host": {"localhost:4000"}}, false},
		{map[string][]string{"Host": {"127.0.0.1:4001"}}, false},
		{map[string][]string{"Host": {"127.0.0.1"}}, false},
		{map[string][]string{"Host": {""}}, false},
		{map[string][]string{"Host": {"evil.com"}}, false},
		{map[string][]string{"Host": {"127.0.0.1:4000"}, "Origin": {"http://127.0.0.1:4000"}}, false},
		{map[string][]string{"Host": {"127.0.0.1:4000"}, "Origin": {""}}, false},
		{map[string][]string{"Host": {"127.0.0.1:4000"}, "Sec-Fetch-Site": {"none"}}, false},
	} {
		if err := guard.Check(arriving("GET", "/", "127.0.0.1:4000", test.header)); (err == nil) != test.permitted {
			t.Errorf("%v: %v", test.header, err)
		}
	}
}

// TestAttackPageAdmin: a header of a page or a proxy is enough for a refusal, with any value.
func TestAttackPageAdmin(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{AllowedOrigins: allowedPages, Logger: withoutOutput()})
	defer server.Close()
	type header = map[string][]string
	for _, test := range []struct {
		header header
		status int
	}{
		{header{}, 200},
		{header{"Host": {"sqs.localhost:9324"}}, 200},
		{header{"Sec-Fetch-Site": {"none"}}, 200},
		{header{"Host": {"queues.lan:9324"}}, 403},
		{header{"Host": {""}}, 403},
		{header{"Origin": {"http://localhost:3000"}}, 403},
		{header{"Origin": {"https://app.example"}}, 403},
		{header{"Origin": {""}}, 403},
		{header{"Origin": {"", "https://evil.example"}}, 403},
		{header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{header{"Sec-Fetch-Site": {"same-site"}}, 403},
		{header{"X-Forwarded-For": {""}}, 403},
		{header{"X-Forwarded-For": {"", "192.168.1.7"}}, 403},
		{header{"X-Forwarded-Host": {"sqs.example"}}, 403},
		{header{"X-Forwarded-Proto": {"https"}}, 403},
		{header{"X-Client-Ip": {"192.168.1.7"}}, 403},
		{header{"X-Real-Ip": {""}}, 403},
		{header{"Forwarded": {""}}, 403},
		{header{"Via": {""}}, 403},
	} {
		w := httptest.NewRecorder()
		server.Admin().ServeHTTP(w, arriving("GET", "/_reprise/faults", loopback, test.header))
		var reply struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != test.status || (reply.Error == "") != (w.Code == 200) {
			t.Errorf("%v: %d %s, want %d", test.header, w.Code, w.Body, test.status)
		}
	}
}

// TestAttackPageFillsNoLog: refusals are told of at most once in ten seconds, and those in
// between are counted.
func TestAttackPageFillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		guard, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{OnRefused: func(_ *http.Request, _ error, unreported int) { told = append(told, unreported) }})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if guard.Check(arriving("GET", "/", loopback, map[string][]string{"Origin": {"https://evil.example"}})) == nil {
				t.Fatal("permitted")
			}
			time.Sleep(150 * time.Millisecond)
		}
		if len(told) != 2 || told[0] != 0 || told[1] != 66 {
			t.Errorf("in 15 s it was told of refusals, with those in between: %v", told)
		}
	})
}

// TestAttackPageOriginSetting: a setting that permits no origin, or too many, is refused.
func TestAttackPageOriginSetting(t *testing.T) {
	for _, text := range []string{"", "*", "null", "app.example", "https://", "https://*.example", "https://app.example/", "https://app.example/page",
		"https://user@app.example", "https://app.example:", "https://app.example:http", "https://app example", "https://bücher.example", "https://app.example?x", "https://app.example#x"} {
		err := sqsserver.CheckOrigin(text)
		if err == nil || !strings.Contains(err.Error(), "scheme://host") {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{AllowedOrigins: []string{text}}); err == nil {
			t.Errorf("NewPageGuard took %q", text)
		}
	}
	server := sqsserver.New(sqsserver.Config{AllowedOrigins: []string{"*"}, BaseURL: "http://queues.lan:9324/", Logger: withoutOutput()})
	defer server.Close()
	for host, permitted := range map[string]bool{"queues.lan:9324": true, "evil.example:9324": false} {
		if err := server.Pages().Check(arriving("GET", "/", loopback, map[string][]string{"Host": {host}})); (err == nil) != permitted {
			t.Errorf("%s: %v", host, err)
		}
	}
}
