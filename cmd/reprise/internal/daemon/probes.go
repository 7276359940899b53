package daemon

import (
	"encoding/json"
	"net/http"
	"path"

	"github.com/reprise-sqs/reprise"
)

// readiness is the answer of GET /readyz: status 200 if it is ready, else 503. Degraded is
// ready, with its reason.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []reason `json:"reasons,omitempty"`
}

// reason is the problem of a part.
type reason struct {
	// Part is server, or the name of a queue that is consumed.
	Part    string `json:"part"`
	Status  string `json:"status"` // see reprise.Health
	Problem string `json:"problem,omitempty"`
}

// consumers adds the problems of consumers. One that has not begun, cannot receive or stops
// is not ready.
func (r *readiness) consumers(all []*consumer) {
	for _, c := range all {
		s := c.Status()
		switch s.Health {
		case reprise.HealthOK:
			continue
		case reprise.HealthDegraded:
		default:
			r.Ready = false
		}
		r.Reasons = append(r.Reasons, reason{path.Base(c.of.QueueURL), s.Health.String(), s.Problem})
	}
}

// serveJSON answers with v.
func serveJSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the client may have gone
}

func (r *readiness) serve(w http.ResponseWriter) {
	code := http.StatusOK
	if !r.Ready {
		code = http.StatusServiceUnavailable
	}
	serveJSON(w, code, r)
}

// liveness is the answer of GET /livez. It is 503 only for problems that a restart fixes:
// it does not bring back a queue or a target that is down, and it closes the circuit
// breakers.
type liveness struct {
	Live    bool   `json:"live"`
	Problem string `json:"problem,omitempty"`
}

func (d *Daemon) serveLive(w http.ResponseWriter, _ *http.Request) {
	if err := d.failure(); err != nil {
		serveJSON(w, http.StatusServiceUnavailable, liveness{Problem: err.Error()})
		return
	}
	serveJSON(w, http.StatusOK, liveness{Live: true})
}

func (d *Daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	r := readiness{Ready: true}
	switch err := d.failure(); {
	case err != nil:
		r = readiness{Reasons: []reason{{"server", reprise.HealthFailing.String(), err.Error()}}}
	case d.durable() && d.journal.LowOnSpace():
		r.Reasons = append(r.Reasons, reason{"server", reprise.HealthDegraded.String(), "the disk is nearly full: sends are refused"})
	}
	r.consumers(d.all())
	r.serve(w)
}

// serveLive answers for a worker: one that answers at all is alive.
func (w *Worker) serveLive(out http.ResponseWriter, _ *http.Request) {
	serveJSON(out, http.StatusOK, liveness{Live: true})
}

func (w *Worker) serveReady(out http.ResponseWriter, _ *http.Request) {
	r := readiness{Ready: true}
	all := w.all()
	if len(all) == 0 {
		r = readiness{Reasons: []reason{{"program", reprise.HealthNew.String(), "no queue is consumed yet"}}}
	}
	r.consumers(all)
	r.serve(out)
}
