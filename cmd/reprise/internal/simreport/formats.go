package simreport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/reprise-sqs/reprise/simulate"
)

// The JSON forms. Times are in seconds.
type (
	jsonReport struct {
		Runs  []jsonRun `json:"runs"`
		Found *string   `json:"found,omitempty"` // the label of the first run that meets the conditions
		// Replay compares the first run with the incident, and the others with the first.
		Replay *jsonReplay `json:"replay,omitempty"`
	}
	jsonRun struct {
		Label      string              `json:"label,omitempty"`
		Scenario   json.RawMessage     `json:"scenario"`
		Stop       string              `json:"stop"`
		Ended      float64             `json:"ended"`
		Metrics    map[string]*float64 `json:"metrics"`
		Messages   simulate.Messages   `json:"messages"`
		Attempts   simulate.Attempts   `json:"attempts"`
		PerMessage []int               `json:"perMessage"`
		Requests   simulate.Requests   `json:"requests"`
		Outages    []jsonOutage        `json:"outages,omitempty"`
		Queues     []jsonQueue         `json:"queues,omitempty"` // of a pool
		Series     []jsonBucket        `json:"series"`
		Notes      []string            `json:"notes,omitempty"`
		Unmet      []string            `json:"unmet,omitempty"`
	}
	jsonOutage struct {
		At        float64  `json:"at"`
		For       float64  `json:"for"`
		Open      int      `json:"open"`
		Backlog   int      `json:"backlog"`
		Recovered *float64 `json:"recovered"`
		Cleared   *float64 `json:"cleared"`
		Requests  int      `json:"requests"`
		Peak      int      `json:"peak"`
		Unsettled int      `json:"unsettled"`
	}
	jsonBucket struct {
		At       float64 `json:"at"`
		Arrived  int     `json:"arrived"`
		Started  int     `json:"started"`
		Failed   int     `json:"failed"`
		Done     int     `json:"done"`
		Dead     int     `json:"dead"`
		Peak     int     `json:"peak"`
		Visible  int     `json:"visible"`
		InFlight int     `json:"inFlight"`
		Delayed  int     `json:"delayed"`
		Running  int     `json:"running"`
		Waiting  int     `json:"waiting"`
		Open     int     `json:"open"`
		Oldest   float64 `json:"oldest"`
	}
)

// JSON is the report for programs.
func (r Report) JSON() ([]byte, error) {
	out := jsonReport{Runs: make([]jsonRun, len(r.Runs))}
	for i, one := range r.Runs {
		res := one.Result
		scenario, err := yaml.MarshalWithOptions(res.Scenario, yaml.JSON())
		if err != nil {
			return nil, err
		}
		j := jsonRun{
			Label: one.Label, Scenario: scenario, Stop: res.Stop.String(), Ended: secondsOf(res.Ended), Metrics: make(map[string]*float64),
			Messages: res.Messages, Attempts: res.Attempts, PerMessage: res.PerMessage, Requests: res.Requests, Notes: res.Notes, Unmet: r.Find.unmet(res),
			Queues: jsonQueues(res), Series: make([]jsonBucket, len(res.Series)),
		}
		for _, m := range metrics {
			if x := m.value(res); !math.IsInf(x, 0) {
				j.Metrics[m.name] = &x
			} else {
				j.Metrics[m.name] = nil
			}
		}
		for _, v := range res.Outages {
			j.Outages = append(j.Outages, jsonOutage{secondsOf(v.At), secondsOf(v.For), v.Open, v.Backlog, never(v.Recovered), never(v.Cleared), v.Requests, v.Peak, v.Unsettled})
		}
		for k, b := range res.Series {
			j.Series[k] = jsonBucket{
				secondsOf(b.At), b.Arrived, b.Started, b.Failed, b.Done, b.Dead, b.Peak, b.Visible, b.InFlight, b.Delayed, b.Running, b.Waiting, b.Open, secondsOf(b.Oldest),
			}
		}
		out.Runs[i] = j
	}
	if found, ok := r.Found(); ok && len(r.Find) > 0 {
		out.Found = &found.Label
	}
	if r.Replay != nil && len(r.Runs) > 0 {
		out.Replay = r.Replay.json(r.Runs)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return append(text, '\n'), err
}

func secondsOf(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// never is null in JSON.
func never(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := secondsOf(d)
	return &s
}

// CSV has a row for each period of each run.
func (r Report) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"run", "at_s", "arrived", "started", "failed", "done", "dead", "peak", "visible", "in_flight", "delayed", "running", "waiting", "open", "oldest_s"}) // Flush tells of an error
	for _, one := range r.Runs {
		for _, k := range one.Result.Series {
			row := []string{one.Label, strconv.FormatFloat(secondsOf(k.At), 'f', -1, 64)}
			for _, n := range []int{k.Arrived, k.Started, k.Failed, k.Done, k.Dead, k.Peak, k.Visible, k.InFlight, k.Delayed, k.Running, k.Waiting, k.Open} {
				row = append(row, strconv.Itoa(n))
			}
			_ = w.Write(append(row, strconv.FormatFloat(secondsOf(k.Oldest), 'f', -1, 64))) // as above
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
