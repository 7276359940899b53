package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// TestRun: what the command line must look like. The demo itself is tested with the
// reprise program.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"--help"}, 0},
		{[]string{"--messages", "0"}, 2},
		{[]string{"--messages", "many"}, 2},
		{[]string{"--frobnicate"}, 2},
		{[]string{"now"}, 2},
	} {
		if code := run(test.args); code != test.code {
			t.Errorf("demo %v: exit code %d, want %d", test.args, code, test.code)
		}
	}
}

// TestFewModules: the demo is the first thing that is compiled after a clone, so it
// needs no module but those that it cannot do without.
func TestFewModules(t *testing.T) {
	allowed := []string{
		"github.com/reprise-sqs/reprise",
		"github.com/aws/aws-sdk-go-v2",
		"github.com/aws/smithy-go",
		"golang.org/x/sys", "golang.org/x/term",
	}
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Module", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Module     *struct{ Path string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil {
			continue // of Go's own
		}
		seen++
		ok := strings.HasPrefix(p.Module.Path, "github.com/aws/aws-sdk-go-v2/internal/") ||
			p.Module.Path == "github.com/aws/aws-sdk-go-v2/service/sqs" || p.Module.Path == "github.com/reprise-sqs/reprise/cmd/reprise"
		for _, module := range allowed {
			ok = ok || p.Module.Path == module
		}
		if !ok {
			t.Errorf("%s, of the module %s, is compiled for the demo: do without it, or say here why not", p.ImportPath, p.Module.Path)
		}
	}
	if seen == 0 {
		t.Error("go list named no package of a module")
	}
}
