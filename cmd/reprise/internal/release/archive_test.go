package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReleaseArchivesAreReproducible: the same files give the same bytes, in whichever
// order and with whichever times and owners they are on disk, and have the modes and
// names that an archive of a program needs.
func TestReleaseArchivesAreReproducible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	files := []packed{{"r/reprise", file("b", "program"), 0o755}, {"r/LICENSE", file("a", "licence"), 0o644}}
	made := time.Date(2026, 11, 23, 10, 11, 12, 13, time.FixedZone("", 3600))
	for name, pack := range map[string]func(io.Writer, []packed, time.Time) error{"r.tar.gz": packTar, "r.zip": packZip} {
		var first []byte
		for i, in := range [][]packed{files, {files[1], files[0]}} {
			if err := os.Chtimes(filepath.Join(dir, "a"), time.Unix(int64(i), 0), time.Unix(int64(i), 0)); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, fmt.Sprint(i, name))
			if err := writeArchive(out, in, made, pack); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = text
			}
			if !bytes.Equal(text, first) {
				t.Errorf("%s differs between two runs", name)
			}
		}
		want := []string{"-rw-r--r-- r/LICENSE 2026-11-23T09:11:12Z licence", "-rwxr-xr-x r/reprise 2026-11-23T09:11:12Z program"}
		if got := listed(t, name, first); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if err := writeArchive(filepath.Join(dir, "twice.zip"), append(files, files[0]), made, packZip); err == nil || !strings.Contains(err.Error(), "r/reprise") {
		t.Errorf("an archive with a file twice: %v, want an error that names it", err)
	}
}

// listed returns the mode, name, time and content of each file of an archive.
func listed(t *testing.T, name string, archive []byte) (files []string) {
	t.Helper()
	describe := func(mode os.FileMode, name string, made time.Time, from io.Reader) {
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, fmt.Sprintf("%s %s %s %s", mode, name, made.UTC().Format(time.RFC3339), text))
	}
	if strings.HasSuffix(name, ".zip") {
		read, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range read.File {
			from, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			describe(f.Mode(), f.Name, f.Modified, from)
		}
		return files
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for read := tar.NewReader(uncompressed); ; {
		header, err := read.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		describe(header.FileInfo().Mode(), header.Name, header.ModTime, read)
	}
}

// archived is a release whose archives are there, in name.
func archived(t *testing.T, targets string) *release {
	t.Helper()
	parsed, err := parseTargets(targets)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v0.3.0", targets: parsed, out: t.TempDir(), log: io.Discard}
	for _, a := range parsed {
		if err := os.WriteFile(filepath.Join(r.out, r.archiveName(a)+".tar.gz"), []byte(a.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestReleaseFormula: the formula names the archives that users of Homebrew need, each
// with its sum, and is Ruby.
func TestReleaseFormula(t *testing.T) {
	t.Parallel()
	r := archived(t, allTargets)
	if err := r.writeFormula(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, "reprise.rb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.targets {
		if a.os == "windows" {
			continue
		}
		name := r.archiveName(a) + ".tar.gz"
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("      url \"%s/v0.3.0/%s\"\n      sha256 \"%s\"\n", releasesURL, name, sum)
		if !strings.Contains(string(text), want) {
			t.Errorf("the formula has no\n%s\n%s", want, text)
		}
	}
	command(t, r.out, nil, "ruby", "-c", "reprise.rb")
}

// TestReleaseOfSomeTargetsHasNoFormula: a formula that lacks a system would fail there.
func TestReleaseOfSomeTargetsHasNoFormula(t *testing.T) {
	t.Parallel()
	r := archived(t, "linux/amd64,windows/arm64")
	if err := r.writeFormula(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.out, "reprise.rb")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a formula (%v), want none", err)
	}
}

// TestReleaseChecksums: sha256sum accepts them, and each file to download has one.
func TestReleaseChecksums(t *testing.T) {
	t.Parallel()
	r := archived(t, "linux/amd64,linux/arm64")
	if err := os.WriteFile(filepath.Join(r.out, "notes.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.writeChecksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := command(t, r.out, []string{"LC_ALL=C"}, "sha256sum", "--check", "--strict", marker)
	if want := "reprise_v0.3.0_linux_amd64.tar.gz: OK\nreprise_v0.3.0_linux_arm64.tar.gz: OK"; got != want {
		t.Errorf("sha256sum prints %q, want %q", got, want)
	}
}

// TestReleaseChartHasTheVersion: the packed chart has the version of the release, and all
// else as it is in the repository.
func TestReleaseChartHasTheVersion(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v0.3.0-rc.1", source: source, work: t.TempDir(), out: t.TempDir()}
	if err := r.packChart(t.Context()); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(r.out, "reprise-chart-0.3.0-rc.1.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Join(listed(t, "chart.tgz", archive), "\n")
	for _, want := range []string{" reprise/Chart.yaml ", "\nversion: 0.3.0-rc.1\n", "\nappVersion: v0.3.0-rc.1\n", " reprise/values.yaml ", " reprise/templates/deployment.yaml "} {
		if !strings.Contains(files, want) {
			t.Errorf("the chart has no %q", want)
		}
	}
}

// TestReleaseNotes: the notes are the version's section of the changelog; without one, the
// section Unreleased.
func TestReleaseNotes(t *testing.T) {
	t.Parallel()
	r := &release{source: t.TempDir(), out: t.TempDir()}
	text := "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 (2026-11-01)\n\n- old\n"
	if err := os.WriteFile(filepath.Join(r.source, "CHANGELOG.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"v0.2.0": "- old\n", "v0.3.0": "- new\n"} {
		r.version = version
		if err := r.writeNotes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(r.out, "notes.md")); err != nil || string(got) != want {
			t.Errorf("the notes of %s are %q (%v), want %q", version, got, err, want)
		}
	}
}
