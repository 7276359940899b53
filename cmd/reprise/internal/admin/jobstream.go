package admin

import (
	"encoding/json"
	"net/http"
	"time"
)

// jobEvents streams a job as it goes on. Each event is the whole job, and the first is how it is now:
// a client that has lost its connection misses nothing that matters by connecting again. The stream
// ends with the job.
func (a *API) jobEvents(w http.ResponseWriter, r *http.Request) error {
	now, err := a.job(r)
	if err != nil {
		return err
	}
	v := &viewer{client: ClientOf(r), types: []string{EventJob}, job: now.ID, events: make(chan event, maxUnread), stop: make(chan struct{})}
	send, err := a.begin(w, v)
	if err != nil {
		return err
	}
	defer a.cfg.Events.remove(v)
	for over := false; ; {
		if now, err = a.job(r); err != nil {
			return nil // forgotten meanwhile, and the head has been written
		}
		data, err := json.Marshal(now)
		if err != nil || send(event{EventJob, data}.text()) != nil || now.State != JobRunning || over {
			return nil
		}
		over = !v.awaitNews(r.Context().Done())
	}
}

// awaitNews waits until there are events, which it drops, or it is time to say something again; false:
// the stream is over.
func (v *viewer) awaitNews(gone <-chan struct{}) bool {
	ping := time.NewTimer(pingEvery)
	defer ping.Stop()
	select {
	case <-v.events:
	case <-ping.C: // so that the end is told although its event was lost
	case <-v.stop:
		return false
	case <-gone:
		return false
	}
	for {
		select {
		case <-v.events:
		default:
			return true
		}
	}
}
