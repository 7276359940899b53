// Package functions_test tests the Lambda functions in the folders beside it, and the templates
// under deploy/ and examples/ that deploy them.
package functions_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// root is the project's folder, seen from this package.
const root = "../../.."

// maxBinary is the largest acceptable size: larger binaries slow down every cold start.
const maxBinary = 24 << 20

// TestFunctionsAreStaticAndSmall: make functions builds what the runtime provided.al2023
// starts, for both architectures of Lambda: one file named bootstrap that needs no
// other.
func TestFunctionsAreStaticAndSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short does not build the functions for two architectures")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("skipped: make is not installed")
	}
	t.Parallel()
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", root, "functions", "FUNCTIONS_DIR="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make functions: %v\n%s", err, out)
	}
	sources, err := filepath.Glob("*/main.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("there are no functions here (%v)", err)
	}
	for architecture, machine := range map[string]elf.Machine{"arm64": elf.EM_AARCH64, "x86_64": elf.EM_X86_64} {
		for _, source := range sources {
			name := filepath.Join(architecture, filepath.Dir(source), "bootstrap")
			t.Run(name, func(t *testing.T) { checkBinary(t, filepath.Join(folder, name), machine) })
		}
	}
}

// TestSAMBuildsTheFunctions builds every function with what sam build has inside, as the
// documented command does: each is in a module whose go.mod is not in its folder.
func TestSAMBuildsTheFunctions(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short does not build the functions anew")
	}
	// Not in parallel: what is compiled here, make functions finds in the cache.
	interpreter := python(t, "aws_lambda_builders")
	architecture, machine := "x86_64", elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		architecture, machine = "arm64", elf.EM_AARCH64
	}
	for _, function := range []string{"flaky", "retryhandler"} {
		folder := t.TempDir()
		cmd := exec.CommandContext(t.Context(), interpreter, "testdata/build.py", function, folder, architecture)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -tags=lambda.norpc '-ldflags=-s -w'")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", function, err, out)
			continue
		}
		t.Run(function, func(t *testing.T) { checkBinary(t, filepath.Join(folder, "bootstrap"), machine) })
	}
}

func checkBinary(t *testing.T, path string, machine elf.Machine) {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("it has %d bytes, more than %d", info.Size(), maxBinary)
	}
	if info.Mode()&0o111 != 0o111 {
		t.Errorf("its mode is %v: every user must be able to execute it, since Lambda chooses the user", info.Mode())
	}
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if binary.Machine != machine {
		t.Errorf("it is for %v, want %v", binary.Machine, machine)
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %v: it is not static", segment.Type)
		}
	}
}
