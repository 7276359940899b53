package demo

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

const (
	redrawEvery = 100 * time.Millisecond // a live line
	printEvery  = 2 * time.Second        // lines of a log
	maxBar      = 30
)

// progress shows the progress: on a terminal one line that changes, elsewhere a line every two
// seconds.
type progress struct {
	out     *terminal.Terminal
	began   time.Time
	total   int
	tally   *tally
	service *service
	status  func() reprise.Status
}

// every returns the interval at which to call show.
func (p *progress) every() time.Duration {
	if p.out.Live() {
		return redrawEvery
	}
	return printEvery
}

// show shows the state of now.
func (p *progress) show() {
	delivered, dead := p.tally.counts()
	s := p.status()
	text := fmt.Sprintf("%d/%d", delivered+dead, p.total)
	if s.InBackoff > 0 {
		text += fmt.Sprintf(" %d waiting", s.InBackoff)
	}
	held := 0
	for _, b := range s.Breakers {
		held += b.Held
	}
	if held > 0 {
		text += fmt.Sprintf(" %d held", held)
	}
	if dead > 0 {
		text += fmt.Sprintf(" %d dead", dead)
	}
	if p.service.isDown() {
		text += " OUTAGE"
	}
	if !p.out.Live() {
		p.say(text)
		return
	}
	part := float64(delivered+dead) / float64(p.total)
	if room := min(maxBar, p.out.Width()-len(text)-3); room >= 5 {
		bar := p.out.Bar(part, room)
		text = fmt.Sprintf("%s%*s %s", bar, room-len([]rune(bar)), "", text)
	}
	p.out.Redraw(text)
}

// say prints a line with the time.
func (p *progress) say(text string) {
	p.out.Wrap(7, fmt.Sprintf("%5.1fs %s", time.Since(p.began).Seconds(), text))
}
