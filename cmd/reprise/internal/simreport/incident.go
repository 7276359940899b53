package simreport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// Incident has the measurements of a queue and its consumers in consecutive periods, such as those of
// a CloudWatch metric.
type Incident struct {
	Start time.Time
	Every time.Duration
	// Periods has at least two elements. A value that was not measured is 0.
	Periods []Period
	// HasOldest, HasTakes and HasDead report whether these were measured.
	HasOldest, HasTakes, HasDead bool
}

// Period has the measurements of one period.
type Period struct {
	Arrived, Attempts, Done, Dead int
	Oldest, Takes                 time.Duration // the oldest message's age at the most, and the mean of a run
}

// measure is a column of an incident: its name and that of CloudWatch's metric.
type measure struct {
	name, metric string
	needed       bool
	into         func(*Incident, *Period, float64)
}

func ofSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

var measures = []measure{
	{"arrived", sentMetric, true, func(_ *Incident, p *Period, v float64) { p.Arrived = int(math.Round(v)) }},
	{"attempts", "NumberOfMessagesReceived", true, func(_ *Incident, p *Period, v float64) { p.Attempts = int(math.Round(v)) }},
	{"done", "NumberOfMessagesDeleted", true, func(_ *Incident, p *Period, v float64) { p.Done = int(math.Round(v)) }},
	{"dead", "", false, func(in *Incident, p *Period, v float64) { p.Dead, in.HasDead = int(math.Round(v)), true }},
	{"oldest", "ApproximateAgeOfOldestMessage", false, func(in *Incident, p *Period, v float64) { p.Oldest, in.HasOldest = ofSeconds(v), true }},
	{"takes", "", false, func(in *Incident, p *Period, v float64) { p.Takes, in.HasTakes = ofSeconds(v), true }},
}

// measureOf returns the index of the measure that a heading or a label names; -1: none.
func measureOf(label string) int {
	for i, m := range measures {
		if strings.EqualFold(strings.TrimSpace(label), m.name) || m.metric != "" && strings.Contains(label, m.metric) {
			return i
		}
	}
	return -1
}

// ReadIncident reads an incident: CSV with a time in the first column and a heading for each of the
// others, the JSON of get-metric-data, or the lines of reprise tail -o json. Columns that it does not
// know are ignored.
func ReadIncident(text []byte) (*Incident, error) {
	points := make([][]point, len(measures))
	var err error
	trimmed := bytes.TrimSpace(text)
	switch isJSON := len(trimmed) > 0 && trimmed[0] == '{'; {
	case isJSON && isTail(trimmed):
		return incidentOfTail(trimmed)
	case isJSON:
		err = incidentOfJSON(trimmed, points)
	default:
		err = incidentOfCSV(text, points)
	}
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, m := range measures {
		if m.needed && len(points[i]) == 0 {
			missing = append(missing, fmt.Sprintf("%s or %s", m.name, m.metric))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no %s: add it, as a column of CSV with that heading, or as a result of get-metric-data with that label", strings.Join(missing, ", no "))
	}
	return incidentOf(points)
}

func incidentOfJSON(text []byte, points [][]point) error {
	var m metricJSON
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("this is no reply of get-metric-data: %w", err)
	}
	for _, r := range m.Results {
		i := measureOf(r.Label)
		if i < 0 {
			continue
		}
		one, err := json.Marshal(metricJSON{Results: []metricResult{r}, NextToken: m.NextToken})
		if err == nil {
			points[i], err = pointsOfJSON(one)
		}
		if err != nil {
			return fmt.Errorf("the result %q: %w", r.Label, err)
		}
	}
	return nil
}

func incidentOfCSV(text []byte, points [][]point) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	columns := make(map[int]int) // to measures
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("this is neither JSON nor CSV: %w", err)
		}
		at, err := readTime(strings.TrimSpace(row[0]))
		if err != nil {
			if len(columns) > 0 && strings.TrimSpace(row[0]) != "" {
				line, column := r.FieldPos(0)
				return fmt.Errorf("line %d, column %d: %w", line, column, err)
			}
			for column, heading := range row {
				if i := measureOf(heading); i >= 0 {
					columns[column] = i
				}
			}
			continue
		}
		for column, i := range columns {
			if column >= len(row) || strings.TrimSpace(row[column]) == "" {
				continue // nothing was measured
			}
			value, err := strconv.ParseFloat(strings.TrimSpace(row[column]), 64)
			if err != nil || !(value >= 0 && value < 1e9) {
				line, start := r.FieldPos(column)
				return fmt.Errorf("line %d, column %d: %s is %q: write a number from 0 to a billion, or nothing if it was not measured", line, start, measures[i].name, row[column])
			}
			points[i] = append(points[i], point{at, value})
		}
	}
}

// incidentOf joins the measures by their times.
func incidentOf(points [][]point) (*Incident, error) {
	all := make(map[time.Time]bool)
	for _, of := range points {
		seen := make(map[time.Time]bool)
		for _, p := range of {
			if at := p.at.UTC(); seen[at] {
				return nil, fmt.Errorf("there are two points of %s: leave one out", at.Format(time.RFC3339))
			}
			seen[p.at.UTC()], all[p.at.UTC()] = true, true
		}
	}
	var times []point
	for at := range all {
		times = append(times, point{at: at})
	}
	counts, every, err := periods(times)
	if err != nil {
		return nil, err
	}
	if len(counts) > simulate.MaxBuckets {
		return nil, fmt.Errorf("there are %d periods: take %d at most, longer ones or a shorter time", len(counts), simulate.MaxBuckets)
	}
	start := slices.MinFunc(times, func(a, b point) int { return a.at.Compare(b.at) }).at
	in := &Incident{Start: start, Every: every, Periods: make([]Period, len(counts))}
	for i, of := range points {
		for _, p := range of {
			measures[i].into(in, &in.Periods[p.at.Sub(start)/every], p.value)
		}
	}
	for _, p := range in.Periods {
		if p.Arrived > 0 {
			return in, nil
		}
	}
	return nil, errors.New("no message arrived in any period: there is nothing to simulate")
}
