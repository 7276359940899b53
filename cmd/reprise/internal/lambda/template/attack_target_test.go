package template_test

// Holds off a template that somebody else wrote: it may be any text of up to 1 MB. It may
// not exhaust the memory or keep the processor busy before it is refused.

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// loading returns how many bytes Load allocates for source, and its error.
func loading(source string) (allocated uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = template.Load([]byte(source), options("f.yaml"))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestAttackDeepTemplate: a deeply nested template is refused by its line before the YAML
// parser recurses into it, whose memory grows with the square of the depth.
func TestAttackDeepTemplate(t *testing.T) {
	const deep = 20_000
	for name, source := range map[string]string{
		"mappings":             "Resources:\n  " + strings.Repeat("{a: ", deep),
		"closed mappings":      "Resources:\n  " + strings.Repeat("{a: ", deep) + "b" + strings.Repeat("}", deep),
		"lists":                "Resources:\n  " + strings.Repeat("[", deep),
		"closed lists":         "Resources:\n  " + strings.Repeat("[", deep) + strings.Repeat("]", deep),
		"brackets of each":     "Resources:\n  " + strings.Repeat("[{a: ", deep),
		"JSON":                 "{\"Resources\":\n  " + strings.Repeat(`{"a":`, deep),
		"nothing but brackets": "\n" + strings.Repeat("{", 10*deep),
		"dashes":               "Resources:\n  " + strings.Repeat("- ", deep),
		"dashes on two lines":  "Resources:\n  " + strings.Repeat("- ", 90) + "\n" + strings.Repeat(" ", 200) + strings.Repeat("- ", deep),
	} {
		t.Run(name, func(t *testing.T) {
			allocated, err := loading(source)
			if err == nil || !strings.Contains(err.Error(), "nested more than 100 deep") {
				t.Errorf("Load: %.200v, want that it is nested too deeply", err)
			}
			if line := "f.yaml:2:"; name != "dashes on two lines" && err != nil && !strings.HasPrefix(err.Error(), line) {
				t.Errorf("%.200v: does not begin with %s", err, line)
			}
			t.Logf("%d bytes of text, %d allocated", len(source), allocated)
			// The tokens take some hundred bytes for each.
			if most := uint64(1000 * len(source)); allocated > most {
				t.Errorf("%d bytes allocated for %d, want at most %d", allocated, len(source), most)
			}
		})
	}
}

// TestAttackNestedFunctions: a template whose functions evaluate each other again and again, ten times as often at each
// level, is refused when that takes too long, also if the texts that they make stay short.
func TestAttackNestedFunctions(t *testing.T) {
	nested := "''"
	for range 12 {
		nested = "{'Fn::Sub': ['" + strings.Repeat("${a}", 10) + "', {a: " + nested + "}]}"
	}
	for name, value := range map[string]string{
		"texts": nested,
		"lists": "{'Fn::Sub': ['" + strings.Repeat("${a}", 10_000) + "', {a: {'Fn::Join': ['', [" + strings.Repeat("'',", 10_000) + "'']]}}]}",
	} {
		t.Run(name, func(t *testing.T) {
			source := "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: " + value + "}}}"
			const want = ": the functions of the template take too long: nest them less"
			if _, err := template.Load([]byte(source), options("f.yaml")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load: %.200v, want %q", err, want)
			}
			survey, err := template.LoadSurvey([]byte(source), options("f.yaml"))
			if err != nil || len(survey.Notes) == 0 || !strings.Contains(survey.Notes[0].String(), want) || len(survey.Queues) != 1 || len(survey.Queues[0].Unknown) != 1 {
				t.Errorf("LoadSurvey: %+v, %v, want a note: %q", survey, err, want)
			}
		})
	}
}

// TestAttackManyFindings: of a template that has nothing but mistakes the first ones are
// reported, and the number of the others; those cost next to nothing.
func TestAttackManyFindings(t *testing.T) {
	const wrong = 70_000
	keys := make([]string, wrong)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d: 1", i)
	}
	all := "{" + strings.Join(keys, ",") + "}"
	harmless, err := loading("Resources: {Q: {Type: AWS::SQS::Queue, Metadata: " + all + "}}")
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{
		"properties": "Resources: {Q: {Type: AWS::SQS::Queue, Properties: " + all + "}}",
		"attributes": "Resources: {Q: {Type: AWS::SQS::Queue, " + all[1:] + "}",
		"sections":   "{Resources: {Q: {Type: AWS::SQS::Queue}}, " + all[1:],
		"resources":  "Resources: " + strings.ReplaceAll(all, " 1", " {}"),
	} {
		t.Run(name, func(t *testing.T) {
			allocated, err := loading(source)
			if err == nil {
				t.Fatal("Load: no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if want := "f.yaml: 69900 more findings not shown: correct these first"; len(lines) != 101 || lines[100] != want {
				t.Errorf("%d lines, the last of which is %q, want 101, and %q", len(lines), lines[len(lines)-1], want)
			}
			t.Logf("%d bytes allocated, %d without a mistake", allocated, harmless)
			if name != "resources" && allocated > harmless+64<<20 {
				t.Errorf("%d bytes allocated, want at most 64 MiB more than %d", allocated, harmless)
			}
		})
	}
}
