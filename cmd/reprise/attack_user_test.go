//go:build unix

// The attacker is another user of the machine, who may read every directory that modes permit,
// write where everybody may, and connect to every socket that is writable for them.

package main_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keepWide starts a server on a data directory that everybody may list, with a umask of 0.
func keepWide(t *testing.T, dir string) *process {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // G301: which is the attack
		t.Fatal(err)
	}
	return startCommand(t, environment(), "/bin/sh", "-c", `umask 0; exec "$0" "$@"`,
		program(t), "serve", "--addr", "127.0.0.1:0", "--data", dir, "--queue", "q")
}

// TestAttackDataDirectory: in a data directory that everybody may list nobody else can read a
// message or use the socket, and the log warns of the directory.
func TestAttackDataDirectory(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	dir := filepath.Join(temp, "data")
	p := keepWide(t, dir)
	p.await("chmod 700 " + dir)
	endpoint, ok := p.started()
	if !ok {
		t.Fatal(p.output())
	}
	sendAll(t, endpoint, "q", "salaries")
	backup := filepath.Join(temp, "backup")
	if got := reprise(t, "", "backup", "--data", dir, backup); got.code != 0 {
		t.Fatalf("backup: %+v", got)
	}
	for _, dir := range []string{dir, backup} {
		files := 0
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if files++; info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil || files < 5 {
			t.Errorf("%d files in %s: %v", files, dir, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "control.sock")); err != nil {
		t.Errorf("no socket was looked at: %v", err)
	}
	p.stop()
	if _, err := os.Lstat(filepath.Join(dir, "control.sock")); err == nil {
		t.Error("the socket is left behind")
	}
}

// TestAttackBackupTarget: no form of a backup's path leads into the data directory or replaces an
// existing file, whether the server runs (by the command or by its socket) or not.
func TestAttackBackupTarget(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	dir, elsewhere := filepath.Join(temp, "data"), filepath.Join(temp, "elsewhere")
	p, _ := keep(t, dir, "--queue", "q")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for to, name := range map[string]string{dir: "in", "/nonexistent/place": "dangling", temp: "up"} {
		if err := os.Symlink(to, filepath.Join(elsewhere, name)); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{
		dir, dir + "/x", dir + "/../data/x", elsewhere + "/../data/x", dir + "//x/", elsewhere + "/in/x", elsewhere + "/up/data/x",
		elsewhere + "/dangling", elsewhere, elsewhere + "/in/../data/x", elsewhere + "/no/x",
	}
	socket := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "control.sock"))
	}}}
	defer socket.CloseIdleConnections()
	for _, path := range append(paths, "relative", "", "../x") {
		order, err := json.Marshal(map[string]string{"directory": path})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := socket.Post("http://reprise/backup", "application/json", strings.NewReader(string(order)))
		if err != nil {
			t.Fatal(err)
		}
		reason, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || len(reason) == 0 {
			t.Errorf("order for %q: %s, %s", path, resp.Status, reason)
		}
	}
	before := names(t, dir)
	for _, running := range []bool{true, false} {
		if !running {
			p.stop()
		}
		for _, path := range paths {
			if got := reprise(t, "", "backup", "--data", dir, path); got.code != 1 || !strings.HasPrefix(got.stderr, "reprise: ") {
				t.Errorf("backup to %q: %+v", path, got)
			}
		}
		if running {
			if after := names(t, dir); after != before {
				t.Errorf("the data directory has %s, and had %s", after, before)
			}
		}
	}
	for _, name := range []string{"x", "data"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("the data directory has a %s", name)
		}
	}
	if got := names(t, elsewhere); got != "dangling in up" {
		t.Errorf("the other directory has %q", got)
	}
}

// names returns the names of the files in dir.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}
