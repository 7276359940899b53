package main

import (
	"fmt"
	"io"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
	"github.com/reprise-sqs/reprise/idempotency"
)

// plugin is a wrapper of a handler.
type plugin struct {
	name string
	wrap func(reprise.Handler) (reprise.Handler, error)
}

var plugins = []plugin{
	{"bare", func(h reprise.Handler) (reprise.Handler, error) { return h, nil }},
	{"idempotency in memory", func(h reprise.Handler) (reprise.Handler, error) {
		once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
		if err != nil {
			return nil, err
		}
		return once(h), nil
	}},
}

// withPlugins compares the consumer with each plug-in to the bare one.
func withPlugins(w io.Writer, s scale) error {
	for _, concurrency := range []int{10, 100} {
		var contenders []*contender
		for _, p := range plugins {
			q := canned.New()
			handler, err := p.wrap(trivial)
			if err != nil {
				return err
			}
			c, err := startHandler(p.name, q, q.SDK(tuned), canned.URL, handler, reprise.Config{Concurrency: concurrency})
			if err != nil {
				return err
			}
			contenders = append(contenders, c)
		}
		title := fmt.Sprintf("The consumer with plug-ins at concurrency %d, over the SDK, replies canned below net/http (aim: 1.2 of the bare one)", concurrency)
		if err := compare(w, title, contenders, s.rounds, s.sdk); err != nil {
			return err
		}
	}
	return nil
}
