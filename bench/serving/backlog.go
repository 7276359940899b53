package serving

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/reprise-sqs/reprise/bench/load"
)

// crowd is the kind of messages that fill a queue while others are received.
type crowd struct {
	name string
	fill func(s *subject, n int) error
	aim  aim // for many beside few
}

var crowds = []crowd{
	{"waiting", fillWaiting, aim{ofCPU, 0, 1.2}},
	{"in backoff", fillHidden, aim{ofCPU, 0, 1.5}},
}

// Backlog compares receives from queues with many messages and from queues with few. Over an append
// log the bodies of many messages are also only on disk, but nothing is searched, decompressed or
// reorganised: where that misses the aim too, the journal is not the cause.
func (b *Bench) Backlog() error {
	var lines []line
	for _, kind := range []struct {
		name   string
		start  func(name string) (*subject, error)
		crowds []crowd
	}{
		{"--memory", func(name string) (*subject, error) { return b.reprise(name, "--memory") }, crowds},
		{"--data", func(name string) (*subject, error) { return b.durable(name, 0) }, crowds},
		{"append log", func(name string) (*subject, error) { return b.overLog(name, disk{}) }, []crowd{{"waiting", fillWaiting, aim{}}}},
	} {
		for _, c := range kind.crowds {
			more, err := b.crowded(kind.name, c, kind.start)
			if err != nil {
				return err
			}
			lines = append(lines, more...)
		}
	}
	return b.table("What a full queue costs those who receive", b.medians(", 8 connections, p50 and p99 of a call"), lines)
}

// crowded measures receives from a queue with few and from one with many.
func (b *Bench) crowded(kind string, c crowd, start func(name string) (*subject, error)) ([]line, error) {
	var subjects []*subject
	defer func() { stopAll(subjects) }()
	sizes := []int{b.scale.Few, b.scale.Many}
	portion := b.scale.Few / 2 // received at a time: fewer than there are
	for _, n := range sizes {
		s, err := start(fmt.Sprintf("%s, %d %s", kind, n, c.name))
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
		if err := b.load(s, 8); err != nil {
			return nil, err
		}
		if err := c.fill(s, n); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		s.messages = portion
	}
	cycle := receiving
	cycle.before, cycle.after = sending.do, deleting.do
	cycle.times = b.scale.Messages / portion
	all, err := interleave(b.scale.Rounds, subjects, cycle)
	if err != nil {
		return nil, err
	}
	for i, s := range subjects {
		if err := holds(s, sizes[i]); err != nil {
			return nil, err
		}
	}
	of := all[cycle.name]
	return []line{{subjects[0].name, of[0], nil, aim{}}, {subjects[1].name, of[1], of[0], c.aim}}, nil
}

func fillWaiting(s *subject, n int) error {
	_, err := s.client.Send(n)
	return err
}

// fillHidden hides messages as failed attempts do: a tenth, as many as may be in flight, is
// received and hidden, and the others are sent anew with a delay. They come back after ten minutes
// or later.
func fillHidden(s *subject, n int) error {
	received := n / 10
	if _, err := s.client.Send(received); err != nil {
		return err
	}
	hiding := load.Open(s.process.Addr, s.queue, 8) // another client, because s.client deletes the messages that it has received
	defer hiding.Close()
	if _, err := hiding.Receive(received); err != nil {
		return err
	}
	if err := setDelay(s, 900); err != nil {
		return err
	}
	if _, err := s.client.Send(n - received); err != nil {
		return err
	}
	return setDelay(s, 0)
}

// setDelay sets for how many seconds messages sent from now on are hidden.
func setDelay(s *subject, seconds int) error {
	return load.Call(s.process.Addr, "SetQueueAttributes", map[string]any{
		"QueueUrl": s.queue, "Attributes": map[string]string{"DelaySeconds": strconv.Itoa(seconds)},
	}, nil)
}

// holds checks that a queue has n messages, in any state.
func holds(s *subject, n int) error {
	var out struct{ Attributes map[string]string }
	err := load.Call(s.process.Addr, "GetQueueAttributes", map[string]any{"QueueUrl": s.queue, "AttributeNames": []string{"All"}}, &out)
	if err != nil {
		return err
	}
	total := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		count, countErr := strconv.Atoi(out.Attributes[name])
		err = errors.Join(err, countErr)
		total += count
	}
	if err == nil && total != n {
		err = fmt.Errorf("there are %d messages in the end, not %d: what was measured is something else", total, n)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}
