package demo

// Holds off: a web page that a developer visits while the demo runs, and that looks for
// open ports. It may not be taken for the demo's consumer.

import (
	"io"
	"net/http"
	"testing"
)

func TestAttackPageDemo(t *testing.T) {
	s, err := startService(t.Context(), 1, []string{"{}"}, func(state) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Host = "evil.example" },
		func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusForbidden {
			t.Errorf("%v %q: %d %s, %v", r.Header, r.Host, response.StatusCode, text, err)
		}
	}
}
