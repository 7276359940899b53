package repriselambda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinesForOtherLanguages runs the wrappers that examples/asynclambda has for
// functions in Python and JavaScript, and holds them to the cases that Async
// passes.
func TestLinesForOtherLanguages(t *testing.T) {
	for _, language := range []struct {
		interpreter, file string
		script            string // reads the cases, and prints the names of those that fail, with what is seen
		run               string // its file
	}{
		{
			interpreter: "python3", file: "retryable.py", run: "run.py",
			script: `
import json, sys, types
from retryable import retryable

for case in json.load(sys.stdin):
    seen = []
    context = types.SimpleNamespace()
    result = retryable(lambda event, context: seen.append(event) or "result")(case["event"], context)
    got = {"payload": seen, "attempt": context.attempt, "first": context.first_failed, "result": result}
    want = {"payload": [case["payload"]], "attempt": case["attempt"], "first": case.get("first_failed"), "result": "result"}
    print("ok" if got == want else f"{case['name']}: {got}")
`,
		},
		{
			interpreter: "node", file: "retryable.mjs", run: "run.mjs",
			script: `
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { retryable } from "./retryable.mjs";

for (const c of JSON.parse(readFileSync(0, "utf8"))) {
  const seen = [];
  const context = {};
  const result = await retryable(async (event) => { seen.push(event); return "result"; })(c.event, context);
  const got = { payload: seen, attempt: context.attempt, first: context.firstFailed, result };
  const want = { payload: [c.payload], attempt: c.attempt, first: c.first_failed, result: "result" };
  console.log(isDeepStrictEqual(got, want) ? "ok" : c.name + ": " + JSON.stringify(got));
}
`,
		},
	} {
		t.Run(language.interpreter, func(t *testing.T) {
			interpreter, err := exec.LookPath(language.interpreter)
			if err != nil {
				t.Skipf("skipped: %s is not installed", language.interpreter)
			}
			wrapper, err := os.ReadFile(filepath.Join("../examples/asynclambda", language.file))
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			for file, text := range map[string]string{
				language.file: string(wrapper),
				language.run:  language.script,
			} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text, cases := envelopeCases(t)
			cmd := exec.CommandContext(t.Context(), interpreter, language.run)
			cmd.Dir, cmd.Stdin = folder, bytes.NewReader(text)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(strings.Repeat("ok\n", len(cases)), string(out)); diff != "" {
				t.Errorf("the cases that fail (-want +got):\n%s", diff)
			}
		})
	}
}
