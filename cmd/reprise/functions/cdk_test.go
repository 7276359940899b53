package functions_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestCDK compiles the CDK construct and synthesizes its app: it comes to what the SAM
// template comes to.
func TestCDK(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root, "deploy/cdk")
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipped: node is not installed")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules/typescript")); err != nil {
		t.Skip("skipped: the CDK is not installed: run npm ci in deploy/cdk")
	}
	run := func(environment []string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "node", args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("node %v: %v\n%s", args, err, out)
		}
	}
	run(nil, "node_modules/typescript/bin/tsc")
	code := t.TempDir()
	if err := os.WriteFile(filepath.Join(code, "bootstrap"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, parameters := range settings {
		t.Run(setting, func(t *testing.T) {
			out := t.TempDir()
			context, err := json.Marshal(map[string]any{
				"code": code, "function": parameters["FunctionName"], "role": parameters["FunctionRoleName"],
				"mode": parameters["Mode"], "idempotency": parameters["Idempotency"] == "true",
			})
			if err != nil {
				t.Fatal(err)
			}
			run([]string{"CDK_OUTDIR=" + out, "CDK_CONTEXT_JSON=" + string(context)}, "bin/app.js")
			synthesized := readStack(t, filepath.Join(out, "Retries.template.json"), nil).values()
			if diff := gocmp.Diff(deployed(t, setting), synthesized); diff != "" {
				t.Errorf("the CDK's stack differs from the SAM template's (-SAM +CDK):\n%s", diff)
			}
		})
	}
}
