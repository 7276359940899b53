package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// releasesURL is where the files of a release are, each under VERSION/NAME.
const releasesURL = "https://github.com/reprise-sqs/reprise/releases/download"

// packChart packs the Helm chart, with this version.
func (r *release) packChart(context.Context) error {
	chart := filepath.Join(r.source, "deploy", "helm", "reprise")
	files, err := filesOf(chart)
	if err != nil {
		return err
	}
	versioned := filepath.Join(r.work, "Chart.yaml")
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	for key, value := range map[string]string{"version": r.number(), "appVersion": r.version} {
		line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
		if n := len(line.FindAll(text, -1)); n != 1 {
			return fmt.Errorf("%s/Chart.yaml has %d lines %s, want 1", chart, n, key)
		}
		text = line.ReplaceAll(text, []byte(key+": "+value))
	}
	if err := os.WriteFile(versioned, text, 0o644); err != nil {
		return err
	}
	for i, f := range files {
		if f.name == "Chart.yaml" {
			files[i].from = versioned
		}
		files[i].name = path.Join("reprise", f.name)
	}
	return writeArchive(filepath.Join(r.out, "reprise-chart-"+r.number()+".tgz"), files, r.made, packTar)
}

//go:embed reprise.rb.tmpl
var formulaText string

var formula = template.Must(template.New("reprise.rb").Parse(formulaText))

// writeFormula writes the formula of Homebrew for the archives, if the release has all
// that Homebrew runs on.
func (r *release) writeFormula(context.Context) error {
	archives := make(map[string]map[string]string)
	for _, t := range r.targets {
		if t.os == "windows" {
			continue
		}
		name := r.archiveName(t) + ".tar.gz"
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		archives[t.os+"_"+t.arch] = map[string]string{"URL": releasesURL + "/" + r.version + "/" + name, "Sum": sum}
	}
	if len(archives) < 4 {
		fmt.Fprintf(r.log, "  no formula: it needs the archives of macOS and Linux, for amd64 and arm64\n")
		return nil
	}
	var b bytes.Buffer
	if err := formula.Execute(&b, map[string]any{"Version": r.number(), "Archives": archives}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "reprise.rb"), b.Bytes(), 0o644)
}

// writeNotes writes the version's section of the changelog, or the section Unreleased if
// the version has none yet.
func (r *release) writeNotes(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for _, heading := range []string{r.number(), "Unreleased"} {
		if _, rest, found := strings.Cut(string(text), "\n## "+heading); found {
			_, section, _ := strings.Cut(rest, "\n") // a date may follow
			section, _, _ = strings.Cut(section, "\n## ")
			return os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(strings.TrimSpace(section)+"\n"), 0o644)
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section %s and none Unreleased: add one", r.number())
}

// writeChecksums writes the SHA-256 of each file that users download, in the form of
// sha256sum.
func (r *release) writeChecksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		if e.IsDir() || e.Name() == marker || !strings.HasPrefix(e.Name(), "reprise") {
			continue
		}
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+e.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(r.out, marker), []byte(strings.Join(lines, "")), 0o644)
}

func sumOf(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
