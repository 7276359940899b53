package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mapPage describes every package and every file of the root package.
const mapPage = "docs/map.md"

// TestMapHasEveryPackage checks that each package of the workspace has a row of its
// own on the map, or is named in the row of a folder above it.
func TestMapHasEveryPackage(t *testing.T) {
	rows := mapRows(t)
	for _, p := range list(t, "work") {
		rel, ok := within(p.ImportPath)
		if !ok || rel == "." || onMap(rows, rel) {
			continue
		}
		t.Errorf("%s does not mention the package %s: add a row, or name it in the row of a folder above it", mapPage, rel)
	}
}

// mapRows returns the rows of the map, by the folder that they are about. A row that names no
// folder is about files of the folder above it.
func mapRows(t *testing.T) map[string]string {
	t.Helper()
	rows := make(map[string]string)
	var about []string
	for line := range strings.Lines(readPage(t, mapPage)) {
		first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || !strings.HasPrefix(line, "| ") {
			about = nil
			continue
		}
		var folders []string
		for _, name := range inCode.FindAllStringSubmatch(first, -1) {
			if folder, ok := strings.CutSuffix(name[1], "/"); ok {
				folders = append(folders, folder)
				if _, err := os.Stat(folder); err != nil {
					t.Errorf("%s has a row for %s, which does not exist: %v", mapPage, folder, err)
				}
			}
		}
		if folders != nil {
			about = folders
		}
		for _, folder := range about {
			rows[folder] += line
		}
	}
	return rows
}

var inCode = regexp.MustCompile("`([^`]+)`")

func onMap(rows map[string]string, folder string) bool {
	if _, ok := rows[folder]; ok {
		return true
	}
	for above := path.Dir(folder); above != "."; above = path.Dir(above) {
		if strings.Contains(rows[above], "`"+path.Base(folder)+"`") || strings.Contains(rows[above], "`"+path.Base(folder)+"/`") {
			return true
		}
	}
	return false
}

// TestMapHasEveryFileOfTheProgram checks that the row of each of the program's packages
// names its files, but for the one that is called like the package. Files for one system are
// named without its ending.
func TestMapHasEveryFileOfTheProgram(t *testing.T) {
	rows := mapRows(t)
	system := regexp.MustCompile(`(_(unix|linux|other))?\.go$`)
	seen := 0
	for _, p := range list(t, "work") {
		folder, ok := within(p.ImportPath)
		if !ok || !strings.HasPrefix(folder, "cmd/reprise/internal/") {
			continue
		}
		row, found := rows[folder]
		if !found {
			t.Errorf("%s has no row for %s: add one that says what each of its files is for", mapPage, folder)
			continue
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			seen++
			name := system.ReplaceAllString(filepath.Base(file), "")
			if name != path.Base(folder) && !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the row of %s on %s does not name %s: say in it what %s is for", folder, mapPage, name, file)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%s has rows for packages with %d files of the program, want more", mapPage, seen)
	}
}

// TestMapHasEveryFile checks that the map names each file of the root package, and
// no other.
func TestMapHasEveryFile(t *testing.T) {
	_, table, ok := strings.Cut(readPage(t, mapPage), "## Files of the root package")
	if !ok {
		t.Fatalf("%s has no section on the files of the root package", mapPage)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for _, name := range inCode.FindAllStringSubmatch(table, -1) {
		if strings.HasSuffix(name[1], ".go") {
			named = append(named, name[1])
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	for _, name := range files {
		if !slices.Contains(named, name) {
			t.Errorf("%s does not mention %s: say in one sentence what it is for", mapPage, name)
		}
	}
	for _, name := range named {
		if !slices.Contains(files, name) {
			t.Errorf("%s mentions %s, which is not a file of the root package", mapPage, name)
		}
	}
}

// place matches a file and names that it declares: "sqsserver/send.go: SendMessage, send".
// Lines may break between them.
var place = regexp.MustCompile(`([\w/]+\.go):\s(\w+(?:,\s\w+)*)`)

// TestPlacesExist checks that the files and names that DESIGN.md and CONTRIBUTING.md
// send readers to exist.
func TestPlacesExist(t *testing.T) {
	for page, fewest := range map[string]int{"DESIGN.md": 20, "CONTRIBUTING.md": 10} {
		places := place.FindAllStringSubmatch(readPage(t, page), -1)
		if len(places) < fewest {
			t.Errorf("%s names %d places in the form \"file.go: name\", want at least %d", page, len(places), fewest)
		}
		for _, p := range places {
			declared := declarations(t, p[1])
			for name := range strings.SplitSeq(p[2], ",") {
				name = strings.TrimSpace(name)
				if !slices.Contains(declared, name) {
					t.Errorf("%s sends readers to %s in %s, which does not declare it: name where it is now", page, name, p[1])
				}
			}
		}
	}
}

// codeName matches what a page names in code: a file, a declaration, a type's field or method
// (`Delivery.busy`), or a field or method alone (`.busy`).
var codeName = regexp.MustCompile("`([A-Za-z]\\w*)?(\\.)?([A-Za-z]\\w*)`")

// TestNamesOfThePagesExist checks that what the pages about the code name in code exists: a field or
// method in a type of that name, anything else as a file, a folder, a declaration or a text of the code.
func TestNamesOfThePagesExist(t *testing.T) {
	known := knownNames(t)
	for page, fewest := range map[string]int{"docs/invariants.md": 20, mapPage: 300} {
		named := codeName.FindAllStringSubmatch(readPage(t, page), -1)
		for _, m := range named {
			if name := m[1] + m[2] + m[3]; !known[name] {
				t.Errorf("%s names %s, which does not exist: name what has its part now", page, name)
			}
		}
		if len(named) < fewest {
			t.Errorf("%s names %d things in code, want at least %d", page, len(named), fewest)
		}
	}
}

// knownNames returns the names of the repository's files, with and without their endings, and folders,
// and of what the code of all modules declares or has as a text.
func knownNames(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("skipped: git cannot list the files: %v", err)
	}
	known := make(map[string]bool)
	system := regexp.MustCompile(`(_(unix|linux|other))?\.\w+$`)
	for file := range strings.Lines(string(out)) {
		for part := range strings.SplitSeq(strings.TrimSpace(file), "/") {
			known[part] = true
			known[system.ReplaceAllString(part, "")] = true
		}
	}
	for _, p := range list(t, "work") {
		for _, file := range p.GoFiles {
			addNames(t, known, filepath.Join(p.Dir, file))
		}
	}
	return known
}

// addNames notes what a file declares, fields and methods both with their types and alone, and its
// one-word texts.
func addNames(t *testing.T, known map[string]bool, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	member := func(of, name string) {
		known[of+"."+name] = true
		known["."+name] = true
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			known[n.Name.Name] = true
			if n.Recv != nil {
				ast.Inspect(n.Recv, func(of ast.Node) bool {
					if name, ok := of.(*ast.Ident); ok {
						member(name.Name, n.Name.Name)
					}
					return true
				})
			}
		case *ast.TypeSpec:
			known[n.Name.Name] = true
			if fields, ok := n.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						member(n.Name.Name, name.Name)
					}
				}
			}
		case *ast.Field: // of a struct or an interface, a parameter or a result
			for _, name := range n.Names {
				known[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				known[name.Name] = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				known[text] = true
			}
		}
		return true
	})
}

// testName matches the tests that DESIGN.md says hold an invariant.
var testName = regexp.MustCompile("`(Test\\w+)` in `([\\w/.]+_test\\.go)`")

// TestInvariantsNameTheirTests checks that the tests that DESIGN.md names exist where it says.
func TestInvariantsNameTheirTests(t *testing.T) {
	named := testName.FindAllStringSubmatch(readPage(t, "DESIGN.md"), -1)
	if len(named) < 10 {
		t.Errorf("DESIGN.md names %d tests in the form `TestName` in `file_test.go`, want at least 10", len(named))
	}
	for _, n := range named {
		if !slices.Contains(declarations(t, n[2]), n[1]) {
			t.Errorf("DESIGN.md names %s in %s, which does not declare it", n[1], n[2])
		}
	}
}

// declarations returns what a file declares at its top level: functions, methods,
// types, constants and variables.
func declarations(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
