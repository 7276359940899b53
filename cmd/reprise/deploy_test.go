//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// pinned returns a tool that make release-tools builds.
func pinned(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, ".bin", name+"-v*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skipf("skipped: .bin has no %s: make release-tools builds it", name)
	}
	file, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// succeeds runs a command in a directory of the repository, and returns its output. The test
// ends if the command fails.
func succeeds(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(root, dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// understood checks that the program understands a command line that is part of a file. It
// is not carried out: flags are read first, then --help.
func understood(t *testing.T, file string, args []string) {
	t.Helper()
	if got := reprise(t, "", append(slices.Clone(args), "--help")...); got.code != 0 || got.stderr != "" {
		t.Errorf("%s: the program does not understand %q: exit code %d, %s", file, args, got.code, got.stderr)
	}
}

// fileOf returns the text of a file of the repository.
func fileOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestUnitsOfSystemd: systemd accepts the units, and the program the commands in them. A
// stop may take longer than the program's own budget.
func TestUnitsOfSystemd(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob(filepath.Join(root, "deploy/systemd/*.service"))
	if err != nil || len(units) != 2 {
		t.Fatalf("deploy/systemd has %v (%v), want 2 units", units, err)
	}
	starts := regexp.MustCompile(`(?m)^ExecStart(?:Post)?=(.*)$`)
	for _, unit := range units {
		name := filepath.Base(unit)
		text := fileOf(t, "deploy/systemd/"+name)
		commands := starts.FindAllStringSubmatch(text, -1)
		if len(commands) == 0 {
			t.Errorf("%s starts nothing", name)
		}
		for _, c := range commands {
			line := regexp.MustCompile(`\$\w+`).ReplaceAllString(c[1], "") // flags of users
			line = strings.NewReplacer("%i", "orders", "${STATE_DIRECTORY}", "/var/lib/reprise", "${REPRISE_ADDR}", "127.0.0.1:9324").Replace(line)
			fields := strings.Fields(line)
			if fields[0] != "/usr/bin/reprise" {
				t.Errorf("%s starts %s, want /usr/bin/reprise", name, fields[0])
			}
			understood(t, name, fields[1:])
		}
		if !strings.Contains(text, "\nTimeoutStopSec=35\n") {
			t.Errorf("%s does not give the program 35 s to stop, ten more than --stop-budget", name)
		}
		t.Run(name, func(t *testing.T) {
			analyze := installed(t, "systemd-analyze")
			// It also checks that the program exists.
			copied := filepath.Join(t.TempDir(), strings.Replace(name, "@", "@orders", 1))
			if err := os.WriteFile(copied, []byte(strings.ReplaceAll(text, "/usr/bin/reprise", program(t))), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := succeeds(t, ".", analyze, "verify", "--man=no", copied); out != "" {
				t.Errorf("systemd-analyze verify %s: %s", name, out)
			}
		})
	}
}

// TestDockerfile: hadolint accepts it, and .dockerignore excludes nothing that the program is
// compiled from.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := fileOf(t, "Dockerfile")
	for _, want := range []string{"/static-debian12:nonroot\n", "\nUSER 65532:65532\n", "\nSTOPSIGNAL SIGTERM\n", "CGO_ENABLED=0", "$BUILDPLATFORM"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	t.Run("lint", func(t *testing.T) {
		hadolint := installed(t, "hadolint")
		succeeds(t, ".", hadolint, "Dockerfile")
		for _, page := range pages(t) {
			for _, b := range blocks(t, page) {
				if b.info == "dockerfile" {
					succeeds(t, ".", hadolint, written(t, "Dockerfile", b.text))
				}
			}
		}
	})
	t.Run("context", func(t *testing.T) {
		left := t.TempDir()
		copyContext(t, left)
		// go list reads all that go build would read, embedded files too.
		cmd := exec.Command("go", "list", "-deps", "-f", "{{if .Error}}{{.Error}}{{end}}", "./cmd/reprise")
		cmd.Dir = left
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "" {
			t.Errorf("go list in the context of the image: %v\n%s", err, out)
		}
	})
}

// copyContext copies the files that .dockerignore leaves in the context of the image.
func copyContext(t *testing.T, to string) {
	t.Helper()
	var ignored []string
	for line := range strings.Lines(fileOf(t, ".dockerignore")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ignored = append(ignored, line)
		}
	}
	copied := 0
	for name := range strings.Lines(succeeds(t, ".", "git", "ls-files")) {
		name = strings.TrimSpace(name)
		if slices.ContainsFunc(ignored, func(pattern string) bool { return matches(t, pattern, name) }) {
			continue
		}
		from, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), from, 0o600); err != nil {
			t.Fatal(err)
		}
		copied++
	}
	if copied < 100 {
		t.Fatalf("the context of the image has %d files, want all that the program is made of", copied)
	}
}

// matches reports whether a pattern of .dockerignore means a file, or a directory above it.
func matches(t *testing.T, pattern, name string) bool {
	t.Helper()
	pattern, anywhere := strings.CutPrefix(pattern, "**/")
	parts := strings.Split(name, "/")
	for i := range parts {
		candidates := []string{strings.Join(parts[:i+1], "/")}
		if anywhere {
			candidates = []string{parts[i]}
		}
		for _, c := range candidates {
			ok, err := filepath.Match(pattern, c)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				return true
			}
		}
	}
	return false
}

// TestComposeFile: Compose's own reader accepts the file, and the program the commands and
// health checks in it; nothing is published beyond this machine.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	text := fileOf(t, "deploy/compose.yaml")
	var file struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Ports       []string
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for name, service := range file.Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s publishes %s to other machines", name, port)
			}
		}
		if !strings.HasPrefix(service.Image, "ghcr.io/reprise-sqs/reprise:") {
			continue
		}
		ours++
		understood(t, "deploy/compose.yaml", service.Command)
		check := service.Healthcheck.Test
		if len(check) < 2 || check[1] != "/usr/bin/reprise" {
			t.Errorf("the health check of %s is %q, want one by the program: the image has nothing else", name, check)
			continue
		}
		understood(t, "deploy/compose.yaml", check[2:])
	}
	if ours != 2 {
		t.Errorf("%d services run the program, want 2", ours)
	}
	t.Run("parse", func(t *testing.T) {
		if out := succeeds(t, "deploy", pinned(t, "compose-spec"), "compose.yaml"); !strings.Contains(out, "condition: service_healthy") {
			t.Errorf("compose-spec prints:\n%s", out)
		}
	})
}
