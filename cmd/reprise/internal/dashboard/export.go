package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// exported sends the messages that a job has exported as a file, one a line, which reprise send --messages and
// dead import read.
func (d *Dashboard) exported(w http.ResponseWriter, r *http.Request) {
	v := d.view(r)
	job, err := v.api.Job(r.Context(), r.PathValue("job"))
	if err != nil {
		d.failWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="`+job.ID+`.jsonl"`)
	lines := json.NewEncoder(w)
	if err := v.api.Exported(r.Context(), job.ID, func(m *operate.Message) error { return lines.Encode(m) }); err != nil {
		panic(http.ErrAbortHandler) // a file that is not whole must not look as if it were
	}
}
