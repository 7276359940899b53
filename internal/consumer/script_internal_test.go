package consumer

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Most rules of the machine are held by scripts. A script in testdata/scripts is a file of scenes. The first
// line of a scene states the rule that it holds, after a #. A line that begins with "consumer" makes a
// machine; lines that begin with > are commands: receive messages, end a handler, let time pass. Below each
// stands what the machine does about it, with the time since noon. A scene ends with an empty line.
// reading_internal_test.go reads settings and messages, commands_internal_test.go has the commands, and
// driver_internal_test.go carries out what the machine wants.
//
// After an intended change of a rule, go test -write writes what the machine does into the scripts:
// read the difference, line by line, before it is committed.
var write = flag.Bool("write", false, "write what the machine does into the scripts")

// scene is a part of a script.
type scene struct {
	rule     string
	lines    []string // the rule, the commands, and what is expected
	commands []string
}

func TestLeases(t *testing.T)       { follow(t, "leases") }
func TestSettlements(t *testing.T)  { follow(t, "settlements") }
func TestReceipts(t *testing.T)     { follow(t, "receipts") }
func TestRefusals(t *testing.T)     { follow(t, "refusals") }
func TestGivenUp(t *testing.T)      { follow(t, "givenup") }
func TestAttributes(t *testing.T)   { follow(t, "attributes") }
func TestCopies(t *testing.T)       { follow(t, "copies") }
func TestLastReceives(t *testing.T) { follow(t, "lastreceives") }
func TestRetention(t *testing.T)    { follow(t, "retention") }
func TestPolling(t *testing.T)      { follow(t, "polling") }
func TestStops(t *testing.T)        { follow(t, "stops") }
func TestPauses(t *testing.T)       { follow(t, "pauses") }
func TestGroups(t *testing.T)       { follow(t, "groups") }
func TestBatches(t *testing.T)      { follow(t, "batches") }
func TestOutages(t *testing.T)      { follow(t, "outages") }
func TestCanaries(t *testing.T)     { follow(t, "canaries") }
func TestRamps(t *testing.T)        { follow(t, "ramps") }
func TestRelapses(t *testing.T)     { follow(t, "relapses") }
func TestKeys(t *testing.T)         { follow(t, "keys") }
func TestAlone(t *testing.T)        { follow(t, "alone") }
func TestHung(t *testing.T)         { follow(t, "hung") }
func TestPools(t *testing.T)        { follow(t, "pools") }
func TestWakes(t *testing.T)        { follow(t, "wakes") }
func TestEarlyRetries(t *testing.T) { follow(t, "earlyretries") }
func TestQuota(t *testing.T)        { follow(t, "quota") }
func TestReports(t *testing.T)      { follow(t, "reports") }
func TestStandings(t *testing.T)    { follow(t, "standings") }

// TestEveryScriptIsFollowed: no file of testdata/scripts is forgotten here.
func TestEveryScriptIsFollowed(t *testing.T) {
	text, err := os.ReadFile("script_internal_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d scripts: %v", len(files), err)
	}
	for _, f := range files {
		if call := `follow(t, "` + strings.TrimSuffix(filepath.Base(f), ".txt") + `")`; !strings.Contains(string(text), call) {
			t.Errorf("no test calls %s", call)
		}
	}
}

// follow acts the scenes of a script.
func follow(t *testing.T, name string) {
	file := filepath.Join("testdata", "scripts", name+".txt")
	var acted []string
	for _, s := range scenes(t, file) {
		happened := s.lines
		t.Run(s.rule, func(t *testing.T) {
			happened = act(t, s)
			if *write || slices.Equal(happened, s.lines) {
				return
			}
			at := 0
			for at < len(happened) && at < len(s.lines) && happened[at] == s.lines[at] {
				at++
			}
			t.Errorf("%s: line %d of the scene differs. It went:\n%s", file, at+1, strings.Join(happened, "\n"))
		})
		acted = append(acted, strings.Join(happened, "\n")+"\n")
	}
	if *write {
		if err := os.WriteFile(file, []byte(strings.Join(acted, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// act acts a scene, and returns its lines as they should be.
func act(t *testing.T, s scene) (lines []string) {
	d := newDriver(t)
	for _, line := range s.lines {
		if strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	for _, command := range s.commands {
		d.said = nil
		d.carryOut(strings.TrimPrefix(command, "> "))
		lines = append(append(lines, command), shorten(d.said)...)
	}
	return lines
}

var number = regexp.MustCompile(`[0-9][0-9.a-zµ]*`)

// shorten leaves out lines that differ from several before them in numbers only: of each such kind, two
// and the last stay.
func shorten(said []string) (lines []string) {
	last, times := make(map[string]int), make(map[string]int)
	kind := func(line string) string { return number.ReplaceAllString(line, "0") }
	for i, line := range said {
		last[kind(line)] = i
	}
	for i, line := range said {
		k := kind(line)
		if times[k]++; times[k] > 3 && last[k] == i {
			lines = append(lines, fmt.Sprintf("%s (the last of %d)", line, times[k]))
		} else if times[k] <= 2 || last[k] == i {
			lines = append(lines, line)
		}
	}
	return lines
}

// scenes reads a script.
func scenes(t *testing.T, file string) (all []scene) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" {
			open = false
			continue
		}
		if !open {
			all, open = append(all, scene{}), true
		}
		s := &all[len(all)-1]
		s.lines = append(s.lines, line)
		switch {
		case strings.HasPrefix(line, "#"):
			s.rule = strings.TrimSpace(s.rule + " " + strings.TrimPrefix(line, "# "))
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "consumer"):
			s.commands = append(s.commands, line)
		}
	}
	return all
}
