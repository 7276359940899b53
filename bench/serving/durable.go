package serving

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/bench/appendlog"
)

// disk is how a durable server is loaded: by so many clients, on a disk whose
// syncs take so much longer than this machine's.
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

// Durable compares the server that syncs before it acknowledges to the one in
// memory.
func (b *Bench) Durable() error {
	aims := map[string]aim{"send": {ofRate, 0.7, 0}, "receive+delete": {ofRate, 0.9, 0}}
	return b.overDisks("What durability costs", "reprise serve --data", "reprise serve --memory", aims,
		func(name string, d disk) (*subject, error) { return b.durable(name, d.delay) },
		func(name string, _ disk) (*subject, error) { return b.reprise(name, "--memory") })
}

// Journal compares the server over its journal, Pebble, to the same over the least
// that a journal can be.
func (b *Bench) Journal() error {
	return b.overDisks("What is lost to a bare append log, which gives no space back", "Pebble", "append log", nil,
		func(name string, d disk) (*subject, error) {
			return b.durable(name, d.delay, "--no-metrics") // the other has none
		},
		func(name string, d disk) (*subject, error) {
			dir, err := b.newDir()
			if err != nil {
				return nil, err
			}
			return b.child(name, childConfig{Log: &appendlog.Options{Dir: dir, Reserve: b.scale.Reserve, SyncDelay: d.delay}})
		})
}

// overDisks compares two kinds of servers on every disk: how the first does beside
// the second.
func (b *Bench) overDisks(title, first, second string, aims map[string]aim, startFirst, startSecond func(string, disk) (*subject, error)) error {
	var lines []line
	for _, d := range disks {
		all, err := b.onDisk(d, func() (*subject, error) { return startFirst(first, d) }, func() (*subject, error) { return startSecond(second, d) })
		if err != nil {
			return err
		}
		for _, name := range []string{"send", "receive+delete"} {
			of := all[name]
			lines = append(lines,
				line{fmt.Sprintf("%v: %s, %s", d, name, second), of[1], nil, aim{}},
				line{fmt.Sprintf("%v: %s, %s", d, name, first), of[0], of[1], aims[name]})
		}
	}
	return b.table(title, b.medians(", fresh bodies"), lines)
}

func (b *Bench) onDisk(d disk, starts ...func() (*subject, error)) (samples, error) {
	var subjects []*subject
	defer func() { stopAll(subjects) }()
	for _, start := range starts {
		s, err := start()
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
