package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/simulate"
)

// apply changes a scenario by the flags that are passed.
func (f *simulateFlags) apply(s *simulate.Scenario, changed func(string) bool) error {
	var problems []error
	set := func(name string, do func() error) {
		if !changed(name) {
			return
		}
		if err := do(); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", name, err))
		}
	}
	put(set, "messages", &s.Traffic.Backlog, f.messages)
	put(set, "rate", &s.Traffic.Rate, f.rate)
	put(set, "for", &s.Traffic.For, f.lasts)
	put(set, "consumers", &s.Fleet.Consumers, f.consumers)
	put(set, "concurrency", &s.Fleet.Concurrency, f.concurrency)
	put(set, "prefetch", &s.Fleet.Prefetch, f.prefetch)
	put(set, "lease", &s.Fleet.Lease, f.lease)
	put(set, "timeout", &s.Fleet.Timeout, f.timeout)
	put(set, "no-breaker", &s.Fleet.NoBreaker, f.noBreaker)
	put(set, "probe", &s.Fleet.Probe, f.probe)
	put(set, "fifo", &s.Queue.FIFO, f.fifo)
	put(set, "groups", &s.Queue.Groups, f.groups)
	put(set, "max-receives", &s.Queue.MaxReceives, f.maxReceives)
	put(set, "retention", &s.Queue.Retention, f.retention)
	put(set, "horizon", &s.Horizon, f.horizon)
	put(set, "seed", &s.Seed, f.seed)
	put(set, "fluid", &s.Fluid, f.fluid)
	set("retry", func() error { return s.Policy.UnmarshalText([]byte(f.retry)) })
	set("takes", func() error { return s.Handler.Takes.UnmarshalText([]byte(f.takes)) })
	set("permanent", func() (err error) {
		s.Handler.Permanent, err = simreport.ReadShare(f.permanent)
		return err
	})
	set("always", func() (err error) {
		s.Handler.Always, err = simreport.ReadShare(f.always)
		return err
	})
	set("failing", func() error { return simreport.ReadFailing(&s.Handler, f.failing) })
	set("capacity", func() (err error) {
		if s.Dependency.Capacity, err = strconv.ParseFloat(strings.TrimSuffix(f.capacity, "/s"), 64); err != nil {
			err = fmt.Errorf("%q is no rate: pass one such as 50/s", f.capacity)
		}
		return err
	})
	set("outage", func() error {
		s.Dependency.Outages = nil
		for _, text := range f.outages {
			o, err := readOutage(text)
			if err != nil {
				return err
			}
			s.Dependency.Outages = append(s.Dependency.Outages, o)
		}
		return nil
	})
	set("burst", func() error {
		s.Traffic.Bursts = nil
		for _, text := range f.bursts {
			number, at, _ := strings.Cut(text, "@")
			n, err := strconv.Atoi(number)
			when, err2 := time.ParseDuration(at)
			if err != nil || err2 != nil {
				return fmt.Errorf("%q is no burst: pass messages and when, such as 1000@5m", text)
			}
			s.Traffic.Bursts = append(s.Traffic.Bursts, simulate.Burst{At: when, Messages: n})
		}
		return nil
	})
	return errors.Join(problems...)
}

// put sets a field to a flag's value.
func put[T any](set func(string, func() error), name string, field *T, value T) {
	set(name, func() error {
		*field = value
		return nil
	})
}

// readOutage reads an outage such as 20m@1h or 20m@1h:50%.
func readOutage(text string) (o simulate.Outage, err error) {
	rest, share, partial := strings.Cut(text, ":")
	long, at, _ := strings.Cut(rest, "@")
	var err2 error
	o.For, err = time.ParseDuration(long)
	if o.At, err2 = time.ParseDuration(at); err != nil || err2 != nil {
		return o, fmt.Errorf("%q is no outage: pass how long it is and when it begins, such as 20m@1h", text)
	}
	if partial {
		o.Share, err = simreport.ReadShare(share)
	}
	return o, err
}
