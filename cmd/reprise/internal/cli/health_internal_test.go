package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestHealthOfAll: all that answers is told of, and has to work; what is not there does not matter if
// something is.
func TestHealthOfAll(t *testing.T) {
	serve := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(s.Close)
		return s.URL + "/health"
	}
	good, degraded, failing, nobody := serve(200, "good"), serve(200, "degraded"), serve(503, "failing"), "http://127.0.0.1:1/health"
	for _, test := range []struct {
		pages []string
		want  []string
		err   string
	}{
		{[]string{good, degraded}, []string{"good", "degraded"}, ""},
		{[]string{nobody, degraded}, []string{"degraded"}, ""},
		{[]string{good, failing}, []string{"good", "failing"}, "503"},
		{[]string{good, nobody}, []string{"good"}, ""},
		{[]string{nobody, nobody}, nil, "is it running?"},
	} {
		got, err := askAll(t.Context(), test.pages)
		if !slices.Equal(got, test.want) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %q, %v; want %q and %q", test.pages, got, err, test.want, test.err)
		}
	}
}
