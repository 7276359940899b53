//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestProgramsOfThePages: a whole program on a page compiles as it stands there, works off
// a queue of the server with AWS's variables, and ends well when it is asked to.
func TestProgramsOfThePages(t *testing.T) {
	t.Parallel()
	programs := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if !isProgram(b) {
				continue
			}
			programs++
			t.Run(b.String(), func(t *testing.T) {
				built := compiled(t, b.text)
				_, endpoint := serve(t, "--queue", "orders")
				if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", `{"id":"o-1"}`); got.code != 0 {
					t.Fatalf("reprise send: %+v", got)
				}
				p := startCommand(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint, "AWS_REGION=us-east-1",
					"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "QUEUE_URL="+*queueURL(endpoint, "orders")), built)
				p.await("shipping o-1")
				p.signal(syscall.SIGTERM)
				if code, output := p.wait(); code != 0 {
					t.Errorf("the program ends with %d after SIGTERM:\n%s", code, output)
				}
			})
		}
	}
	if programs == 0 {
		t.Error("no page has a whole program")
	}
}

// compiled compiles a program as if it were a package of this module, whose requirements
// include all that a user would require.
func compiled(t *testing.T, source string) string {
	t.Helper()
	here, err := filepath.Abs("program-of-a-page")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "main.go"): written(t, "main.go", source),
	}})
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(t.TempDir(), "program")
	args := append([]string{"build", "-overlay", written(t, "overlay.json", string(overlay)), "-o", built}, raceFlags...)
	cmd := exec.Command("go", append(args, "./program-of-a-page")...)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return built
}
