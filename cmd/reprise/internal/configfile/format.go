package configfile

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

// Entry is a key with its value: a text, a number, a boolean, or a list of texts.
type Entry struct {
	Name  string
	Value any
}

// QueueEntries are the entries of a queue.
type QueueEntries struct {
	daemon.Queue
	Consume []Entry // nil: it is not consumed
}

// Format returns a configuration as text that [Read] reads, without faults.
func Format(top []Entry, pools []Pool, queues []QueueEntries) ([]byte, error) {
	file := items(top)
	if len(pools) > 0 {
		var all yaml.MapSlice
		for _, p := range pools {
			all = append(all, yaml.MapItem{Key: p.Name, Value: yaml.MapSlice{{Key: "concurrency", Value: p.Concurrency}}})
		}
		file = append(file, yaml.MapItem{Key: "pools", Value: all})
	}
	var all []yaml.MapSlice
	for _, q := range queues {
		all = append(all, q.items())
	}
	if len(all) > 0 {
		file = append(file, yaml.MapItem{Key: "queues", Value: all})
	}
	text, err := yaml.MarshalWithOptions(file, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("writing a configuration: %w", err)
	}
	return text, nil
}

func items(entries []Entry) (m yaml.MapSlice) {
	for _, e := range entries {
		m = append(m, yaml.MapItem{Key: e.Name, Value: e.Value})
	}
	return m
}

func (q *QueueEntries) items() yaml.MapSlice {
	m := yaml.MapSlice{{Key: "name", Value: q.Name}}
	if len(q.Attributes) > 0 {
		m = append(m, yaml.MapItem{Key: "attributes", Value: q.Attributes})
	}
	if q.DeadLetter != "" {
		m = append(m, yaml.MapItem{Key: "dead-letter", Value: q.DeadLetter})
	}
	if q.MaxReceives != 0 {
		m = append(m, yaml.MapItem{Key: "max-receives", Value: q.MaxReceives})
	}
	if len(q.Tags) > 0 {
		m = append(m, yaml.MapItem{Key: "tags", Value: q.Tags})
	}
	if q.Consume != nil {
		m = append(m, yaml.MapItem{Key: "consume", Value: items(q.Consume)})
	}
	return m
}
