package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHealthOfOthers: only 200 is health. What answers with another status, a proxy that asks for credentials or
// another program without such a page, is not a server that works.
func TestHealthOfOthers(t *testing.T) {
	for _, status := range []int{201, 204, 301, 302, 400, 401, 403, 404, 429, 499, 500, 502, 503} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if answer, err := askHealth(t.Context(), s.URL+"/health"); err == nil {
			t.Errorf("%d: %q and no error", status, answer)
		}
		s.Close()
	}
}
