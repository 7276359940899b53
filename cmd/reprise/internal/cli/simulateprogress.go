package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/simulate"
)

// simulationProgress shows how far a long simulation has come.
type simulationProgress struct {
	terminal *terminal.Terminal
	live     bool
	last     time.Time
	shown    bool
}

func (a *app) progress() *simulationProgress {
	t := terminal.New(a.stderr.file, os.Getenv)
	return &simulationProgress{terminal: t, live: t.Live(), last: time.Now()}
}

// Progress is shown when a simulation has run for a second of real time, and every fifth of one.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func (p *simulationProgress) at(i, of int, now simulate.Progress) {
	p.show(func() string {
		which := ""
		if of > 1 {
			which = fmt.Sprintf("%d of %d: ", i+1, of)
		}
		return fmt.Sprintf("simulating %s%v, %d of %d messages settled, %d attempts", which, now.Time.Round(time.Second), now.Settled, now.Arrived, now.Attempts)
	})
}

// show shows what text returns, if it is time to.
func (p *simulationProgress) show(text func() string) {
	due := progressAfter
	if p.shown {
		due = progressEvery
	}
	if !p.live || time.Since(p.last) < due {
		return
	}
	p.last, p.shown = time.Now(), true
	p.terminal.Redraw(text())
}

func (p *simulationProgress) done() {
	if p.shown {
		p.terminal.Redraw("")
		p.terminal.Done()
	}
}
