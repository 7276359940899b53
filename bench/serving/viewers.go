package serving

import (
	"fmt"
	"net/url"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
)

// viewers is how many look at once, and queues how many queues the overview has for them.
const (
	viewers = 50
	queues  = 20
)

// Viewers shows what viewers of the dashboard cost a server that is busy: half of them look at the overview, half at
// the page of the queue that is loaded. The aim is one of the server's processor time. The rate is lower by more than
// that, since the viewers run on the same processors, where each of them takes its share, too.
func (b *Bench) Viewers() error {
	s, err := b.reprise("nobody looks", "--memory")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := b.load(s, 8); err != nil {
		return err
	}
	for i := range queues - 1 {
		if _, err := load.CreateQueue(s.process.Addr, fmt.Sprintf("queue-%02d", i)); err != nil {
			return err
		}
	}
	watched := *s
	watched.name = fmt.Sprintf("%d viewers look", viewers)
	all, err := interleave(b.scale.Rounds, []*subject{s, &watched}, b.busy(&watched))
	if err != nil {
		return err
	}
	of := all["busy"]
	return b.table("What viewers of the dashboard cost a busy server", fmt.Sprintf("medians of %d rounds of %v, messages of 1 KiB sent, received and deleted in batches of ten, 8 connections, %d queues",
		b.scale.Rounds, b.scale.Watch, queues), []line{
		{s.name, of[0], nil, aim{}},
		{watched.name, of[1], of[0], aim{ofCPU, 0, 1.05}},
	})
}

// busy sends, receives and deletes messages for a while. Viewers look meanwhile if it is watched's turn.
func (b *Bench) busy(watched *subject) step {
	var looking *load.Viewers
	return step{
		name: "busy",
		before: func(s *subject) (r load.Report, err error) {
			if s == watched {
				queue := "/ui/queues/" + url.PathEscape("bench")
				looking, err = load.OpenViewers(s.process.Addr, viewers, load.Page{Stream: "/?live=1"}, load.Page{Stream: queue + "?live=1", Figures: queue + "/figures"})
			}
			return r, err
		},
		do: func(s *subject) (all load.Report, err error) {
			for end := time.Now().Add(b.scale.Watch); time.Now().Before(end); {
				for _, do := range []func(int) (load.Report, error){s.client.Send, s.client.Work} {
					report, err := do(s.messages)
					if err != nil {
						return all, err
					}
					all.Add(report)
				}
			}
			all.Messages /= 2 // each was sent, and then received and deleted
			return all, nil
		},
		after: func(s *subject) (r load.Report, err error) {
			if s == watched {
				_, err = looking.Close()
			}
			return r, err
		},
	}
}
