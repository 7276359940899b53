package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// archiveName is the name of a target's archive, without its extension.
func (r *release) archiveName(t target) string {
	return fmt.Sprintf("reprise_%s_%s_%s", r.version, t.os, t.arch)
}

// listParts writes a software bill of materials beside each archive, in the form of
// CycloneDX: the modules of the program, with their versions, sums and licences.
func (r *release) listParts(ctx context.Context) error {
	tool, err := r.tool("cyclonedx-gomod")
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		name := filepath.Join(r.out, r.archiveName(t)+".cdx.json")
		if _, err := output(ctx, r.work, r.proxied(), tool, "bin", "-json", "-std", "-noserial", "-notimestamp",
			"-licenses", "-assert-licenses", "-version", r.version, "-output", name, r.programs[t]); err != nil {
			return err
		}
		if err := checkParts(name, r.version); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// checkParts checks that a bill of materials is of the program at version, and names a
// licence for everything in it.
func checkParts(name, version string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	type component struct {
		Name, Version string
		Licenses      []any
	}
	var bill struct {
		Metadata   struct{ Component component }
		Components []component
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		return err
	}
	if main := bill.Metadata.Component; main.Name != programPath || main.Version != version {
		return fmt.Errorf("it is about %s@%s, want %s@%s", main.Name, main.Version, programPath, version)
	}
	if len(bill.Components) == 0 {
		return fmt.Errorf("it has no components")
	}
	for _, c := range bill.Components {
		if len(c.Licenses) == 0 && c.Name != "std" {
			return fmt.Errorf("it has no licence for %s", c.Name)
		}
	}
	return nil
}
