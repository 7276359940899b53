package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWebLicences: the licence of each author of code in the dashboard's pages goes into a release.
func TestWebLicences(t *testing.T) {
	saved := t.TempDir()
	if err := copyWebLicences(saved, filepath.Join("..", "..", "..", "..")); err != nil {
		t.Fatal(err)
	}
	var kept []string
	entries, err := os.ReadDir(filepath.Join(saved, "web"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(saved, "web", e.Name(), "LICENSE"))
		if err != nil || len(text) < 100 {
			t.Errorf("%s: %d bytes, %v", e.Name(), len(text), err)
		}
		kept = append(kept, e.Name())
	}
	code, err := filepath.Glob(filepath.Join("..", "dashboard", "assets", "vendor", "*.min.js"))
	if err != nil || len(code) < 3 {
		t.Fatalf("the dashboard has %q of others: %v", code, err)
	}
	for _, file := range code {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if name == "hx-sse" { // of the authors of htmx, in its package
			name = "htmx"
		}
		if !slices.Contains(kept, name) {
			t.Errorf("%s has no licence in %q", file, kept)
		}
	}
	if err := copyWebLicences(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a source without licences is released")
	}
}
