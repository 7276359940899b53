package repotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakeGo is in the place of go in the tests of .ci/fresh: it fails as the tests of fleets and machines do for each seed
// that the file "broken" of the folder names, of as many as it is asked for.
const fakeGo = `#!/usr/bin/env bash
kind=; from=; seeds=
for arg; do
	case $arg in
	-*.from=*) kind=${arg%.from=*} kind=${kind#-} from=${arg#*=} ;;
	-*.seeds=*) seeds=${arg#*=} ;;
	esac
done
echo "$PWD $*" >>"$CALLS"
status=0
while read -r what seed; do
	if [ "$what" = build ]; then echo "FAIL	./internal/$kind [build failed]"; exit 1; fi
	[ "$what" = "$kind" ] || [ "$what" = "$kind-panic" ] || [ "$what" = "$kind-unnamed" ] || continue
	seed=$((seed + START))
	[ "$seed" -ge "$from" ] && [ "$seed" -lt $((from + seeds)) ] || continue
	status=1
	case $what in
	fleet) echo "        fleet_test.go:85: replay it: go test -run '^TestFleet$' -fleet.seeds=1 -fleet.sdk=1 -fleet.from=$seed ./internal/fleet" ;;
	machines) echo "    run_test.go:52: seed $seed, again with go test ./internal/machines -machines.from=$seed -machines.seeds=1:" ;;
	*-panic) printf -- '    --- FAIL: TestFleet/seeds/#01/%s (0.52s)\npanic: deadlock\n' "$seed" ;;
	esac
done <broken
[ $status = 0 ] && echo "Test: $seeds seeds from $from"
exit $status
`

// TestFreshSeeds: seeds that no run before has run fail a run only if they break with the change, and not without it.
func TestFreshSeeds(t *testing.T) {
	for _, tool := range []string{"bash", "git", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool, " is not installed: ", err)
		}
	}
	const fleets, machines = 300, 3000
	// What "broken" has before the change and with it: seeds are given by their distance from the first.
	tests := []struct {
		name          string
		before, after []string
		passes        bool
		want, wantNot []string
	}{
		{"none", nil, nil, true, nil, []string{"the change was made on"}},
		{"of others", nil, []string{"fleet 300", "machines 3000", "machines -1"}, true, nil, []string{"the change was made on"}},
		{"before and after", []string{"fleet 299"}, []string{"fleet 299"}, true, []string{"It breaks there, too.", "\nBroken before the change, too:\ngo test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=299\n$"}, []string{"only with the change"}},
		{"only after", nil, []string{"machines 2999"}, false, []string{"It breaks only with the change: go test -timeout 0 -count=3 -run '^TestMachines$' ./internal/machines -machines.seeds=1 -machines.from=2999"}, []string{"Broken before"}},
		{"one of two only after", []string{"fleet 7"}, []string{"fleet 5", "fleet 7"}, false, []string{"only with the change: go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=5\n", "\nBroken before the change, too:\ngo test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=7\n$"}, nil},
		{"fewer after", []string{"fleet 5", "machines 7"}, nil, true, nil, []string{"the change was made on"}},
		{"a panic", nil, []string{"fleet-panic 11"}, false, []string{"only with the change: go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=11\n"}, nil},
		{"a panic before, too", []string{"fleet-panic 11"}, []string{"fleet-panic 11"}, true, []string{"It breaks there, too."}, nil},
		{"no seed is named", nil, []string{"machines-unnamed 11"}, false, []string{"only with the change: go test -timeout 0 -run '^TestMachines$' ./internal/machines -machines.seeds=3000 -machines.from=0\n"}, nil},
		{"no seed is named before, too", []string{"machines-unnamed 12"}, []string{"machines-unnamed 12"}, true, []string{"It breaks there, too."}, nil},
		{"no longer compiles", nil, []string{"build 0"}, false, []string{"[build failed]"}, []string{"the change was made on"}},
		{"did not compile before", []string{"build 0"}, []string{"fleet 1"}, false, []string{"It breaks only with the change"}, nil},
		{"many", nil, []string{"fleet 1", "fleet 2", "fleet 3", "fleet 4", "fleet 5", "fleet 6"}, false, []string{"-fleet.from=5\n"}, []string{"-count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=6\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newChangedRepository(t)
			r.commit(tt.before)
			r.commit(tt.after)
			passed, out := r.fresh(fleets, machines)
			if passed != tt.passes {
				t.Errorf("it passes: %v, want %v", passed, tt.passes)
			}
			r.check(out, tt.want, tt.wantNot)
			if got := r.git("worktree", "list"); strings.Count(got, "\n") != 1 {
				t.Errorf("it leaves worktrees:\n%s", got)
			}
		})
	}
	t.Run("uncommitted", func(t *testing.T) { // the change is what differs from the commit
		t.Parallel()
		r := newChangedRepository(t)
		r.commit([]string{"fleet 5"})
		r.breaks([]string{"fleet 5", "fleet 6"})
		passed, out := r.fresh(fleets, machines)
		if passed {
			t.Error("it passes, although a seed breaks only with the change")
		}
		r.check(out, []string{"only with the change: go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=6\n", "Broken before the change, too:"}, nil)
	})
	t.Run("nothing before", func(t *testing.T) { // as in a clone of one commit
		t.Parallel()
		r := newChangedRepository(t)
		r.commit([]string{"fleet 5"})
		passed, out := r.fresh(fleets, machines)
		if passed {
			t.Error("it passes, although nobody knows whether the change broke the seed")
		}
		r.check(out, []string{"REPRISE_BASE"}, nil)
	})
	t.Run("named", func(t *testing.T) { // a push of several commits
		t.Parallel()
		r := newChangedRepository(t)
		r.commit(nil)
		first := strings.TrimSpace(r.git("rev-parse", "HEAD"))
		r.commit([]string{"fleet 5"})
		r.commit([]string{"fleet 5", "machines 1"})
		passed, out := r.fresh(fleets, machines, "REPRISE_BASE="+first)
		if passed {
			t.Error("it passes, although a commit before the last has broken the seed")
		}
		r.check(out, []string{"only with the change: go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=5\n", "On " + first}, nil)
	})
	t.Run("several commits", func(t *testing.T) { // of one day
		t.Parallel()
		r := newChangedRepository(t)
		r.commit(nil)
		r.commit(nil)
		first := strings.TrimSpace(r.git("rev-parse", "HEAD"))
		r.at = 11 * time.Hour
		r.commit(nil)
		r.at += 59 * time.Minute
		r.commit([]string{"fleet 5"})
		r.at += 2 * time.Minute
		r.commit([]string{"fleet 5", "machines 1"})
		passed, out := r.fresh(fleets, machines)
		if passed {
			t.Error("it passes, although a commit of the last half day has broken the seed")
		}
		r.check(out, []string{"only with the change: go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=5\n", "On " + first}, nil)
	})
	t.Run("a merge", func(t *testing.T) { // of a pull request, on a day with others
		t.Parallel()
		r := newChangedRepository(t)
		r.commit(nil)
		r.at = 24 * time.Hour
		r.commit([]string{"fleet 5"})
		r.git("checkout", "--quiet", "-b", "request")
		r.commit([]string{"fleet 5", "machines -1"})
		r.git("checkout", "--quiet", "-")
		r.git("merge", "--quiet", "--no-ff", "request")
		passed, out := r.fresh(fleets, machines)
		if !passed {
			t.Error("it fails, although the seed breaks without the request, too")
		}
		r.check(out, []string{"On " + strings.TrimSpace(r.git("rev-parse", "HEAD^"))}, nil)
	})
	t.Run("a file of those known", func(t *testing.T) {
		t.Parallel()
		r := newChangedRepository(t)
		r.commit([]string{"fleet 5"})
		r.breaks([]string{"fleet 5"})
		r.commit([]string{"fleet 5", "fleet -1"})
		known := filepath.Join(t.TempDir(), "known")
		passed, out := r.fresh(fleets, machines, "", known)
		if !passed {
			t.Errorf("it fails:\n%s", out)
		}
		r.check(readText(t, known), []string{"go test -timeout 0 -count=3 -run '^TestFleet$' ./internal/fleet -fleet.seeds=1 -fleet.from=5\n$"}, nil)
	})
}

// changedRepository is a repository with .ci/fresh, whose fleets and machines are the fake's.
type changedRepository struct {
	t     *testing.T
	dir   string
	env   []string
	start uint64        // the first seed, when .ci/fresh has run
	at    time.Duration // how much later than the first commits are made
}

// firstCommit is when the commits of a changedRepository begin, in seconds since 1970.
const firstCommit = 1_800_000_000

func newChangedRepository(t *testing.T) *changedRepository {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(fakeGo), 0o700); err != nil { //nolint:gosec // G306: a program
		t.Fatal(err)
	}
	r := &changedRepository{t: t, dir: t.TempDir(), env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(bin, "calls"),
		"REPRISE_BASE=", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")}
	if err := os.Mkdir(filepath.Join(r.dir, ".ci"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fresh", "change"} {
		if err := os.WriteFile(filepath.Join(r.dir, ".ci", name), []byte(readText(t, filepath.Join(".ci", name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.git("init", "--quiet")
	return r
}

func (r *changedRepository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = r.dir, append(r.env, fmt.Sprintf("GIT_COMMITTER_DATE=@%d +0000", firstCommit+int64(r.at.Seconds())))
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// breaks has seeds break, each given by its kind and its distance from the first. The first seed is that of a commit
// which has what breaks in it, so the fake takes the distances, and the tests turn what is printed into them.
func (r *changedRepository) breaks(seeds []string) {
	r.t.Helper()
	text := ""
	for _, seed := range seeds {
		text += seed + "\n"
	}
	if err := os.WriteFile(filepath.Join(r.dir, "broken"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *changedRepository) commit(seeds []string) {
	r.t.Helper()
	r.breaks(seeds)
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", "a change")
}

// fresh runs .ci/fresh, and returns whether it passes, and what it prints, with distances in the place of seeds.
func (r *changedRepository) fresh(fleets, machines int, more ...string) (passed bool, printed string) {
	r.t.Helper()
	commit := r.git("rev-parse", "HEAD")
	start, err := strconv.ParseUint(commit[:8], 16, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	args := []string{".ci/fresh", fmt.Sprint(fleets), fmt.Sprint(machines)}
	env := append(r.env, fmt.Sprint("START=", start)) //nolint:gocritic // a copy
	if len(more) > 0 {
		env = append(env, more[0])
		args = append(args, more[1:]...)
	}
	cmd := exec.CommandContext(r.t.Context(), "bash", args...)
	cmd.Dir, cmd.Env = r.dir, env
	out, err := cmd.CombinedOutput()
	r.start = start
	if !strings.Contains(string(out), fmt.Sprintf("Seeds from %d, which is 0x%s", start, commit[:8])) {
		r.t.Errorf("it does not print its first seed, %d:\n%s", start, out)
	}
	return err == nil, string(out)
}

// check holds what is printed against texts whose seeds are distances; a text that ends with $ is the end.
func (r *changedRepository) check(out string, want, wantNot []string) {
	r.t.Helper()
	for line := range strings.Lines(out) {
		_, seed, found := strings.Cut(strings.TrimSpace(line), ".from=")
		if found {
			if n, err := strconv.ParseUint(seed, 10, 64); err == nil && n >= r.start {
				out = strings.ReplaceAll(out, ".from="+seed, fmt.Sprint(".from=", n-r.start))
			}
		}
	}
	for _, text := range want {
		if end, ok := strings.CutSuffix(text, "$"); ok && !strings.HasSuffix(out, end) || !ok && !strings.Contains(out, text) {
			r.t.Errorf("it does not print %q, but:\n%s", text, out)
		}
	}
	for _, text := range wantNot {
		if strings.Contains(out, text) {
			r.t.Errorf("it prints %q:\n%s", text, out)
		}
	}
}
