package dashboard

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// Pages, and the files that they need, are compressed: the first page is a third as large then, which counts on a
// phone. That tells nobody who watches the length of answers what a page contains: for that they would have to have the
// browser load pages with texts of his own, and requests that other sites cause are refused.

// worthwhile is the length from which a text is compressed: below it all fits into a packet anyway.
const worthwhile = 1400

// write answers with a text, compressed if the client understands that.
func write(w http.ResponseWriter, r *http.Request, status int, kind string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding")
	if len(text) >= worthwhile && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		text = compress(text, gzip.BestSpeed)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have gone
}

func compress(text []byte, level int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, level) // the level is one
	_, _ = z.Write(text)                   // to memory
	_ = z.Close()
	return b.Bytes()
}

// takesGzip reports whether a client accepts answers in gzip.
func takesGzip(r *http.Request) bool {
	for _, accepted := range r.Header["Accept-Encoding"] {
		for one := range strings.SplitSeq(accepted, ",") {
			name, quality, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
			if strings.EqualFold(name, "gzip") {
				return strings.TrimRight(strings.TrimPrefix(quality, "q="), "0.") != "" || quality == ""
			}
		}
	}
	return false
}
