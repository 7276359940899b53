package admin

import (
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// CountedFor is how long after a count its job can be carried out: later, other messages may be there.
const CountedFor = 15 * time.Minute

// CanCarryOut reports that a job has counted messages, and not long ago.
func (j Job) CanCarryOut(now time.Time) bool {
	return j.DryRun && j.State == JobDone && j.Done > 0 && now.Sub(j.Ended) < CountedFor
}

// CarriedOut reports that one of the jobs has done the same since j has counted it, with whatever receiver and edit:
// what matches now was not counted.
func (j Job) CarriedOut(all []Job) bool {
	return slices.ContainsFunc(all, func(other Job) bool {
		return !other.DryRun && other.actsLike(j) && other.Created.After(j.Ended)
	})
}

// actsLike reports that two jobs have the same action on the same messages.
func (j Job) actsLike(other Job) bool {
	return j.URL == other.URL && j.Action == other.Action && reflect.DeepEqual(j.With, other.With)
}

// counts reports that a job has counted, not long ago, what another is about to do.
func (j Job) counts(other Job, now time.Time) bool {
	return j.CanCarryOut(now) && j.actsLike(other) && j.To == other.To && reflect.DeepEqual(j.Edit, other.Edit)
}

// checkCount returns an error unless what a job says was counted is what it does, and was not done since. The mutex of
// jobs is held until the job has begun: of two that carry out one count, the second is refused.
func (js *jobs) checkCount(j *job) error {
	if j.request.Counted == "" {
		return nil
	}
	all := make([]Job, len(js.all))
	for i, other := range js.all {
		all[i] = other.Job
	}
	at := slices.IndexFunc(all, func(other Job) bool { return other.ID == j.request.Counted })
	switch {
	case at < 0 || !all[at].counts(j.Job, time.Now()):
		return problem(http.StatusConflict, "not-counted", "%s has not counted these messages in the last %s: count again", j.request.Counted, operate.Ago(CountedFor))
	case all[at].CarriedOut(all):
		return problem(http.StatusConflict, "not-counted", "what %s has counted was done already: count again", j.request.Counted)
	}
	return nil
}
