package dashboard

import (
	"bytes"
	"net/http"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/eventstream"
)

// quietFor is how long a stream may say nothing before it says that it is still there.
const quietFor = 15 * time.Second

// stream sends the live part of a page, and again whenever it has changed, until the viewer goes, its session
// ends, or the process stops.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, p page) {
	client, over := admin.ClientOf(r), (chan struct{})(nil)
	if session := d.sessionOf(r); session != nil {
		client, over = session.id, session.over
	}
	end, err := d.begin(client)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer end()
	send, err := admin.Stream(w)
	if err != nil {
		d.failWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", eventstream.ContentType)
	shared, leave := d.share(r)
	defer leave()
	tick := time.NewTicker(p.live)
	defer tick.Stop()
	var shown []byte
	said := time.Time{}
	for {
		text, event, err := shared.latest(d, r, p)
		if err != nil {
			d.cfg.Logger.Error("a page of the dashboard could not be rendered", "page", p.template, "error", err)
			return
		}
		message := ""
		switch {
		case !bytes.Equal(text, shown):
			shown, message = text, event
		case time.Since(said) >= quietFor:
			message = eventstream.Ping
		}
		if message != "" {
			if said = time.Now(); send(message) != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-d.stop:
			return
		case <-over: // signed out
			return
		}
		if d.cfg.API.Check(r, d.signedIn(r)) != nil { // the session has ended
			return
		}
	}
}

// liveText is the live part of a page, or what is wrong with it.
func (d *Dashboard) liveText(r *http.Request, p page) ([]byte, error) {
	_, data, err := p.data(d.view(r))
	if err != nil {
		_, problem := explain(err)
		return d.text("problem", "trouble", frame{Data: problem})
	}
	return d.text(p.template, "live", d.frame(r, p, "", data))
}
