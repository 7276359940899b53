package serving

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
)

// Waiting shows the cost of waiting long polls, and that a message wakes exactly one.
func (b *Bench) Waiting() error {
	s, err := b.reprise("reprise serve --memory", "--memory", "--max-connections", "-1")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := b.load(s, 1); err != nil {
		return err
	}
	before, err := metrics(s)
	if err != nil {
		return err
	}
	n := b.scale.Polls
	polls, err := load.OpenPolls(s.process.Addr, s.queue, n)
	if err != nil {
		return err
	}
	defer polls.Close()
	waiting, err := allWaiting(s, n)
	if err != nil {
		return err
	}
	idle, err := b.idle(s)
	if err != nil {
		return err
	}
	if _, err := allWaiting(s, n); err != nil {
		return err
	}
	woken, err := b.wake(s, polls)
	if err != nil {
		return err
	}
	after, err := metrics(s)
	if err != nil {
		return err
	}
	goroutines := waiting[goroutines] - before[goroutines] // up to 20 of them are the server's own and its other connections'
	return b.figures(fmt.Sprintf("%d long polls that wait at once, reprise serve --memory", n), []figure{
		{fmt.Sprintf("server CPU in %v, ms", b.scale.Idle), float64(idle.Microseconds()) / 1e3, 0, 10 * b.scale.Idle.Seconds()},
		{"goroutines for each: net/http has two", goroutines / float64(n), 0, 2 + 20/float64(n)},
		{"polls that one message wakes", float64(woken), 1, 1},
		{"polls that wait on", after[longPolls], float64(n - 1), float64(n - 1)},
	})
}

// idle is the processor time that the server uses while idle.
func (b *Bench) idle(s *subject) (time.Duration, error) {
	before, err := s.process.CPU()
	if err != nil {
		return 0, err
	}
	time.Sleep(b.scale.Idle)
	after, err := s.process.CPU()
	return after - before, err
}

// wake sends a message and returns how many polls were answered within a second.
func (b *Bench) wake(s *subject, polls *load.Polls) (woken int, err error) {
	err = load.Call(s.process.Addr, "SendMessage", map[string]any{"QueueUrl": s.queue, "MessageBody": "wake one"}, nil)
	if err != nil {
		return 0, err
	}
	end := time.After(time.Second)
	for {
		select {
		case got := <-polls.Answers:
			if got != 1 {
				return 0, fmt.Errorf("a poll was answered with %d messages", got)
			}
			woken++
		case <-end:
			return woken, nil
		}
	}
}

// The metrics of the program.
const (
	goroutines = "go_goroutines"
	longPolls  = "reprise_queue_long_polls"
)

// allWaiting waits until n polls wait.
func allWaiting(s *subject, n int) (map[string]float64, error) {
	for began := time.Now(); ; {
		m, err := metrics(s)
		if err != nil || m[longPolls] == float64(n) {
			return m, err
		}
		if time.Since(began) > 5*time.Second {
			return nil, fmt.Errorf("%.0f of %d polls wait: is the machine too slow for them, or has it too few files (ulimit -n)?", m[longPolls], n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// metrics are the program's metrics, without labels, because there is one queue.
func metrics(s *subject) (map[string]float64, error) {
	response, err := http.Get(s.process.URL() + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	all := make(map[string]float64)
	for lines := bufio.NewScanner(response.Body); ; {
		if !lines.Scan() {
			return all, lines.Err()
		}
		name, text, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			all[name] = value
		}
	}
}

// figure is a value and its bounds.
type figure struct {
	name        string
	value       float64
	least, most float64
}

func (b *Bench) figures(title string, all []figure) error {
	fmt.Fprintf(b.out, "%s\n\n", title)
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, f := range all {
		verdict := "missed"
		if f.value >= f.least && f.value <= f.most {
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%.2f\tat least %.2f, at most %.2f: %s\t\n", f.name, f.value, f.least, f.most, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.out)
	return err
}
