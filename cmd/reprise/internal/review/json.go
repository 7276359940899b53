package review

import (
	"encoding/json"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

// The JSON forms. Times are in seconds.
type (
	jsonReport struct {
		Policy   string       `json:"policy"`
		Errors   int          `json:"errors"`
		Warnings int          `json:"warnings"`
		Queues   []jsonReview `json:"queues"`
		Notes    []jsonNote   `json:"notes,omitempty"`
	}
	jsonReview struct {
		Name        string              `json:"name"`
		Source      string              `json:"source,omitempty"`
		Line        int                 `json:"line,omitempty"`
		ARN         string              `json:"arn,omitempty"`
		Unknown     []string            `json:"unknown,omitempty"`
		Findings    []jsonFinding       `json:"findings"`
		Attempts    []jsonAttempt       `json:"attempts"`
		Ends        map[string]jsonStop `json:"ends"`
		Permissions *plan.Document      `json:"permissions,omitempty"`
	}
	jsonFinding struct {
		Severity string `json:"severity"`
		Code     string `json:"code"`
		Problem  string `json:"problem"`
		Remedy   string `json:"remedy"`
	}
	jsonAttempt struct {
		Attempt  int       `json:"attempt"`
		Wait     *jsonSpan `json:"wait,omitempty"`
		Since    jsonSpan  `json:"since"`
		By       string    `json:"by,omitempty"`
		Receives int       `json:"receives"`
		Copies   int       `json:"copies"`
	}
	jsonSpan struct {
		Least    float64 `json:"least"`
		Expected float64 `json:"expected"`
		Most     float64 `json:"most"`
	}
	jsonStop struct {
		Stop     string  `json:"stop"`
		Attempts int     `json:"attempts"`
		Receives int     `json:"receives"`
		Copies   int     `json:"copies"`
		After    float64 `json:"after"`
	}
	jsonNote struct {
		File string `json:"file"`
		Line int    `json:"line,omitempty"`
		Text string `json:"text"`
	}
)

// JSON is the report for programs.
func (r Report) JSON() ([]byte, error) {
	out := jsonReport{Policy: policyText(r.Policy), Errors: r.Count(plan.Error), Queues: make([]jsonReview, len(r.Reviews))}
	out.Warnings = r.Count(plan.Warning) - out.Errors
	for i, review := range r.Reviews {
		out.Queues[i] = review.json()
	}
	for _, n := range r.Notes {
		out.Notes = append(out.Notes, jsonNote(n))
	}
	return indented(out)
}

func (r Review) json() jsonReview {
	out := jsonReview{
		Name: r.Name, Source: r.Source, Line: r.Line, ARN: r.Queue.ARN, Unknown: r.Unknown, Permissions: r.Permissions,
		Findings: make([]jsonFinding, len(r.Findings)), Attempts: make([]jsonAttempt, len(r.Schedule.Attempts)),
		Ends: map[string]jsonStop{"shortest": jsonEnd(r.Schedule.Shortest), "expected": jsonEnd(r.Schedule.Expected), "longest": jsonEnd(r.Schedule.Longest)},
	}
	for i, f := range r.Findings {
		out.Findings[i] = jsonFinding{f.Severity.String(), f.Code, f.Problem, f.Remedy}
	}
	for i, a := range r.Schedule.Attempts {
		out.Attempts[i] = jsonAttempt{Attempt: a.N, Since: span(a.Since), By: a.Leg.Carry.String(), Receives: a.Leg.Receives, Copies: a.Leg.Copies}
		if a.N > 1 {
			wait := span(a.Wait)
			out.Attempts[i].Wait = &wait
		}
	}
	return out
}

func span(s plan.Span) jsonSpan {
	return jsonSpan{seconds(s.Least), seconds(s.Expected), seconds(s.Most)}
}

func jsonEnd(e plan.End) jsonStop {
	return jsonStop{e.Stop.String(), e.Attempts, e.Receives, e.Copies, seconds(e.After)}
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
