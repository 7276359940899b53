package simreport_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestQueues: the file of a scenario has further queues, and the reports their figures.
func TestQueues(t *testing.T) {
	s, err := simreport.ReadScenario([]byte(`
traffic: {backlog: 300}
policy: constant(1s) attempts=2
fleet: {concurrency: 2, weight: 2}
dependency: {outages: [{at: 5s, for: 10s}]}
pool:
  - name: orders
    priority: 1
    traffic: {rate: 5, for: 30s}
    policy: constant(5s) attempts=3
    handler: {takes: 20ms, fails: [0.5]}
  - {name: reports, traffic: {backlog: 200}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := simreport.Report{Runs: []simreport.Run{{Result: r}}}
	two := simreport.Report{Runs: []simreport.Run{{Label: "a", Result: r}, {Label: "b", Result: r}}}
	for text, wants := range map[string][]string{
		one.Text(80, false): {"300 messages at the start; orders: 5 messages a second for 30s; reports: 200 messages at the start", "2 handlers that main, orders and reports share", "queue    priority  weight  done", "\nmain            0       2   300", "\norders          1       1 ", "\nreports         0       1   200"},
		two.Text(80, false): {"\nA  main            0       2   300", "\nB  reports "},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	}
	text, err := one.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs []struct {
			Scenario struct {
				Fleet struct{ Weight int }
				Pool  []struct{ Name, Policy string }
			}
			Queues []struct {
				Name             string
				Priority, Weight int
				Messages         simulate.Messages
				P99, Oldest      float64
				Cleared          []*float64
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	run := got.Runs[0]
	if len(run.Queues) != 3 || run.Queues[1].Name != "orders" || run.Queues[1].Messages != r.Queues[1].Messages || len(run.Queues[2].Cleared) != 1 || run.Queues[2].P99 <= run.Queues[1].P99/10 {
		t.Errorf("the queues are %+v", run.Queues)
	}
	if p := run.Scenario.Pool; len(p) != 2 || !strings.HasPrefix(p[0].Policy, "constant(5s)") || !strings.HasPrefix(p[1].Policy, "constant(1s)") || run.Scenario.Fleet.Weight != 2 {
		t.Errorf("the scenario has %+v", run.Scenario)
	}
}
