package dashboard

import (
	"slices"
	"time"
)

// Functions are the Lambda functions that the process runs.
type Functions interface {
	// Functions describes them, by name.
	Functions() []Function
	// Lines returns the last lines of their logs, the oldest first.
	Lines() []Line
}

// Function is a Lambda function.
type Function struct {
	Name, ARN, Runtime string
	// Running are the invokes that are being run, Waiting those that wait for a place, Instances its processes.
	Running, Waiting, Instances int
	// Invokes have ended since the start, Failed of these with an error; Throttled were refused.
	Invokes, Failed, Throttled int64
	// Events is how many asynchronous events have not ended; Next are those of them that are due first.
	Events int
	Next   []Event
}

// Event is an asynchronous event that has not ended.
type Event struct {
	ID       string
	Accepted time.Time
	Invokes  int       // so far
	Error    string    // what the last of them said
	Due      time.Time // of the next; zero: it is being made
}

// Line is a line of a function's log.
type Line struct {
	Time     time.Time
	Function string // empty: of the program itself
	Request  string // empty: of none
	// Platform: Lambda has written it, not the function. Trouble: it is about a loss, or a mistake to be corrected.
	Platform, Trouble bool
	Text              string
}

// lambdaPage is of a process that runs functions.
var lambdaPage = page{
	path: Path + "lambda", template: "lambda", nav: "Lambda", live: time.Second,
	only: func(cfg *Config) bool { return cfg.Functions != nil },
	data: func(v *view) (string, any, error) {
		return "Lambda", v.lambda(), nil
	},
}

// lambda has the functions, what waits for a retry, and their logs.
type lambda struct {
	Functions []Function
	Waiting   []waitingEvent
	Names     []string // of the functions, to choose from
	Only      string   // the function whose log is shown; empty: all
	Lines     []Line   // the newest first
}

type waitingEvent struct {
	Function string
	Event
}

// shownLines is how many lines of logs the page has.
const shownLines = 200

func (v *view) lambda() *lambda {
	l := &lambda{Functions: v.cfg.Functions.Functions(), Only: v.URL.Query().Get("function")}
	for i := range l.Functions {
		f := &l.Functions[i]
		l.Names = append(l.Names, f.Name)
		for _, e := range f.Next {
			if !e.Due.IsZero() || e.Invokes > 0 {
				l.Waiting = append(l.Waiting, waitingEvent{f.Name, e})
			}
		}
	}
	slices.SortStableFunc(l.Waiting, func(a, b waitingEvent) int { return a.Due.Compare(b.Due) })
	for _, line := range slices.Backward(v.cfg.Functions.Lines()) {
		if len(l.Lines) == shownLines {
			break
		}
		if l.Only == "" || line.Function == l.Only {
			l.Lines = append(l.Lines, line)
		}
	}
	return l
}

// More is how many events have not ended that are not listed.
func (l *lambda) More() (n int) {
	for i := range l.Functions {
		n += l.Functions[i].Events - len(l.Functions[i].Next)
	}
	return n
}
