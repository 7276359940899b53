package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTakesGzip: a client gets gzip only if it says that it understands it.
func TestTakesGzip(t *testing.T) {
	for accepted, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip": true, "gzip;q=0.5": true, "gzip; q=1": true, "gzip;q=0": false, "gzip;q=0.00": false, "deflate, br": false, "x-gzip": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if accepted != "" {
			r.Header.Set("Accept-Encoding", accepted)
		}
		if got := takesGzip(r); got != want {
			t.Errorf("%q: %v, want %v", accepted, got, want)
		}
	}
}

// TestCompression: a text and a file are the same with and without compression, and a short text is sent as it is.
func TestCompression(t *testing.T) {
	long := strings.Repeat("<tr><td>order</td></tr>", 1000)
	for name, test := range map[string]struct {
		text, accepted string
		gzipped        bool
	}{
		"long": {long, "gzip", true}, "long, to a client without": {long, "", false}, "short": {"<p>", "gzip", false},
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", test.accepted)
		write(w, r, 201, "text/html", []byte(test.text))
		if got := plain(t, w, test.gzipped); w.Code != 201 || got != test.text || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d %v: %q", name, w.Code, w.Header(), got)
		}
	}
	for name, a := range assets {
		if assetTypes[name[strings.LastIndex(name, "."):]] == "" {
			continue
		}
		for _, accepted := range []string{"gzip", ""} {
			r, w := httptest.NewRequest("GET", assetURL(name), nil), httptest.NewRecorder()
			r.SetPathValue("name", name)
			r.Header.Set("Accept-Encoding", accepted)
			serveAsset(w, r)
			if got := plain(t, w, accepted == "gzip" && len(a.content) >= worthwhile); w.Code != 200 || got != string(a.content) {
				t.Errorf("%s, accepted %q: %d %v", name, accepted, w.Code, w.Header())
			}
			again := httptest.NewRecorder()
			r.Header.Set("If-None-Match", w.Header().Get("Etag"))
			if serveAsset(again, r); again.Code != 304 {
				t.Errorf("%s, accepted %q, again: %d", name, accepted, again.Code)
			}
		}
	}
}

// plain is the text of an answer.
func plain(t *testing.T, w *httptest.ResponseRecorder, gzipped bool) string {
	t.Helper()
	if got := w.Header().Get("Content-Encoding") == "gzip"; got != gzipped {
		t.Errorf("compressed: %v, want %v", got, gzipped)
	}
	text := w.Body.Bytes()
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}
