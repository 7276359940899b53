package repotest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/reprise-sqs/reprise"

// arrows are the imports between the project's packages that the design permits:
// each package, its purpose, and the packages that it may import. They point one way. A package
// that is not listed may import none, so a new one fails here first.
var arrows = map[string][]string{
	"retry":                        {"internal/clocks"},
	"plan":                         {"internal/carry", "internal/plural", "retry"},
	"internal/awsjson":             {},
	"internal/bodycache":           {"internal/engine"},
	"internal/breaker":             {},
	"internal/alarms":              {},
	"internal/budget":              {},
	"internal/calls":               {},
	"internal/consumer":            {"internal/alarms", "internal/breaker", "internal/budget", "internal/calls", "internal/carry", "internal/clocks", "internal/gate", "internal/giveups", "internal/groups", "internal/history", "internal/lease", "internal/memory", "internal/plural", "internal/shortkey", "internal/sqslimit", "internal/turns", "plan", "retry"},
	"internal/carry":               {"retry"},
	"internal/chance":              {},
	"internal/clocks":              {},
	"internal/digest":              {},
	"internal/engine":              {},
	"internal/fleet":               {},
	"internal/gate":                {"internal/breaker"},
	"internal/giveups":             {"retry"},
	"internal/groups":              {},
	"internal/history":             {},
	"internal/mutation":            {"internal/variants"},
	"internal/night":               {},
	"internal/lease":               {"internal/clocks", "retry"},
	"internal/machines":            {},
	"internal/memory":              {"retry"},
	"internal/plural":              {},
	"internal/extremes":            {},
	"internal/race":                {},
	"internal/replies":             {"internal/awsjson"},
	"internal/repotest":            {},
	"internal/sending":             {"retry"},
	"internal/shelltest/attacks":   {},
	"internal/shelltest/batches":   {},
	"internal/shelltest/groups":    {},
	"internal/shelltest/kit":       {".", "plan", "reprisetest", "retry", "sqsserver"},
	"internal/shelltest/operating": {},
	"internal/shelltest/outages":   {},
	"internal/shelltest/pools":     {},
	"internal/shelltest/receiving": {},
	"internal/shelltest/sending":   {},
	"internal/shelltest/settling":  {},
	"internal/shortkey":            {},
	"internal/sigv4":               {},
	"internal/simulation":          {"internal/clocks", "internal/consumer", "internal/engine", "internal/history", "internal/sending", "internal/world", "plan", "retry"},
	"internal/stranger":            {},
	"internal/turns":               {},
	"internal/variants":            {},
	"internal/world":               {"internal/engine"},
	"sqsserver":                    {"internal/awsjson", "internal/bodycache", "internal/digest", "internal/engine", "internal/sigv4", "internal/sqslimit"},
	".":                            {"internal/breaker", "internal/chance", "internal/clocks", "internal/consumer", "internal/digest", "internal/history", "internal/plural", "internal/replies", "internal/sending", "internal/sqslimit", "plan", "retry"},
	"reprisetest":                  {".", "internal/plural", "sqsserver", "retry"},
	"idempotency":                  {".", "internal/plural"},
	"idempotency/idempotencytest":  {".", "idempotency"},
	"idempotency/sqlstore":         {"idempotency"},
	"middleware":                   {".", "internal/shortkey", "internal/sqslimit", "retry"},
	"envelope":                     {"."},
	"repriselambda":                {".", "internal/sqslimit", "plan", "retry"},
	"simulate":                     {"internal/breaker", "internal/consumer", "internal/engine", "internal/simulation", "internal/world", "plan", "retry"},
}

// leaves are the modules outside the library; every folder of adapters is one, with
// the requirements of that adapter alone. They may know the library's public
// packages only: their paths lie under the library's, so the compiler would let
// them import its internals.
var leaves = []string{"adapters/", "cmd/reprise", "bench"}

// requirements are the modules that the library may need at run time.
var requirements = []string{
	"github.com/aws/aws-sdk-go-v2",
	"github.com/aws/smithy-go",
	"github.com/aws/aws-lambda-go",
}

type listed struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// list runs go list over the workspace's packages.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Standard,Module"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list %v: %v\n%s", args, err, exit.Stderr)
		}
		t.Fatalf("go list %v: %v", args, err)
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("reading go list's output: %v", err)
		}
		packages = append(packages, p)
	}
}

// within returns the package's path inside the project.
func within(importPath string) (rel string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// leaf returns the leaf module that a package belongs to, or "".
func leaf(rel string) string {
	for _, l := range leaves {
		if name, ok := strings.CutPrefix(rel, l); ok && strings.HasSuffix(l, "/") {
			name, _, _ = strings.Cut(name, "/")
			return l + name
		}
		if rel == l || strings.HasPrefix(rel, l+"/") {
			return l
		}
	}
	return ""
}

// TestArrows compares the imports between the project's packages with the permitted ones.
func TestArrows(t *testing.T) {
	seen := 0
	for _, p := range list(t, "work") {
		from, ok := within(p.ImportPath)
		if !ok {
			continue
		}
		seen++
		for _, imported := range p.Imports {
			to, ok := within(imported)
			if !ok {
				continue
			}
			switch home := leaf(from); {
			case home != "" && leaf(to) == home:
				// a module's own packages
			case home != "" && strings.HasPrefix(to, "internal/"):
				t.Errorf("%s imports %s: modules outside the library may use its public packages only; add what is missing to one of those", from, to)
			case home != "":
				if leaf(to) != "" && (home != "cmd/reprise" || !strings.HasPrefix(leaf(to), "adapters/")) && home != "bench" {
					t.Errorf("%s imports %s: arrows between modules point cmd/reprise -> adapters -> the library", from, to)
				}
			case leaf(to) != "":
				t.Errorf("%s imports %s: the library must not know the modules that are built on it", from, to)
			default:
				allowed, known := arrows[from]
				if !known {
					t.Errorf("package %s is new: say in arrows_test.go which packages it may import, and describe it in docs/map.md", from)
				} else if !slices.Contains(allowed, to) {
					t.Errorf("%s imports %s: permitted are %v; see the diagram in DESIGN.md", from, to, allowed)
				}
			}
		}
	}
	if seen < len(arrows) {
		t.Errorf("go list found %d of the project's packages, fewer than the %d that the arrows name", seen, len(arrows))
	}
}

// TestRequirements checks the run-time requirements of the library: a user of the library gets only
// the AWS SDK.
func TestRequirements(t *testing.T) {
	args := []string{"-deps"}
	for name := range arrows {
		args = append(args, path.Join(module, name))
	}
	packages := list(t, args...)
	for _, p := range packages {
		if p.Standard || p.Module == nil || p.Module.Path == module {
			continue
		}
		if !slices.ContainsFunc(requirements, func(r string) bool {
			return p.Module.Path == r || strings.HasPrefix(p.Module.Path, r+"/")
		}) {
			var by []string
			for _, other := range packages {
				if slices.Contains(other.Imports, p.ImportPath) {
					by = append(by, other.ImportPath)
				}
			}
			t.Errorf("the library depends on %s, which %q import: its run-time requirements are %v; a new one needs a row in docs/decisions/program.md", p.ImportPath, by, requirements)
		}
	}
}

// TestAdaptersAreModules checks that each adapter is a module of its own, so that a program that
// uses one does not get the requirements of the others, and that its package has the name of its
// folder, so that it can be imported without an alias.
func TestAdaptersAreModules(t *testing.T) {
	found := 0
	for _, p := range list(t, "work") {
		rel, ok := within(p.ImportPath)
		if !ok || !strings.HasPrefix(rel, "adapters/") {
			continue
		}
		found++
		if home := path.Join(module, leaf(rel)); p.Module == nil || p.Module.Path != home {
			t.Errorf("%s is part of module %v: give it a go.mod for %s, and a line in go.work", rel, p.Module, home)
		}
		if p.Name != "" && p.Name != path.Base(rel) {
			t.Errorf("package %s stands in folder %s: name both alike", p.Name, rel)
		}
	}
	if found == 0 {
		t.Error("go list found no adapter")
	}
}

// TestNoForbiddenNames: no package has a name that says nothing about its content.
func TestNoForbiddenNames(t *testing.T) {
	for _, p := range list(t, "work") {
		switch base := path.Base(p.ImportPath); base {
		case "util", "utils", "common", "helpers", "types", "models", "misc", "shared":
			t.Errorf("package %s: name it for what it does", p.ImportPath)
		}
	}
}

// TestLoopbackIsDecidedOnce: one function decides which addresses and names belong to this machine.
// Two rules depend on it: where the server may listen without credentials, and which requests come
// from web pages.
func TestLoopbackIsDecidedOnce(t *testing.T) {
	const owner = "sqsserver/loopback.go"
	decides := regexp.MustCompile(`\.IsLoopback\(|[=!]= "localhost"|Suffix\([^)]*"\.localhost"`)
	found := false
	for _, p := range list(t, "work") {
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			here := decides.FindString(string(text))
			switch {
			case here == "":
			case strings.HasSuffix(filepath.ToSlash(file), owner):
				found = true
			default:
				t.Errorf("%s decides itself what this machine is, by %s: call sqsserver.IsLoopbackAddr or IsLoopbackName", file, here)
			}
		}
	}
	if !found {
		t.Errorf("%s decides nothing any more: name the file that does", owner)
	}
}
