package emulator

// Holds off: a web page that a developer visits. It may scan this machine's ports, and send
// to the Runtime API what a browser sends without asking, also under a name of its own that
// it points here. It may not take a function's event, nor answer for the function.

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAttackPageRuntimeAPI: only requests to exactly the address that the process was given
// are its own, and no browser's.
func TestAttackPageRuntimeAPI(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:40000"
	l := newLambda(t, func(*Function) {})
	i := running(t, l)
	inv := begin(t, l, `{"do":"echo"}`)
	api := i.runtimeAPI(address)
	call := func(method, path, body, host string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/2018-06-01/runtime/"+path, strings.NewReader(body))
		r.Host, r.Header = host, header
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	attacks := []struct {
		host   string
		header http.Header
	}{
		{"evil.com", http.Header{}},
		{"localhost:40000", http.Header{}},
		{"127.0.0.1", http.Header{}},
		{"", http.Header{}},
		{address, http.Header{"Origin": {"http://localhost:3000"}}},
		{address, http.Header{"Origin": {""}}},
		{address, http.Header{"Sec-Fetch-Site": {"cross-site"}}},
		{address, http.Header{"Sec-Fetch-Site": {"none"}}},
	}
	refused := func(path, body string) {
		t.Helper()
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		for _, attack := range attacks {
			w := call(method, path, body, attack.host, attack.header)
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"errorType":"AccessDenied"`) || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s by %q with %v: %d %v %s", path, attack.host, attack.header, w.Code, w.Header(), w.Body)
			}
		}
	}
	refused("invocation/next", "")
	refused("init/error", `{"errorMessage":"forged"}`)
	if w := call(http.MethodGet, "invocation/next", "", address, http.Header{}); w.Body.String() != `{"do":"echo"}` {
		t.Fatalf("the process gets %d %s", w.Code, w.Body)
	}
	refused("invocation/"+inv.id+"/response", `"forged"`)
	refused("invocation/"+inv.id+"/error", `{"errorMessage":"forged"}`)
	if w := call(http.MethodPost, "invocation/"+inv.id+"/response", `"own"`, address, http.Header{}); w.Code != http.StatusAccepted {
		t.Fatalf("the process's answer: %d %s", w.Code, w.Body)
	}
	i.settle()
	i.pool.finish(inv)
	<-inv.done
	if string(inv.result.Payload) != `"own"` {
		t.Errorf("the result is %s", inv.result.Payload)
	}
}
