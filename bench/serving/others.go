package serving

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
	"github.com/reprise-sqs/reprise/bench/process"
	"github.com/reprise-sqs/reprise/bench/servers"
)

// Others compares the durable server with other servers, durable ones and those in memory. If
// possible all run in a network of their own: some listen on every interface, which a benchmark
// must not do on a user's machine.
func (b *Bench) Others() error {
	cmd, err := childCommand(childConfig{Others: &othersConfig{b.scale, b.dir, b.program}})
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = b.out, os.Stderr
	if err := isolate(cmd); err != nil {
		return b.others(false)
	}
	if err := cmd.Start(); err != nil { // not permitted
		return b.others(false)
	}
	return cmd.Wait()
}

// othersConfig is the configuration of Others in another process.
type othersConfig struct {
	Scale        Scale
	Dir, Program string
}

func (c othersConfig) run() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("make a network: %w", err)
	}
	b := Bench{scale: c.Scale, out: os.Stdout, dir: c.Dir, program: c.Program}
	return b.others(true)
}

// rival is a row: another server and its figures, or why there are none.
type rival struct {
	servers.Server
	problem error
	samples samples // of our server and the rival
}

// others compares; open permits servers that listen on every interface.
func (b *Bench) others(open bool) error {
	var rivals []rival
	for _, s := range servers.All() {
		r := rival{Server: s, problem: s.Installed(b.scale.Cache)}
		if r.problem == nil && s.Everywhere && !open {
			r.problem = errors.New("not started: it listens on every interface, and a network of its own needs Linux and permission for namespaces")
		}
		if r.problem == nil {
			r.samples, r.problem = b.against(s)
		}
		rivals = append(rivals, r)
	}
	return b.ranking(rivals)
}

// against measures our server and a rival, alternating.
func (b *Bench) against(s servers.Server) (samples, error) {
	ours, err := b.durable("reprise serve --data", 0)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	theirs, err := b.start(s)
	if err != nil {
		return nil, err
	}
	defer theirs.stop()
	subjects := []*subject{ours, theirs}
	for _, s := range subjects {
		if err := b.load(s, 8); err != nil {
			return nil, err
		}
		if err := b.pace(s); err != nil {
			return nil, err
		}
	}
	return interleave(b.scale.Rounds, subjects, sending, working)
}

// start starts a rival with a directory for its data.
func (b *Bench) start(s servers.Server) (*subject, error) {
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	data, err := b.newDir()
	if err != nil {
		return nil, err
	}
	if data, err = filepath.Abs(data); err != nil {
		return nil, err
	}
	cmd, err := s.Command(b.scale.Cache, data, port)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(addr, cmd)
	if err != nil {
		return nil, err
	}
	return &subject{name: s.Name, process: p}, nil
}

// pace returns how many messages a warm subject sends, receives and deletes in about a second, at
// most the number of the scale: servers differ by a factor of a hundred.
func (b *Bench) pace(s *subject) error {
	s.messages = 100
	for start := time.Now(); ; {
		began := time.Now()
		for _, step := range []step{sending, working} {
			if _, err := measure(s, step); err != nil {
				return err
			}
		}
		second := int(float64(s.messages)/time.Since(began).Seconds()) / load.BatchSize * load.BatchSize
		s.messages = max(load.BatchSize, min(second, b.scale.Messages))
		if time.Since(start) >= b.scale.Warm {
			return nil
		}
	}
}

// ranking prints the rivals.
func (b *Bench) ranking(rivals []rival) error {
	fmt.Fprintf(b.out, "Beside other servers: reprise serve --data, which syncs before it acknowledges\n"+
		"medians of %d rounds, at most %d messages of 1 KiB, batches of ten, 8 connections; ×: how many times as fast ours is\n\n", b.scale.Rounds, b.scale.Messages)
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tkeeps messages in\tsent/s\tours/s\t×\taim\treceived+deleted/s\tours/s\t×\taim\tCPU µs each, send\treceive+delete")
	for _, r := range rivals {
		if r.problem != nil {
			fmt.Fprintf(t, "%s\t%s\t%v\n", r.Name, r.Keeps, r.problem)
			continue
		}
		sendAim, workAim := 1.0, 1.0
		if r.Survives {
			sendAim, workAim = 3, 10
		}
		fmt.Fprintf(t, "%s\t%s", r.Name, r.Keeps)
		for _, part := range []struct {
			step string
			aim  float64
		}{{sending.name, sendAim}, {working.name, workAim}} {
			ours, theirs := r.samples[part.step][0], r.samples[part.step][1]
			times := ratio(ours, theirs, sample.rate)
			fmt.Fprintf(t, "\t%.0f\t%.0f\t%.1f\t%s", median(theirs, sample.rate), median(ours, sample.rate), times, aim{"", part.aim, 0}.verdict(times, 0))
		}
		fmt.Fprintf(t, "\t%.1f\t%.1f\n", median(r.samples[sending.name][1], sample.cpuEach), median(r.samples[working.name][1], sample.cpuEach))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.out)
	return err
}
