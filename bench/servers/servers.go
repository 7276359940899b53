// Package servers installs and starts other servers that speak SQS, if they can be installed as
// packages.
package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Server is a way to run another server.
type Server struct {
	Name string // with its version

	// Keeps describes where messages are. Survives reports whether acknowledged messages survive
	// when the process is killed: then the server is durable in some way, although a crash of the
	// machine may lose unsynced messages.
	Keeps    string
	Survives bool

	// Everywhere reports that it always listens on every interface of the machine.
	Everywhere bool

	folder  string // in the cache; servers of one package share it
	install func(dir string) error
	command func(dir, data, port string) (*exec.Cmd, error)
}

// All are the servers. Versions are pinned, if a version in a module proxy is known.
func All() []Server {
	return []Server{
		{Name: "goaws 0.5.4", Keeps: "memory", Everywhere: true, folder: "goaws",
			install: goModule("github.com/Admiral-Piett/goaws", "v0.5.4", "/app/cmd"), command: goaws},
		{Name: "sqslite", Keeps: "memory", folder: "sqslite",
			install: goModule("github.com/wcharczuk/sqslite", "latest", "")},
		{Name: "gopherstack", Keeps: "memory", folder: "gopherstack",
			install: goModule("github.com/blackbirdworks/gopherstack", "latest", "")},
		{Name: "smoothmq 0.2.1", Keeps: "SQLite, not synced", Survives: true, folder: "smoothmq",
			install: goModule("github.com/poundifdef/smoothmq", "v0.2.1", "")},
		{Name: "overcast 0.0.1-alpha.35", Keeps: "SQLite, not synced", Survives: true, folder: "overcast",
			install: goModule("github.com/Neaox/overcast", "v0.0.1-alpha.35", "")},
		{Name: "fauxqs 2.4.1", Keeps: "memory", Everywhere: true, folder: "fauxqs", install: installFauxqs, command: fauxqs(false)},
		{Name: "fauxqs 2.4.1, persistent", Keeps: "SQLite, synced", Survives: true, Everywhere: true, folder: "fauxqs",
			install: installFauxqs, command: fauxqs(true)},
		{Name: "moto 5.2.1", Keeps: "memory", folder: "moto", install: installMoto, command: moto},
		{Name: "ElasticMQ 1.6.14", Keeps: "memory", folder: "elasticmq", install: installElasticMQ, command: elasticMQ(false)},
		{Name: "ElasticMQ 1.6.14, persistent", Keeps: "H2, synced late", Survives: true, folder: "elasticmq",
			install: installElasticMQ, command: elasticMQ(true)},
	}
}

// outcome is the file with the result of an installation: it is empty, or has the reason of the
// failure.
const outcome = "outcome.txt"

// Install installs the server into the cache, unless it is there. The error says
// why that is not possible, and is remembered.
func (s Server) Install(cache string) error {
	dir := filepath.Join(cache, s.folder)
	if s.Installed(cache) == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	reason := ""
	if err := s.install(dir); err != nil {
		reason = err.Error()
	}
	if err := os.WriteFile(filepath.Join(dir, outcome), []byte(reason), 0o644); err != nil {
		return err
	}
	return s.Installed(cache)
}

// Installed returns why the server is not in the cache; nil: it is.
func (s Server) Installed(cache string) error {
	reason, err := os.ReadFile(filepath.Join(cache, s.folder, outcome))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("not installed: go run ./bench -install servers")
	case err != nil:
		return err
	case len(reason) > 0:
		return fmt.Errorf("cannot be installed: %s", reason)
	}
	return nil
}

// Command is the command of the server on a port, with an empty directory for its data.
func (s Server) Command(cache, data, port string) (*exec.Cmd, error) {
	if s.command == nil {
		return nil, errors.New("the command that starts it is not known: add it to bench/servers")
	}
	dir, err := filepath.Abs(filepath.Join(cache, s.folder))
	if err != nil {
		return nil, err
	}
	return s.command(dir, data, port)
}

// quietly runs an installer. The error is the last line that it printed.
func quietly(dir string, environment []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(lines[len(lines)-1]))
}
