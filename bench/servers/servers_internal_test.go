package servers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] || s.Name == "" || s.Keeps == "" || s.folder == "" || s.install == nil {
			t.Errorf("the server %q lacks something, or is there twice", s.Name)
		}
		seen[s.Name] = true
		if err := s.Installed(t.TempDir()); err == nil || !strings.Contains(err.Error(), "-install") {
			t.Errorf("%s: in an empty cache: %v", s.Name, err)
		}
	}
}

// TestInstall: the result of an installation is remembered; one that failed is tried again.
func TestInstall(t *testing.T) {
	cache, tries := t.TempDir(), 0
	s := Server{Name: "one", folder: "one", install: func(dir string) error {
		tries++
		if _, err := os.Stat(filepath.Join(dir, "left over")); err == nil {
			t.Error("what a failed installation left is still there")
		}
		if err := os.WriteFile(filepath.Join(dir, "left over"), nil, 0o644); err != nil {
			return err
		}
		if tries == 1 {
			return errors.New("no such version")
		}
		return nil
	}}
	if err := s.Install(cache); err == nil || !strings.Contains(err.Error(), "cannot be installed: no such version") {
		t.Errorf("a failed installation: %v", err)
	}
	if err := s.Installed(cache); err == nil || !strings.Contains(err.Error(), "no such version") {
		t.Errorf("after it: %v", err)
	}
	for range 2 {
		if err := s.Install(cache); err != nil {
			t.Error(err)
		}
	}
	if tries != 2 {
		t.Errorf("installed %d times", tries)
	}
	if _, err := s.Command(cache, t.TempDir(), "1"); err == nil {
		t.Error("there is a command for a server that has none")
	}
}

func TestQuietly(t *testing.T) {
	err := quietly(t.TempDir(), []string{"REASON=no network"}, "sh", "-c", "echo trying; echo $REASON; exit 7")
	if err == nil || err.Error() != "sh: exit status 7: no network" {
		t.Errorf("the error is %v", err)
	}
}

// TestCommands: the commands that start servers name their port and their data.
func TestCommands(t *testing.T) {
	for _, s := range All() {
		if s.command == nil {
			continue
		}
		data := t.TempDir()
		cmd, err := s.Command("cache", data, "12345")
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		told := strings.Join(cmd.Args, " ")
		files, err := filepath.Glob(filepath.Join(data, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			told += string(text)
		}
		if !strings.Contains(told, "12345") || s.Survives && !strings.Contains(told, data) {
			t.Errorf("%s is told %s", s.Name, told)
		}
	}
}
