package simreport

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/reprise-sqs/reprise/simulate"
)

// Strategies are those of the published experiment, with the policies that wait like them.
var Strategies = []struct{ Name, Policy string }{
	{"none", "constant(0s) jitter=none"},
	{"exponential", "exponential(base=10ms,max=2s) jitter=none"},
	{"decorrelated", "exponential(base=5ms,max=2s) jitter=decorrelated"},
	{"equal", "exponential(base=10ms,max=2s) jitter=equal"},
	{"full", "exponential(base=10ms,max=2s) jitter=full"},
}

// Contention has the results of the experiment: a row for each number of clients, with the strategies
// in their order.
type Contention []Contended

// Contended is the results of one number of clients.
type Contended struct {
	Clients int
	// Strategies are fewer than all if the experiment was interrupted.
	Strategies []simulate.Contended
}

// Text is the results for people.
func (all Contention) Text() string {
	calls, took := [][]string{{"clients"}}, [][]string{{"clients"}}
	for _, s := range Strategies {
		calls[0], took[0] = append(calls[0], s.Name), append(took[0], s.Name)
	}
	for _, row := range all {
		clients := strconv.Itoa(row.Clients)
		c, t := []string{clients}, []string{clients}
		for _, r := range row.Strategies {
			c = append(c, strconv.FormatFloat(r.Calls, 'f', 0, 64))
			t = append(t, strconv.FormatInt(r.Took.Milliseconds(), 10))
		}
		calls, took = append(calls, c), append(took, t)
	}
	return "calls\n\n" + table(calls) + "\nmilliseconds until the last client has written\n\n" + table(took)
}

// JSON is the results for programs.
func (all Contention) JSON() ([]byte, error) {
	type row struct {
		Clients  int     `json:"clients"`
		Strategy string  `json:"strategy"`
		Calls    float64 `json:"calls"`
		Took     float64 `json:"took"`
	}
	var rows []row
	for _, r := range all {
		for i, c := range r.Strategies {
			rows = append(rows, row{r.Clients, Strategies[i].Name, c.Calls, secondsOf(c.Took)})
		}
	}
	text, err := json.MarshalIndent(map[string]any{"results": rows}, "", "  ")
	return append(text, '\n'), err
}

// CSV has the columns of the published program: clients, time in milliseconds, calls, strategy.
func (all Contention) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"clients", "time", "calls", "Algorithm"}) // Flush tells of an error
	for _, r := range all {
		for i, c := range r.Strategies {
			_ = w.Write([]string{strconv.Itoa(r.Clients), strconv.FormatInt(c.Took.Milliseconds(), 10), fmt.Sprintf("%.0f", c.Calls), Strategies[i].Name}) // as above
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// SVG is a picture of the calls.
func (all Contention) SVG() string {
	g := graph{heading: "clients that write one value with optimistic concurrency control", x: "clients that begin together", y: "writes until each has succeeded"}
	for i, s := range Strategies {
		line := graphLine{label: s.Name + ": " + s.Policy}
		for _, r := range all {
			if i >= len(r.Strategies) {
				break // the experiment was interrupted
			}
			line.points = append(line.points, [2]float64{float64(r.Clients), r.Strategies[i].Calls})
		}
		g.lines = append(g.lines, line)
	}
	return g.svg()
}
