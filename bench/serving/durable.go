package serving

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/bench/appendlog"
)

// disk is the load of a durable server: the number of clients, and how much longer syncs take than
// on this machine's disk.
type disk struct {
	clients int
	delay   time.Duration
}

var disks = []disk{{16, 0}, {128, 0}, {16, time.Millisecond}, {128, time.Millisecond}}

func (d disk) String() string {
	if d.delay == 0 {
		return fmt.Sprintf("%d clients", d.clients)
	}
	return fmt.Sprintf("%d clients, syncs %v slower", d.clients, d.delay)
}

// Durable compares the server that syncs before it acknowledges with the one in memory. It does the
// same for the server over a minimal journal: where that misses the aims too, the journal is not
// the cause.
func (b *Bench) Durable() error {
	return b.overDisks("What durability costs",
		contender{name: "reprise serve --memory", start: func(name string, _ disk) (*subject, error) { return b.reprise(name, "--memory") }},
		contender{name: "the same over an append log", start: b.overLog},
		contender{"reprise serve --data", map[string]aim{"send": {ofRate, 0.7, 0}, "receive+delete": {ofRate, 0.9, 0}},
			func(name string, d disk) (*subject, error) { return b.durable(name, d.delay) }})
}

// Journal compares the server over its journal, Pebble, with the server over a minimal journal.
func (b *Bench) Journal() error {
	return b.overDisks("What is lost to a bare append log, which gives no space back",
		contender{name: "append log", start: b.overLog},
		contender{name: "Pebble", start: func(name string, d disk) (*subject, error) {
			return b.durable(name, d.delay, "--no-metrics") // the other server has none
		}})
}

// overLog starts the server over an append log.
func (b *Bench) overLog(name string, d disk) (*subject, error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, err
	}
	return b.child(name, childConfig{Log: &appendlog.Options{Dir: dir, Reserve: b.scale.Reserve, SyncDelay: d.delay}})
}

// contender is a kind of server in a comparison, and its aims by step.
type contender struct {
	name  string
	aims  map[string]aim
	start func(name string, d disk) (*subject, error)
}

// overDisks compares kinds of servers with the first one, on every disk.
func (b *Bench) overDisks(title string, contenders ...contender) error {
	var lines []line
	for _, d := range disks {
		all, err := b.onDisk(d, contenders)
		if err != nil {
			return err
		}
		for _, name := range []string{"send", "receive+delete"} {
			base := all[name][0]
			lines = append(lines, line{fmt.Sprintf("%v: %s, %s", d, name, contenders[0].name), base, nil, aim{}})
			for i, r := range contenders[1:] {
				lines = append(lines, line{fmt.Sprintf("%v: %s, %s", d, name, r.name), all[name][i+1], base, r.aims[name]})
			}
		}
	}
	return b.table(title, b.medians(", fresh bodies"), lines)
}

func (b *Bench) onDisk(d disk, contenders []contender) (samples, error) {
	var subjects []*subject
	defer func() { stopAll(subjects) }()
	for _, r := range contenders {
		s, err := r.start(r.name, d)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
		if err := b.load(s, d.clients); err != nil {
			return nil, err
		}
	}
	return interleave(b.scale.Rounds, subjects, sending, working)
}
