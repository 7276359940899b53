// Package serving compares the server, as the program runs it, with its bounds and with other
// servers. Servers run as separate processes and are loaded from this one, alternating: see
// packages process and load. A table has a ratio for every aim; absolute figures are for
// orientation.
package serving

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
	"github.com/reprise-sqs/reprise/bench/process"
)

// Scale is how much is measured.
type Scale struct {
	Rounds   int // of each sample
	Messages int // in a sample
	Few      int // the small backlog
	Many     int // the large one
	Polls    int // that wait at once
	Idle     time.Duration
	Watch    time.Duration // of a sample with viewers of the dashboard
	Warm     time.Duration // how long other servers are loaded first: some compile at run time
	Reserve  int64         // of the append log, in bytes

	Dir   string // for data; on the disk to measure. Default: the system's directory for temporary files
	Cache string // where other servers are installed
}

// Whole is enough to trust the ratios, Short only checks that everything runs.
var (
	Whole = Scale{Rounds: 9, Messages: 20_000, Few: 1_000, Many: 1_000_000, Polls: 10_000, Idle: 10 * time.Second, Watch: 6 * time.Second, Warm: 3 * time.Second, Reserve: 1 << 30}
	Short = Scale{Rounds: 1, Messages: 200, Few: 100, Many: 1_000, Polls: 100, Idle: time.Second, Watch: time.Second, Reserve: 1 << 20}
)

// Bench measures servers.
type Bench struct {
	scale   Scale
	out     io.Writer
	dir     string // for all files; removed by Close
	program string // the file of reprise
}

// Open builds the program.
func Open(out io.Writer, s Scale) (*Bench, error) {
	dir, err := os.MkdirTemp(s.Dir, "reprise-bench-")
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	program, err := process.Build(dir, "reprise", "github.com/reprise-sqs/reprise/cmd/reprise")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Bench{scale: s, out: out, dir: dir, program: program}, nil
}

// Close removes all files.
func (b *Bench) Close() error { return os.RemoveAll(b.dir) }

// subject is a measured server.
type subject struct {
	name    string
	process *process.Process
	client  *load.Client
	queue   string // its URL

	messages int // of a step
}

func (s *subject) stop() {
	if s.client != nil {
		s.client.Close()
	}
	s.process.Stop()
}

// reprise starts the program's server.
func (b *Bench) reprise(name string, args ...string) (*subject, error) {
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	p, err := process.Start(addr, exec.Command(b.program, append([]string{"serve", "--addr", addr}, args...)...))
	if err != nil {
		return nil, err
	}
	return &subject{name: name, process: p}, nil
}

// newDir makes a directory for data.
func (b *Bench) newDir() (string, error) { return os.MkdirTemp(b.dir, "data-") }

// durable starts the program's server with an empty directory for its messages, on a disk whose
// syncs are slower by the given delay.
func (b *Bench) durable(name string, syncDelay time.Duration, args ...string) (*subject, error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--data", filepath.Join(dir, "journal"), "--sync-delay", syncDelay.String()}, args...)
	return b.reprise(name, args...)
}

// load gives a subject a queue, and a client with the given number of connections.
func (b *Bench) load(s *subject, connections int) (err error) {
	if s.queue, err = load.CreateQueue(s.process.Addr, "bench"); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.client = load.Open(s.process.Addr, s.queue, connections)
	s.messages = b.scale.Messages
	return nil
}

// stopAll stops subjects; some may not have been started.
func stopAll(subjects []*subject) {
	for _, s := range subjects {
		if s != nil {
			s.stop()
		}
	}
}
