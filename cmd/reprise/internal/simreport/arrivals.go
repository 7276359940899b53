package simreport

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sentMetric is the CloudWatch metric of a queue that says how many messages arrived.
const sentMetric = "NumberOfMessagesSent"

// point is a value of a metric.
type point struct {
	at    time.Time
	value float64
}

// ReadArrivals reads how many messages arrived in each period from what CloudWatch gives: the JSON of
// get-metric-data or get-metric-statistics, or CSV with a time in the first column. Periods that are
// missing had no messages.
func ReadArrivals(text []byte) (counts []int, every time.Duration, err error) {
	var points []point
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		points, err = pointsOfJSON(trimmed)
	} else {
		points, err = pointsOfCSV(text)
	}
	if err != nil {
		return nil, 0, err
	}
	return periods(points)
}

// metricJSON is what is used of the replies of get-metric-data and get-metric-statistics.
type metricJSON struct {
	Results    []metricResult `json:"MetricDataResults"`
	NextToken  string         `json:"NextToken"`
	Label      string         `json:"Label"`
	Datapoints []struct {
		Timestamp json.RawMessage `json:"Timestamp"`
		Sum       *float64        `json:"Sum"`
	} `json:"Datapoints"`
}

type metricResult struct {
	ID         string            `json:"Id"`
	Label      string            `json:"Label"`
	Timestamps []json.RawMessage `json:"Timestamps"`
	Values     []float64         `json:"Values"`
	StatusCode string            `json:"StatusCode"`
}

func pointsOfJSON(text []byte) (points []point, err error) {
	var m metricJSON
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("this is no reply of CloudWatch: %w", err)
	}
	if m.NextToken != "" {
		return nil, errors.New("there is a NextToken, so this is not the whole metric: ask for the rest, or for fewer points")
	}
	for _, d := range m.Datapoints {
		if d.Sum == nil {
			return nil, errors.New("a data point has no Sum: ask for --statistics Sum")
		}
		at, err := instant(d.Timestamp)
		if err != nil {
			return nil, err
		}
		points = append(points, point{at, *d.Sum})
	}
	if len(m.Results) == 0 {
		return points, nil
	}
	chosen, labels := -1, []string(nil)
	for i, r := range m.Results {
		labels = append(labels, strconv.Quote(cmp.Or(r.Label, r.ID)))
		if len(m.Results) == 1 || strings.Contains(r.Label, sentMetric) {
			chosen = i
		}
	}
	if chosen < 0 {
		return nil, fmt.Errorf("no result has %s in its label, but %s: ask for that metric, with the statistic Sum", sentMetric, strings.Join(labels, ", "))
	}
	r := m.Results[chosen]
	if r.StatusCode != "" && r.StatusCode != "Complete" {
		return nil, fmt.Errorf("the StatusCode of %s is %s: ask again, or for fewer points", labels[chosen], r.StatusCode)
	}
	if len(r.Timestamps) != len(r.Values) {
		return nil, fmt.Errorf("%s has %d Timestamps and %d Values", labels[chosen], len(r.Timestamps), len(r.Values))
	}
	for i := range r.Values {
		at, err := instant(r.Timestamps[i])
		if err != nil {
			return nil, err
		}
		points = append(points, point{at, r.Values[i]})
	}
	return points, nil
}

// instant reads a time as one of the AWS CLI's formats has it: ISO 8601, or seconds since 1970.
func instant(raw json.RawMessage) (time.Time, error) {
	return readTime(strings.Trim(string(raw), `"`))
}

// timeForms are those that CloudWatch's API and its console write.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006/01/02 15:04:05", "2006-01-02 15:04", "2006/01/02 15:04"}

func readTime(text string) (time.Time, error) {
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 1e9 && s < 1e11 {
		return time.Unix(int64(s), 0), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: it has to be like 2026-01-31T09:00:00Z, or seconds since 1970", text)
}

// pointsOfCSV takes the rows that begin with a time. The column is the one whose heading names the
// metric; without such a heading, the second.
func pointsOfCSV(text []byte) (points []point, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("this is neither JSON nor CSV: %w", err)
	}
	column := 1
	for _, row := range rows {
		at, err := readTime(strings.TrimSpace(row[0]))
		if err != nil {
			for i, heading := range row {
				if strings.Contains(heading, sentMetric) {
					column = i
				}
			}
			continue
		}
		if column >= len(row) {
			return nil, fmt.Errorf("the row of %s has no column %d", row[0], column+1)
		}
		if row[column] = strings.TrimSpace(row[column]); row[column] == "" {
			continue // nothing was measured
		}
		value, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			return nil, fmt.Errorf("the row of %s: %q is no number", row[0], row[column])
		}
		points = append(points, point{at, value})
	}
	return points, nil
}

// maxPeriods is how many periods may be read: CloudWatch gives 100,800 points at the most.
const maxPeriods = 1_000_000

// periods sorts the points and fills in the periods that are missing.
func periods(points []point) (counts []int, every time.Duration, err error) {
	if len(points) < 2 {
		return nil, 0, fmt.Errorf("there are %d points: at least two tell how long a period is", len(points))
	}
	slices.SortFunc(points, func(a, b point) int { return a.at.Compare(b.at) })
	for i := range points[1:] {
		gap := points[i+1].at.Sub(points[i].at)
		if gap == 0 {
			return nil, 0, fmt.Errorf("there are two points of %s", points[i].at.Format(time.RFC3339))
		}
		if every == 0 || gap < every {
			every = gap
		}
	}
	first, last := points[0].at, points[len(points)-1].at
	n := last.Sub(first)/every + 1
	if n > maxPeriods {
		return nil, 0, fmt.Errorf("from %s to %s there are %d periods of %v: take a shorter time", first.Format(time.RFC3339), last.Format(time.RFC3339), n, every)
	}
	counts = make([]int, n)
	for _, p := range points {
		offset := p.at.Sub(first)
		if offset%every != 0 {
			return nil, 0, fmt.Errorf("the point of %s does not fit to periods of %v: take points of one period", p.at.Format(time.RFC3339), every)
		}
		if !(p.value >= 0 && p.value < 1e9) {
			return nil, 0, fmt.Errorf("the value of %s is %g: it has to be a number of messages", p.at.Format(time.RFC3339), p.value)
		}
		counts[offset/every] = int(math.Round(p.value))
	}
	return counts, every, nil
}
