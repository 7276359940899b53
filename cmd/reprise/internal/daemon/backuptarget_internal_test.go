//go:build unix

package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackupTarget: a backup goes to a new directory outside of the data directory, whatever the names of both; a link that leads
// nowhere yet is not a new directory.
func TestBackupTarget(t *testing.T) {
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(temp, name) }
	if err := errors.Join(
		os.MkdirAll(at("data/sub"), 0o700), os.Mkdir(at("data-2"), 0o700), os.WriteFile(at("file"), nil, 0o600),
		os.Symlink(at("data"), at("link-to-data")), os.Symlink(at("absent"), at("dangling")), os.Symlink(temp, at("link-to-here")),
	); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dest, want, problem string }{
		{dest: at("new"), want: at("new")},
		{dest: at("data-2/new"), want: at("data-2/new")},
		{dest: at("link-to-here/new/"), want: at("new")},
		{dest: "new", problem: "name an absolute path"},
		{dest: at("data-2"), problem: "it exists"},
		{dest: at("file"), problem: "it exists"},
		{dest: at("dangling"), problem: "it exists"},
		{dest: at("absent/new"), problem: "the directory that it is to be in"},
		{dest: at("data/new"), problem: "it is in the data directory"},
		{dest: at("data/sub/new"), problem: "it is in the data directory"},
		{dest: at("link-to-data/sub/new"), problem: "it is in the data directory"},
	} {
		got, err := backupTarget(at("data"), test.dest)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", test.dest, got, err, test.want, test.problem)
		}
	}
}
