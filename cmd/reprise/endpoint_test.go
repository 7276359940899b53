//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformanceAgainstTheProgram: the suite's opt-in run against an endpoint, which
// is meant for AWS, works: here the endpoint is this program, durable and with a key,
// as far away as it can be. Cases that wait are left out: others run them in virtual
// time.
func TestConformanceAgainstTheProgram(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: it builds another test; run it without -short")
	}
	_, endpoint := keep(t, t.TempDir(), "--access-key", "AKID", "--secret", "s3cret")
	// Built as this test is, so that little is compiled for it.
	binary := filepath.Join(t.TempDir(), "sqsserver.test")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"test", "-c", "-o", binary}, raceFlags...), "./sqsserver")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the suite: %v\n%s", err, out)
	}
	suite := func(secret string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^TestConformanceAgainstEndpoint$", "-test.v", "-endpoint", endpoint, "-endpoint.wait", "0s")
		cmd.Dir = filepath.Join(root, "sqsserver")
		cmd.Env = append(os.Environ(), "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY="+secret)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := suite("s3cret")
	passed := strings.Count(out, "--- PASS: TestConformanceAgainstEndpoint/")
	if err != nil || passed < 50 {
		t.Errorf("%d cases passed, want 50 and more; %v\n%s", passed, err, out)
	}
	t.Logf("%d cases passed", passed)
	if out, err := suite("guess"); err == nil || !strings.Contains(out, "signature we calculated does not match") {
		t.Errorf("with a wrong secret the suite ended with %v:\n%s", err, out)
	}
}
