package delivery

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProbe: only 2xx means that the target works again: a redirect, to a page that asks to sign in for
// example, does not. The URL keeps its own query beside the key.
func TestProbe(t *testing.T) {
	status, asked := http.StatusOK, ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		w.Header().Set("Location", "/sign-in")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	ask, err := probe(srv.URL + "/health?deep=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		status int
		key    string
		works  bool
		asked  string
	}{
		{200, "", true, "/health?deep=1"},
		{204, "acme & sons", true, "/health?deep=1&key=acme+%26+sons"},
		{299, "", true, "/health?deep=1"},
		{300, "", false, "/health?deep=1"},
		{302, "", false, "/health?deep=1"},
		{304, "", false, "/health?deep=1"},
		{401, "", false, "/health?deep=1"},
		{404, "", false, "/health?deep=1"},
		{500, "", false, "/health?deep=1"},
		{503, "", false, "/health?deep=1"},
	} {
		status = test.status
		if err := ask(t.Context(), test.key); (err == nil) != test.works || asked != test.asked {
			t.Errorf("%d: %v, and asked for %q; want success %t, and %q", test.status, err, asked, test.works, test.asked)
		}
	}
}
