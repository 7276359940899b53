package configfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

func (r reader) queues(c *Config, n ast.Node, keys Keys) error {
	elements, err := r.elements(n)
	if err != nil {
		return err
	}
	for _, element := range elements {
		if err := r.queue(c, element, keys); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) queue(c *Config, n ast.Node, keys Keys) error {
	mapping, ok := n.(ast.MapNode)
	if !ok {
		return r.at(n).errorf("a queue has to be a mapping, like name: orders")
	}
	// These are read one by one, so that errors name their lines.
	var faults, consume ast.Node
	var rest []*ast.MappingValueNode
	for it := mapping.MapRange(); it.Next(); {
		switch it.Key().String() {
		case "faults":
			faults = it.Value()
		case "consume":
			consume = it.Value()
		default:
			rest = append(rest, it.KeyValue())
		}
	}
	var form queueForm
	if err := r.decode(ast.Mapping(n.GetToken(), false, rest...), &form); err != nil {
		return err
	}
	switch {
	case form.Name == "":
		return r.at(n).errorf("the queue has no name: add name: NAME")
	case form.MaxReceives != 0 && form.DeadLetter == "":
		return r.at(n).errorf("queue %q has max-receives and no dead-letter: add dead-letter: %s-dead", form.Name, form.Name)
	case form.MaxReceives < 0 || form.MaxReceives > 1000:
		return r.at(n).errorf("queue %q: max-receives is %d: write a number from 1 to 1000", form.Name, form.MaxReceives)
	}
	q := Queue{
		Queue: daemon.Queue{Name: form.Name, DeadLetter: form.DeadLetter, MaxReceives: form.MaxReceives, Tags: form.Tags, Attributes: map[string]string{}},
		where: r.at(n),
	}
	for name, value := range form.Attributes {
		switch value.(type) {
		case map[string]any, []any, nil:
			return r.at(n).errorf("queue %q: the attribute %s has to be a single value; write JSON between quotes", form.Name, name)
		}
		q.Attributes[name] = fmt.Sprint(value)
	}
	if consume != nil {
		var err error
		if q.Consumed, q.Consume, err = r.consume(consume, keys); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(c.Queues, func(other Queue) bool { return other.Name == q.Name }) {
		return r.at(n).errorf("queue %q is in the list twice: keep one", q.Name)
	}
	c.Queues = append(c.Queues, q)
	if faults == nil {
		return nil
	}
	list, err := r.faultList(faults)
	if err != nil {
		return err
	}
	return r.add(&c.Faults, faults, form.Name, list)
}

// consume reads how a queue is consumed. Null stands for a mapping without keys.
func (r reader) consume(n ast.Node, keys Keys) (consumed bool, settings []Setting, err error) {
	if _, none := n.(*ast.NullNode); none {
		return true, nil, nil
	}
	for key, value := range r.members(n, &err) {
		name := key.String()
		if !keys.Consume.have(name) {
			return false, nil, r.at(key).errorf("the key %q is unknown: a queue's consume has the flags of reprise run that are about one queue, without their dashes, and pool, priority and weight", name)
		}
		s, err := r.setting(key, value, keys.Consume)
		if err != nil {
			return false, nil, err
		}
		settings = append(settings, s)
	}
	return true, settings, err
}

// poolForm is a pool in the form of the file.
type poolForm struct {
	Concurrency int `yaml:"concurrency"`
}

func (r reader) pools(c *Config, n ast.Node) (err error) {
	for key, value := range r.members(n, &err) {
		var name string
		if err := r.decode(key, &name); err != nil {
			return err
		}
		if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return r.at(key).errorf("pool %q: the name is empty or has a control character: use printable ones", name)
		}
		var form poolForm
		if err := r.decode(value, &form); err != nil {
			return err
		}
		if form.Concurrency < 1 || form.Concurrency > maxPool {
			return r.at(value).errorf("pool %q: concurrency is %d: write how many messages its queues handle at once, from 1 to %d", name, form.Concurrency, maxPool)
		}
		c.Pools = append(c.Pools, Pool{name, form.Concurrency})
	}
	return err
}

// maxPool is the largest concurrency of the library.
const maxPool = 100_000
