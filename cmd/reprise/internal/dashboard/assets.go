package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages need.
type asset struct {
	content []byte
	version string        // changes with the content
	gzipped func() []byte // made when it is first asked for
}

var assets = func() map[string]asset {
	all := make(map[string]asset)
	_ = fs.WalkDir(assetFiles, "assets", func(name string, entry fs.DirEntry, err error) error { // of memory
		if err == nil && !entry.IsDir() {
			content, _ := assetFiles.ReadFile(name)
			sum := sha256.Sum256(content)
			all[name[len("assets/"):]] = asset{content, hex.EncodeToString(sum[:6]), sync.OnceValue(func() []byte { return compress(content, gzip.BestCompression) })}
		}
		return nil
	})
	return all
}()

// assetURL has the version in it, so that browsers keep the file until there is another.
func assetURL(name string) string { return Path + "assets/" + name + "?v=" + assets[name].version }

var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	found, ok := assets[name]
	kind := assetTypes[path.Ext(name)]
	if !ok || kind == "" {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == found.version {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	content, etag := found.content, found.version
	if len(content) >= worthwhile && takesGzip(r) {
		content, etag = found.gzipped(), etag+"-gzip"
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("Etag", `"`+etag+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}
