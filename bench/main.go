// Command bench compares the consumer and the server with their foundations and with other
// software, alternating within one run: the machine's speed and other load cancel out in the
// ratios, so read the ratios. It is never released.
//
//	go run ./bench                   # everything, half an hour
//	go run ./bench server durable    # some comparisons; -help names them all
//	go run ./bench -short            # seconds: checks that everything runs, without useful figures
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/bench/servers"
	"github.com/reprise-sqs/reprise/bench/serving"
)

// comparison is a comparison that the command line can name.
type comparison struct {
	name, about string
	parts       []func(io.Writer, scale) error
}

var comparisons = []comparison{
	{"consumer", "the consumer beside the raw loop", []func(io.Writer, scale) error{overSDK, overTCP, inProcess, callsEach}},
	{"plugins", "the consumer with plug-ins beside the bare one", []func(io.Writer, scale) error{withPlugins, withTelemetry, withRedis}},
	{"peers", "the consumer beside other consumers", []func(io.Writer, scale) error{peersCanned, onServer, leasedMany}},
	{"server", "the server in memory beside a handler that gives the same bytes", ofServer((*serving.Bench).Cost)},
	{"durable", "the durable server beside the one in memory", ofServer((*serving.Bench).Durable)},
	{"journal", "the durable server beside one over a bare append log", ofServer((*serving.Bench).Journal)},
	{"backlog", "receiving from a queue of a million messages beside one of a thousand", ofServer((*serving.Bench).Backlog)},
	{"waiting", "ten thousand long polls at once", ofServer((*serving.Bench).Waiting)},
	{"viewers", "a busy server with 50 viewers of its dashboard beside one without", ofServer((*serving.Bench).Viewers)},
	{"servers", "the durable server beside other servers", ofServer((*serving.Bench).Others)},
}

func ofServer(run func(*serving.Bench) error) []func(io.Writer, scale) error {
	return []func(io.Writer, scale) error{func(w io.Writer, s scale) error {
		bench, err := serving.Open(w, s.serving)
		if err != nil {
			return err
		}
		return errors.Join(run(bench), bench.Close())
	}}
}

func main() {
	serving.ServeIfChild()
	flag.Usage = usage
	short := flag.Bool("short", false, "run every comparison briefly")
	rounds := flag.Int("rounds", 9, "how many `times` each contender is measured")
	dir := flag.String("dir", os.TempDir(), "`directory` for the data of durable servers, on the disk to be measured")
	cache := flag.String("cache", cacheDir(), "`directory` in which other servers are installed")
	install := flag.Bool("install", false, "install the other servers first, with go, npm, pip and mvn")
	flag.Parse()
	if *install {
		installServers(*cache)
	}
	s := scale{rounds: *rounds, sdk: 40_000, direct: 1_000_000, peers: wholePeers, serving: serving.Whole}
	if *short {
		s = scale{rounds: 1, sdk: 1_000, direct: 10_000, peers: shortPeers, serving: serving.Short}
	}
	s.serving.Rounds, s.serving.Dir, s.serving.Cache = s.rounds, *dir, *cache
	if err := run(os.Stdout, s, flag.Args()...); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() {
	w := flag.CommandLine.Output()
	fmt.Fprintln(w, "usage: bench [flags] [comparison...]")
	for _, c := range comparisons {
		fmt.Fprintf(w, "  %s\n    \t%s\n", c.name, c.about)
	}
	flag.PrintDefaults()
}

func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "reprise-bench")
}

// installServers installs other servers. If a server cannot be installed, its row in the comparison
// has the reason.
func installServers(cache string) {
	for _, s := range servers.All() {
		if err := s.Install(cache); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		} else {
			fmt.Fprintf(os.Stderr, "%s: installed\n", s.Name)
		}
	}
}

// scale is how much to measure: messages per sample, through the SDK and without it.
type scale struct {
	rounds, sdk, direct int
	peers               peerScale
	serving             serving.Scale
}

// run runs the comparisons of these names; without names, all.
func run(w io.Writer, s scale, names ...string) error {
	known := make([]string, len(comparisons))
	for i, c := range comparisons {
		known[i] = c.name
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no comparison %q: name some of %s, or none for all", name, strings.Join(known, ", "))
		}
	}
	for _, c := range comparisons {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		for _, part := range c.parts {
			if err := part(w, s); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}
