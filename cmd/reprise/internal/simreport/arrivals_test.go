package simreport_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
)

// TestArrivals checks the forms in which CloudWatch gives a metric.
func TestArrivals(t *testing.T) {
	want := []int{5, 0, 7, 9}
	for name, text := range map[string]string{
		"get-metric-data": `{"MetricDataResults": [
			{"Id": "a", "Label": "orders ApproximateNumberOfMessagesVisible", "Timestamps": ["2026-01-31T09:00:00Z"], "Values": [1], "StatusCode": "Complete"},
			{"Id": "b", "Label": "orders NumberOfMessagesSent", "Timestamps": ["2026-01-31T09:03:00+00:00", "2026-01-31T09:00:00Z", "2026-01-31T09:02:00Z"], "Values": [9.0, 5, 7], "StatusCode": "Complete"}], "Messages": []}`,
		"get-metric-data of an older CLI": `{"MetricDataResults": [{"Id": "b", "Label": "x", "Timestamps": [1769850000.0, 1769850120, 1769850180], "Values": [5, 7, 9], "StatusCode": "Complete"}]}`,
		"get-metric-statistics":           `{"Label": "NumberOfMessagesSent", "Datapoints": [{"Timestamp": "2026-01-31T09:02:00Z", "Sum": 7, "Unit": "Count"}, {"Timestamp": "2026-01-31T09:00:00Z", "Sum": 5}, {"Timestamp": "2026-01-31T09:03:00Z", "Sum": 9}]}`,
		"CSV of the console":              "Label,orders Visible,orders NumberOfMessagesSent\nFull label,a,b\n\n2026/01/31 09:00:00,1,5\n2026/01/31 09:02:00,1,7\n2026/01/31 09:03:00,1,9\n2026/01/31 09:04:00,1,\n",
		"CSV without headings":            "2026-01-31T09:00:00Z,5\n2026-01-31T09:02:00Z,7\n2026-01-31T09:03:00Z,9\n",
	} {
		counts, every, err := simreport.ReadArrivals([]byte(text))
		if err != nil || every != time.Minute || !slices.Equal(counts, want) {
			t.Errorf("%s: %v of %v, %v; want %v of 1m", name, counts, every, err, want)
		}
	}
	for text, want := range map[string]string{
		"":  "0 points",
		"{": "no reply of CloudWatch",
		`{"MetricDataResults": [{"Label": "x", "Timestamps": [1, 2], "Values": [1]}]}`: "2 Timestamps and 1 Values",
		`{"MetricDataResults": [{"Label": "x", "StatusCode": "PartialData"}]}`:         "PartialData",
		`{"MetricDataResults": [{"Label": "x"}, {"Label": "y"}]}`:                      `"x", "y"`,
		`{"MetricDataResults": [], "NextToken": "t"}`:                                  "NextToken",
		`{"Datapoints": [{"Timestamp": "2026-01-31T09:00:00Z", "Average": 7}]}`:        "--statistics Sum",
		`{"Datapoints": [{"Timestamp": "today", "Sum": 7}]}`:                           "no time",
		"2026-01-31T09:00:00Z,5\n2026-01-31T09:00:00Z,5\n":                             "two points",
		"2026-01-31T09:00:00Z,5\n2026-01-31T09:01:00Z,5\n2026-01-31T09:02:30Z,5\n":     "does not fit",
		"2026-01-31T09:00:00Z,5\n2026-01-31T09:01:00Z,-5\n":                            "a number of messages",
		"2026-01-31T09:00:00Z,5\n2026-01-31T09:01:00Z,many\n":                          "no number",
		"2026-01-31T09:00:00Z,5\n2026-01-31T09:01:00Z\n":                               "no column",
		"2000-01-31T09:00:00Z,5\n2000-01-31T09:00:01Z,5\n2026-01-31T09:01:00Z,5\n":     "shorter time",
	} {
		if _, _, err := simreport.ReadArrivals([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}

// FuzzArrivals checks that nothing that is read as arrivals is negative or endless.
func FuzzArrivals(f *testing.F) {
	f.Add([]byte(`{"Datapoints": [{"Timestamp": "2026-01-31T09:02:00Z", "Sum": 7}, {"Timestamp": 1769850000, "Sum": 1e3}]}`))
	f.Add([]byte("2026-01-31 09:00,5\n2026-01-31 09:01,7\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		counts, every, err := simreport.ReadArrivals(text)
		if err == nil && (every <= 0 || len(counts) < 2 || len(counts) > 1_000_000 || slices.Min(counts) < 0) {
			t.Fatalf("%q is read as %d periods of %v", text, len(counts), every)
		}
	})
}

// FuzzScenario checks that no file makes the reader panic.
func FuzzScenario(f *testing.F) {
	f.Add([]byte("traffic: {rate: 20}\npolicy: constant(1s)\n"), "base=1s..1m", "p99<10m, dead=0")
	f.Add([]byte("{traffic: [}"), "attempts=1..9", "cost<=$1")
	f.Fuzz(func(t *testing.T, text []byte, sweep, find string) {
		s, err := simreport.ReadScenario(text)
		if err != nil {
			return
		}
		_ = s.Validate()
		_, _ = simreport.Sweep(s, sweep)
		_, _ = simreport.Vary(s, sweep)
		_, _ = simreport.ReadConditions(find)
	})
}
