//go:build unix

package build_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// folder makes a folder with the given files, and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
	return dir
}

const (
	module  = "module example.com/f\n\ngo 1.26\n"
	program = "package main\n\nimport \"example.com/f/part\"\n\nfunc main() { println(part.Text) }\n"
	part    = "package part\n\nconst Text = \"compiled\"\n"
)

// native is the machine's processor as templates have it.
var native = map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]

// TestBuildGo: what is a program is run, what is Go is compiled, and a Makefile is
// obeyed.
func TestBuildGo(t *testing.T) {
	goProgram := map[string]string{"go.mod": module, "main.go": program, "part/part.go": part}
	for _, test := range []struct {
		name     string
		files    map[string]string
		function template.Function
		output   string
		notes    []string // that begin so, $CODE is the folder
	}{
		{"a program", map[string]string{"bootstrap": "#!/bin/sh\necho ready >&2"}, template.Function{Architecture: native}, "ready\n",
			[]string{"$CODE/bootstrap is run as it is: nothing was built"}},
		{"Go", goProgram, template.Function{Architecture: native}, "compiled\n", nil},
		{"Go for another processor", goProgram, template.Function{Architecture: "riscv"}, "compiled\n",
			[]string{"built for this machine (" + native + "), not for riscv"}},
		{"Go beside a program", with(goProgram, "bootstrap", "#!/bin/sh\necho old >&2"),
			template.Function{Architecture: native, Code: template.Code{BuildMethod: "go1.x"}}, "compiled\n", nil},
		{"a Makefile", map[string]string{"Makefile": "build-F:\n\tprintf '#!/bin/sh\\necho made >&2\\n' >$(ARTIFACTS_DIR)/bootstrap\n\tchmod +x $(ARTIFACTS_DIR)/bootstrap\n"},
			template.Function{Architecture: native, Code: template.Code{BuildMethod: "makefile"}}, "made\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.function.Code.BuildMethod == "makefile" {
				need(t, "make")
			}
			code := folder(t, test.files)
			f := test.function
			f.ID, f.Runtime, f.Code.Path = "F", "provided.al2023", filepath.Base(code)
			built, err := (&build.Builder{Root: filepath.Dir(code), Dir: t.TempDir()}).Build(t.Context(), &f)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(built.Command[0], built.Command[1:]...).CombinedOutput()
			if string(out) != test.output || err != nil {
				t.Errorf("the program writes %q, %v, want %q", out, err, test.output)
			}
			for i := range built.Notes {
				built.Notes[i] = strings.ReplaceAll(built.Notes[i], code, "$CODE")
			}
			if diff := cmp.Diff(test.notes, built.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func with(files map[string]string, name, text string) map[string]string {
	result := map[string]string{name: text}
	for name, text := range files {
		result[name] = text
	}
	return result
}

// elf is the head of a 64-bit program for Linux on the machine called number.
func elf(number byte) string {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52] = 2, number, 1, 64
	return string(head)
}

// TestBuildFails: with a text that names the function, what is wrong, and what to do.
func TestBuildFails(t *testing.T) {
	another, name := byte(183), "arm64" // EM_AARCH64
	if runtime.GOARCH == "arm64" {
		another, name = 62, "x86_64" // EM_X86_64
	}
	for _, test := range []struct {
		files map[string]string
		code  template.Code
		want  []string
	}{
		{nil, template.Code{Path: "absent"}, []string{"function F: there is no folder", "/absent: correct CodeUri"}},
		{map[string]string{"f": ""}, template.Code{Path: "f"}, []string{"f is not a folder"}},
		{nil, template.Code{Path: "."}, []string{"has neither a program called bootstrap nor Go files"}},
		{map[string]string{"go.mod": module, "main.go": "package main\n\nfunc main() { nonsense }\n"}, template.Code{Path: "."}, []string{"go build", "main.go:3", "undefined: nonsense"}},
		{map[string]string{"bootstrap": elf(another)}, template.Code{Path: "."}, []string{"/bootstrap is for " + name, "without GOARCH"}},
		{map[string]string{"Makefile": "build-F:\n\t@echo no such luck; false\n"}, template.Code{Path: ".", BuildMethod: "makefile"}, []string{"make build-F", "no such luck"}},
		{map[string]string{"Makefile": "build-F:\n\t@true\n"}, template.Code{Path: ".", BuildMethod: "makefile"}, []string{"made no bootstrap", "$(ARTIFACTS_DIR)"}},
	} {
		if test.code.BuildMethod == "makefile" {
			need(t, "make")
		}
		f := template.Function{ID: "F", Runtime: "provided.al2023", Architecture: native, Code: test.code}
		_, err := (&build.Builder{Root: folder(t, test.files), Dir: t.TempDir()}).Build(t.Context(), &f)
		if err == nil {
			t.Errorf("%v with %v was built", test.code, test.files)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q does not say %q", test.code, err, want)
			}
		}
	}
}

// TestBuildStopped: a build that is stopped ends with all that it has started.
func TestBuildStopped(t *testing.T) {
	need(t, "make")
	// The pipe's other end is open as long as what make has started runs.
	code := folder(t, map[string]string{"Makefile": "build-F:\n\texec 3>pipe; echo begun >&3; sleep 600\n"})
	pipe := filepath.Join(code, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		f := template.Function{ID: "F", Runtime: "provided.al2023", Architecture: native, Code: template.Code{Path: ".", BuildMethod: "makefile"}}
		_, err := (&build.Builder{Root: code, Dir: t.TempDir()}).Build(ctx, &f)
		ended <- err
	}()
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	lines := bufio.NewReader(reader)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Fatalf("the build says %q, %v", line, err)
	}
	stop(errors.New("enough"))
	if err := <-ended; err == nil || err.Error() != "function F: enough" {
		t.Errorf("Build = %v, want the reason of the stop", err)
	}
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("what the build has started: %v, want the end of the pipe", err)
	}
}

// TestFingerprint: a change of what a program is made of is seen, and of what it is
// not made of is not.
func TestFingerprint(t *testing.T) {
	code := folder(t, map[string]string{"go.mod": module, "main.go": program, "part/part.go": part, "other/other.go": "package other\n",
		"part/embed.go": "package part\n\nimport _ \"embed\"\n\n//go:embed texts/hello\nvar Hello string\n", "part/texts/hello": "hello"})
	f := template.Function{ID: "F", Runtime: "provided.al2023", Architecture: native, Code: template.Code{Path: "."}}
	built, err := (&build.Builder{Root: code, Dir: t.TempDir(), Watch: true}).Build(t.Context(), &f)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for _, test := range []struct {
		file    string
		changes bool
	}{{"main.go", true}, {"part/part.go", true}, {"part/texts/hello", true}, {"go.mod", true}, {"other/other.go", false}} {
		before := build.Fingerprint(built.Sources)
		at = at.Add(time.Second)
		if err := os.Chtimes(filepath.Join(code, test.file), at, at); err != nil {
			t.Fatal(err)
		}
		if changed := build.Fingerprint(built.Sources) != before; changed != test.changes {
			t.Errorf("a change of %s is seen: %v, want %v", test.file, changed, test.changes)
		}
	}
	if build.Fingerprint(nil) != (build.Built{}).Fingerprint {
		t.Error("what was built from no files seems to change")
	}
	deep := []build.Source{{Path: folder(t, map[string]string{"app.py": "", "node_modules/x.js": "", ".git/y": "", "lib/z.py": ""}), Deep: true}}
	for file, changes := range map[string]bool{"app.py": true, "node_modules/x.js": false, ".git/y": false, "lib/z.py": true} {
		before := build.Fingerprint(deep)
		if err := os.WriteFile(filepath.Join(deep[0].Path, file), []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed := build.Fingerprint(deep) != before; changed != changes {
			t.Errorf("a change of %s is seen: %v, want %v", file, changed, changes)
		}
	}
}
