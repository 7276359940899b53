package cli

import (
	"slices"
	"sync"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/dashboard"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/stack"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// functionPages show the functions of a stack, and the last lines of their logs, on the dashboard.
type functionPages struct {
	stack *stack.Stack

	mu    sync.Mutex
	lines []dashboard.Line // a ring once it is full
	next  int              // the oldest of a ring that is full
}

// keptLines is how many lines are kept; each is as long as one that is printed, at most.
const keptLines = 1000

// keep keeps a line of a log.
func (p *functionPages) keep(line emulator.Line) {
	kept := dashboard.Line{
		Time: line.Time, Function: line.Function, Request: line.RequestID, Text: terminal.Shorten(line.Text, maxLogged),
		Platform: line.Source == emulator.SourcePlatform, Trouble: line.Source == emulator.SourceTrouble,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) < keptLines {
		p.lines = append(p.lines, kept)
		return
	}
	p.lines[p.next] = kept
	p.next = (p.next + 1) % keptLines
}

// Lines returns the lines that are kept, the oldest first.
func (p *functionPages) Lines() []dashboard.Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(p.lines[p.next:], p.lines[:p.next])
}

// Functions describes the functions.
func (p *functionPages) Functions() []dashboard.Function {
	status := p.stack.Status()
	all := make([]dashboard.Function, len(status))
	for i, s := range status {
		f := dashboard.Function{
			Name: s.Name, ARN: s.ARN, Runtime: s.Runtime, Running: s.Running, Waiting: s.Waiting, Instances: s.Instances,
			Invokes: s.Invokes, Failed: s.Failed, Throttled: s.Throttled, Events: s.Events,
		}
		for _, e := range s.Next {
			f.Next = append(f.Next, dashboard.Event{ID: e.ID, Accepted: e.Accepted, Invokes: e.Invokes, Error: e.Error, Due: e.Due})
		}
		all[i] = f
	}
	return all
}
