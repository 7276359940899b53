package sqsserver_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// administer calls the admin API as a program on the same machine does.
func (b *testServer) administer(method, path, body string, header map[string]string) (status int, reply string) {
	r := httptest.NewRequest(method, "http://localhost:9324/_reprise/"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	for name, value := range header {
		switch name {
		case "Host":
			r.Host = value
		case "RemoteAddr":
			r.RemoteAddr = value
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	b.server.Admin().ServeHTTP(w, r)
	if !json.Valid(w.Body.Bytes()) && w.Code != 404 && w.Code != 405 {
		b.Errorf("%s %s answered %q, which is not JSON", method, path, w.Body)
	}
	return w.Code, w.Body.String()
}

func TestAdminFaults(t *testing.T) {
	b := newTestServer(t, nil)
	set := func(method, path, body string) {
		t.Helper()
		if status, reply := b.administer(method, path, body, nil); status != 200 {
			t.Errorf("%s %s %s answered %d %s", method, path, body, status, reply)
		}
	}
	set("PUT", "faults/q", `[{"kind":"throttle","action":"SendMessage","skip":1,"every":2,"probability":0.5,"limit":3},{"kind":"slow-reply","delay":"1m"}]`)
	set("PUT", "faults/*", `[{"kind":"server-error"}]`)
	want := []sqsserver.FaultCount{
		{Fault: sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "SendMessage", Skip: 1, Every: 2, Probability: 0.5, Limit: 3}},
		{Fault: sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: time.Minute}},
	}
	if diff := cmp.Diff(want, b.server.Faults("q")); diff != "" {
		t.Errorf("faults of q (-want +got):\n%s", diff)
	}
	_, reply := b.administer("GET", "faults", "", nil)
	for _, part := range []string{`"*": [`, `"kind": "slow-reply"`, `"delay": "1m0s"`, `"chances": 0`, `"strikes": 0`} {
		if !strings.Contains(reply, part) {
			t.Errorf("GET faults does not say %s: %s", part, reply)
		}
	}
	set("DELETE", "faults/q", "")
	if n := len(b.server.AllFaults()); n != 1 {
		t.Errorf("%d queues have faults, want 1", n)
	}
	set("PUT", "faults?later=true", `{"queues":{"a":[{"kind":"duplicate"}],"b":[{"kind":"duplicate"}]}}`)
	if all := b.server.AllFaults(); len(all) != 2 || len(all["a"]) != 1 || len(all["b"]) != 1 {
		t.Errorf("the faults are %v, want those of a and b", all)
	}
	set("DELETE", "faults/a", "")
	set("DELETE", "faults", "")
	if all := b.server.AllFaults(); len(all) != 0 {
		t.Errorf("%v are left", all)
	}
}

func TestAdminRefusesNonsense(t *testing.T) {
	b := newTestServer(t, nil)
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle})
	for _, test := range []struct{ method, path, body, want string }{
		{"PUT", "faults/q", ``, "the body is empty"},
		{"PUT", "faults/q", `[{"kind":"throttle"}`, "cannot be understood"},
		{"PUT", "faults/q", `[{"kind":"throttle"}] []`, "has text after"},
		{"PUT", "faults/q", `[{"kind":"throttle"}]]`, "has text after"},
		{"PUT", "faults/q", `[{"kind":"throttle","often":true}]`, `"error": "the body cannot be understood: json: unknown field \"often\""`},
		{"GET", "", "", "/_reprise/faults or /_reprise/clock"},
		{"PUT", "faults/q", `[{"kind":"fire"}]`, `\"fire\" is unknown; use one of`},
		{"PUT", "faults/q", `[{"kind":"slow-reply","delay":"soon"}]`, `\"soon\"`},
		{"PUT", "faults", `{"queues":{"q":[{"kind":"duplicate"},{"kind":"fire"}]}}`, `fault 2 of queue \"q\"`},
		{"PUT", "faults/order", `[{"kind":"duplicate"}]`, `queue \"order\" does not exist (there is q): correct the name, create the queue first, or add ?later=true`},
		{"PUT", "faults/arn:aws:sqs:us-east-1:000000000000:order", `[{"kind":"duplicate"}]`, `queue \"order\" does not exist`},
		{"PUT", "faults", `{"queues":{"*":[{"kind":"duplicate"}],"q":[],"order":[{"kind":"duplicate"}]}}`, `queue \"order\" does not exist`},
		{"PUT", "faults/order?later=perhaps", `[{"kind":"duplicate"}]`, `later is \"perhaps\": write true or false`},
		{"PUT", "faults", `{"a":[]}`, `unknown field \"a\"`},
		{"POST", "clock", `{"advance":"a day"}`, `\"a day\"`},
		{"POST", "clock", `{"advance":"-1s"}`, "positive"},
		{"POST", "clock", `{"advance":"2500000h"}`, "times end in 2261"},
		{"POST", "clock", `{"now":"1h"}`, "now"},
	} {
		status, reply := b.administer(test.method, test.path, test.body, nil)
		if status != 400 || !strings.Contains(reply, `"error"`) || !strings.Contains(reply, test.want) {
			t.Errorf("%s %s %s answered %d %s, want 400 with %s", test.method, test.path, test.body, status, reply, test.want)
		}
	}
	if all := b.server.AllFaults(); len(all) != 1 || len(all["q"]) != 1 {
		t.Errorf("the faults are %v: refused requests changed them", all)
	}
	if status, _ := b.administer("GET", "secrets", "", nil); status != 404 {
		t.Errorf("an unknown path answered %d", status)
	}
}

func TestAdminClock(t *testing.T) {
	b := newTestServer(t, nil)
	if _, reply := b.administer("GET", "clock", "", nil); !strings.Contains(reply, `"virtual": false`) {
		t.Errorf("the clock is %s", reply)
	}
	status, reply := b.administer("POST", "clock", `{"advance":"12h"}`, nil)
	if ahead := time.Until(b.server.Now()).Round(time.Minute); status != 200 || ahead != 12*time.Hour || !strings.Contains(reply, `"virtual": true`) {
		t.Errorf("advancing answered %d %s and the time is %v ahead", status, reply, ahead)
	}
}

// The admin API is for programs of this machine: not for others, not for web pages
// that a browser on it shows, and not for what a proxy on it lets in.
func TestAdminIsLocal(t *testing.T) {
	b := newTestServer(t, nil)
	for _, test := range []struct {
		name   string
		header map[string]string
		status int
	}{
		{"a local client", nil, 200},
		{"a local client by IPv6", map[string]string{"RemoteAddr": "[::1]:50000", "Host": "[::1]:9324"}, 200},
		{"by an IPv4 address in IPv6", map[string]string{"RemoteAddr": "[::ffff:127.0.0.1]:50000", "Host": "127.0.0.1"}, 200},
		{"another machine", map[string]string{"RemoteAddr": "192.168.1.7:50000"}, 403},
		{"an address that is none", map[string]string{"RemoteAddr": "@"}, 403},
		{"a name that points here", map[string]string{"Host": "evil.example:9324"}, 403},
		{"a name that looks local", map[string]string{"Host": "localhost.evil.example:9324"}, 403},
		{"a web page", map[string]string{"Origin": "http://localhost:3000"}, 403},
		{"a proxy", map[string]string{"X-Forwarded-For": "192.168.1.7"}, 403},
		{"nginx, as many configure it", map[string]string{"X-Real-Ip": "192.168.1.7"}, 403},
		{"a proxy of HTTP's own kind", map[string]string{"Via": "1.1 proxy"}, 403},
		{"a modern proxy", map[string]string{"Forwarded": "for=192.168.1.7"}, 403},
	} {
		if status, reply := b.administer("GET", "faults", "", test.header); status != test.status {
			t.Errorf("%s: answered %d %s, want %d", test.name, status, reply, test.status)
		}
	}
}
