package dashboard

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/eventstream"
)

// rendering is the live part of a page, which all who look at the same page with the same rights share: rendered for
// each of them, 50 viewers would take a noticeable part of a processor.
type rendering struct {
	viewers int // how many streams use it; under Dashboard.mu

	mu    sync.Mutex
	at    time.Time // when it was rendered
	text  []byte
	event string // text, as a stream sends it
}

// share returns the rendering for a stream, which calls end when it ends.
func (d *Dashboard) share(r *http.Request) (shared *rendering, end func()) {
	// The address alone decides what a page shows: whoever may see one page may see all.
	key := strconv.FormatBool(d.signedIn(r)) + r.URL.RequestURI()
	d.mu.Lock()
	defer d.mu.Unlock()
	shared = d.renderings[key]
	if shared == nil {
		shared = new(rendering)
		d.renderings[key] = shared
	}
	shared.viewers++
	return shared, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if shared.viewers--; shared.viewers == 0 {
			delete(d.renderings, key)
		}
	}
}

// latest returns the text and its event, rendered by the first viewer who finds that they are older than half of the
// time between two looks.
func (shared *rendering) latest(d *Dashboard, r *http.Request, p page) (text []byte, event string, err error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if now := time.Now(); now.Sub(shared.at) >= p.live/2 {
		text, err := d.liveText(r, p)
		if err != nil {
			return nil, "", err
		}
		if !bytes.Equal(text, shared.text) {
			shared.text, shared.event = text, eventstream.Event("", string(text))
		}
		if shared.at = now; r.Context().Err() != nil { // the text may say so; the next viewer renders again
			shared.at = time.Time{}
		}
	}
	return shared.text, shared.event, nil
}
