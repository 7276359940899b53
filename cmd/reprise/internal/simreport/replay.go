package simreport

import (
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// The JSON forms of a replay. Times are in seconds.
type (
	jsonReplay struct {
		Start   time.Time `json:"start"`
		Every   float64   `json:"every"`
		Periods int       `json:"periods"`
		Fails   float64   `json:"fails"` // the share of attempts, outside of outages, at first
		// Changes are when that share becomes another.
		Changes  []jsonChange `json:"changes,omitempty"`
		Takes    float64      `json:"takes,omitempty"`
		Outages  []jsonFitted `json:"outages"`
		Measured jsonTotals   `json:"measured"`
		// Simulated has the same of the first run, and Differs by which share of the attempts a
		// period of it differs from the measurements.
		Simulated jsonTotals    `json:"simulated"`
		Differs   float64       `json:"differs"`
		Policies  []jsonInstead `json:"policies"`
	}
	jsonChange struct {
		At    float64 `json:"at"`
		Fails float64 `json:"fails"`
	}
	jsonFitted struct {
		At    float64 `json:"at"`
		For   float64 `json:"for"`
		Share float64 `json:"share"`
	}
	jsonTotals struct {
		Attempts int      `json:"attempts"`
		Done     int      `json:"done"`
		Dead     *int     `json:"dead,omitempty"`   // if it was measured
		Oldest   *float64 `json:"oldest,omitempty"` // at the end of a period, at the most
	}
	// jsonInstead is what a run would have lost, delayed and paid, and by how much more than the first.
	jsonInstead struct {
		Label string   `json:"label,omitempty"`
		Lost  int      `json:"lost"` // given up or expired
		Left  int      `json:"left"`
		Late  float64  `json:"late"` // the 99th percentile of the time until a message is done
		Last  float64  `json:"last"` // the longest
		Paid  float64  `json:"paid"` // in US dollars
		More  jsonMore `json:"more"` // than the first run
		Clear *float64 `json:"cleared"`
	}
	jsonMore struct {
		Lost int     `json:"lost"`
		Late float64 `json:"late"`
		Paid float64 `json:"paid"`
	}
)

// json compares runs with the incident.
func (f *Fit) json(runs []Run) *jsonReplay {
	measured, simulated, off := f.totals(runs[0].Result)
	j := &jsonReplay{
		Start: f.Start.UTC(), Every: secondsOf(f.Every), Periods: len(f.Periods), Fails: f.Fails, Takes: secondsOf(f.Takes), Outages: []jsonFitted{},
		Measured: f.totalsOf(measured), Simulated: f.totalsOf(simulated), Differs: off,
	}
	for _, c := range f.Changes {
		j.Changes = append(j.Changes, jsonChange{secondsOf(c.At), c.Fails[0]})
	}
	for _, o := range f.Outages {
		j.Outages = append(j.Outages, jsonFitted{secondsOf(o.At), secondsOf(o.For), o.Share})
	}
	for _, one := range runs {
		r := one.Result
		i := jsonInstead{
			Label: one.Label, Lost: r.Messages.Dead + r.Messages.Expired, Left: r.Messages.Left,
			Late: secondsOf(r.Latency.P99), Last: secondsOf(r.Latency.Most), Paid: r.Cost(), Clear: clearedOf(r),
		}
		first := i
		if len(j.Policies) > 0 {
			first = j.Policies[0]
		}
		i.More = jsonMore{i.Lost - first.Lost, i.Late - first.Late, i.Paid - first.Paid}
		j.Policies = append(j.Policies, i)
	}
	return j
}

func (f *Fit) totalsOf(p Period) jsonTotals {
	t := jsonTotals{Attempts: p.Attempts, Done: p.Done}
	if f.HasDead {
		t.Dead = &p.Dead
	}
	if f.HasOldest {
		oldest := secondsOf(p.Oldest)
		t.Oldest = &oldest
	}
	return t
}

// clearedOf is the longest time after an outage until all that waited is settled; nil: not in the
// simulated time.
func clearedOf(r *simulate.Result) *float64 {
	most := time.Duration(0)
	for _, v := range r.Outages {
		if v.Cleared < 0 {
			return nil
		}
		most = max(most, v.Cleared)
	}
	return never(most)
}
