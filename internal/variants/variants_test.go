package variants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = "sample.go"

// inSample goes to a copy of a small module, and returns a function that makes variants
// of its one file by replacing texts.
func inSample(t *testing.T) (replaced func(name string, oldnew ...string) Variant) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/sample")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string, oldnew ...string) Variant {
		changed := strings.NewReplacer(oldnew...).Replace(string(text))
		if changed == string(text) {
			t.Fatalf("%s changes nothing", name)
		}
		return Variant{Name: name, Files: map[string][]byte{sample: []byte(changed)}}
	}
}

// build compiles the tests of the sample.
func build(t *testing.T, o Overlay) (binary string, problem error) {
	t.Helper()
	dir := t.TempDir()
	file, err := o.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "tests")
	return binary, BuildTests(t.Context(), file, ".", binary)
}

// TestMergedRunsEach: one binary runs as the original and as each of its variants, one of
// several bodies among them.
func TestMergedRunsEach(t *testing.T) {
	replaced := inSample(t)
	variants := []Variant{
		replaced("one-more", "len(l.all) == most", "len(l.all) == most+1"),
		replaced("none-kept", "len(l.all) == most && most >= least", "true"),
		replaced("row-goes-on", "n < 0", "n < -1"),
		replaced("rows-end", "continue rows", "break rows"),
		replaced("not-reset", "l.all = nil", ""),
		replaced("not-safe", "defer func() { problem = recover() }()", ""),
		replaced("two-bodies", "l.all = nil", "", "n < 0", "n < -1"),
	}
	merged, alone, err := Merge(variants)
	if err != nil || len(alone) > 0 {
		t.Fatal(alone, err)
	}
	binary, err := build(t, merged)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"":            nil,
		"no-such":     nil,
		"one-more":    {"TestAdd"},
		"none-kept":   {"TestAdd"},
		"row-goes-on": {"TestFirst"},
		"rows-end":    {"TestFirst"},
		"not-reset":   {"TestReset"},
		"not-safe":    {"TestSafe"},
		"two-bodies":  {"TestFirst", "TestReset"},
	} {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(cmd.Environ(), Environment+"="+name)
		out, err := cmd.CombinedOutput()
		var failed []string
		for _, m := range regexp.MustCompile(`--- FAIL: (\w+)`).FindAllStringSubmatch(string(out), -1) {
			failed = append(failed, m[1])
		}
		if !slices.Equal(failed, want) || (err == nil) != (want == nil) {
			t.Errorf("as %q %v fail, want %v (%v):\n%s", name, failed, want, err, out)
		}
	}
}

// TestMoreThanBodies: what cannot be merged is named with the reason, and the others are
// merged without it.
func TestMoreThanBodies(t *testing.T) {
	replaced := inSample(t)
	variants := []Variant{
		replaced("good", "l.all = nil", ""),
		replaced("constant", "most  = 3", "most  = 4"),
		replaced("signature", "one T, _ ...string", "one T, _ ...any"),
		replaced("import", "package sample\n", "package sample\n\nimport \"os\"\n", "l.all = nil", "os.Exit(0)"),
		replaced("function", "// Safe", "func unsafe() {}\n\n// Safe", "l.all = nil", "unsafe()"),
		replaced("gone", "func Reset(l *list[int]) { l.all = nil }", ""),
	}
	merged, alone, err := Merge(variants)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"constant":  `sample.go: it changes or takes out "most  = 3"`,
		"signature": `sample.go: it changes or takes out "func (l *list[T]) Add(one T, _ ...string) (kept bool)"`,
		"import":    `sample.go: it adds "import \"os\""`,
		"function":  `sample.go: it adds "func unsafe()"`,
		"gone":      `sample.go: it changes or takes out "func Reset(l *list[int])"`,
	}
	for _, v := range variants {
		if alone[v.Name] != want[v.Name] {
			t.Errorf("%s: the reason is %q, want %q", v.Name, alone[v.Name], want[v.Name])
		}
	}
	text := string(merged[sample])
	if strings.Count(text, "case ") != 1 || !strings.Contains(text, `case "good":`) {
		t.Errorf("it has not just the one that can be merged:\n%s", text)
	}
}

// TestCulpritsAreNamed: of several variants those that do not compile are found from the
// compiler's errors, and what is wrong with the original is nobody's fault.
func TestCulpritsAreNamed(t *testing.T) {
	replaced := inSample(t)
	merged, _, err := Merge([]Variant{
		replaced("good", "l.all = nil", ""),
		replaced("bad-type", "l.all = nil", "l.all = 1"),
		replaced("bad-name", "return n\n", "return m\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = build(t, merged)
	if err == nil {
		t.Fatal("it compiles")
	}
	if got := Culprits(err); !slices.Equal(got, []string{"bad-name", "bad-type"}) {
		t.Errorf("the culprits are %q of\n%s", got, err)
	}
	merged, _, err = Merge([]Variant{replaced("good", "l.all = nil", "")})
	if err != nil {
		t.Fatal(err)
	}
	merged[sample] = append(merged[sample], "var x int = false\n"...)
	_, err = build(t, merged)
	if err == nil {
		t.Fatal("it compiles")
	}
	if got := Culprits(err); got != nil {
		t.Errorf("%q are blamed for\n%s", got, err)
	}
}

// TestNotGo: a variant that is not Go is named.
func TestNotGo(t *testing.T) {
	replaced := inSample(t)
	_, _, err := Merge([]Variant{replaced("cut-off", "return true\n}", "return true\n")})
	if err == nil || !strings.Contains(err.Error(), "variant cut-off: ") || !strings.Contains(err.Error(), sample) {
		t.Errorf("the error is %v", err)
	}
}
