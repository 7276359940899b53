//go:build unix

package main_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// published makes a release of the program under test, as curl can download it.
func published(t *testing.T, version string) (url string) {
	t.Helper()
	releases := t.TempDir()
	name := fmt.Sprintf("reprise_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH)
	archive := filepath.Join(releases, version, name+".tar.gz")
	if err := os.Mkdir(filepath.Join(releases, version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(releases, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program(t), filepath.Join(releases, name, "reprise")); err != nil {
		t.Fatal(err)
	}
	pack := exec.Command("sh", "-c", `tar -chf - "$1" | gzip -1 >"$2"`, "pack", name, archive)
	pack.Dir = releases
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(text), name)
	if err := os.WriteFile(filepath.Join(releases, version, "SHA256SUMS"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + releases
}

// action runs the script of the action as a job's step does, and returns its exit code, its
// output, and the files with the variables and outputs that it sets.
func action(t *testing.T, releases, version, queues, flags, address string, more ...string) (code int, output, variables, outputs string) {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "tar"} {
		installed(t, tool)
	}
	dir := t.TempDir()
	cmd := exec.Command("bash", filepath.Join(root, "deploy/action/start.sh"))
	cmd.Env = environment("RUNNER_TEMP="+dir, "GITHUB_ENV="+dir+"/env", "GITHUB_OUTPUT="+dir+"/output", "GITHUB_PATH="+dir+"/path",
		"REPRISE_ACTION_RELEASES="+releases, "REPRISE_ACTION_VERSION="+version, "REPRISE_ACTION_QUEUES="+queues,
		"REPRISE_ACTION_FLAGS="+flags, "REPRISE_ACTION_ADDRESS="+address, "REPRISE_ACTION_REGION=us-east-1")
	cmd.Env = append(cmd.Env, more...)
	out, err := cmd.CombinedOutput()
	t.Cleanup(func() { stopServer(t, filepath.Join(dir, "reprise.pid")) })
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	return exitCode(t, err), string(out), read("env"), read("output")
}

// stopServer kills the server whose process id is in a file: on GitHub the end of the job
// does that.
func stopServer(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Error(err)
		return
	}
	if server, err := os.FindProcess(id); err == nil {
		_ = server.Kill()
	}
}

// freeAddress returns an address with a port that was free a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestAction: the action starts a server with the queues that a workflow asks for, and the
// following steps find it by AWS's variables.
func TestAction(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	code, output, variables, outputs := action(t, published(t, "v0.1.0"), "v0.1.0",
		"\n  orders,dead-letter=orders-dead,max-receives=5\njobs.fifo\n", "--time-scale 60 --log-level warn", address)
	if code != 0 {
		t.Fatalf("the action ends with %d:\n%s", code, output)
	}
	if want := "AWS_ENDPOINT_URL_SQS=http://" + address + "\n"; !strings.Contains(variables, want) || !strings.Contains(variables, "AWS_SECRET_ACCESS_KEY=any\n") {
		t.Errorf("the following steps have %q, want %q and credentials", variables, want)
	}
	if want := "endpoint=http://" + address + "\n"; !strings.Contains(outputs, want) {
		t.Errorf("the outputs are %q, want %q", outputs, want)
	}
	queues, err := client("http://"+address).ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(queues.QueueUrls, " "); strings.Count(got, "http") != 3 || !strings.Contains(got, "/jobs.fifo") || !strings.Contains(got, "/orders-dead") {
		t.Errorf("the server has the queues %s, want orders, orders-dead and jobs.fifo", got)
	}
}

// TestActionRefuses: a job fails at the action, with the reason, rather than later.
func TestActionRefuses(t *testing.T) {
	t.Parallel()
	releases := published(t, "v0.1.0")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	forged := t.TempDir() // the archive with another's checksum
	if err := os.Symlink(filepath.Join(strings.TrimPrefix(releases, "file://"), "v0.1.0"), filepath.Join(forged, "real")); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("reprise_v0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	if err := os.Mkdir(filepath.Join(forged, "v0.1.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "real", name), filepath.Join(forged, "v0.1.0", name)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(forged, "v0.1.0", "SHA256SUMS"), []byte(strings.Repeat("0", 64)+"  "+name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, releases, version, queues, address, want string
	}{
		{"a branch", releases, "main", "", freeAddress(t), `The version is "main"`},
		{"no such release", releases, "v9.9.9", "", freeAddress(t), "is there a release v9.9.9?"},
		{"another archive", "file://" + forged, "v0.1.0", "", freeAddress(t), "does not have the checksum"},
		{"a mistake in a queue", releases, "v0.1.0", "orders,Colour=red", freeAddress(t), "Colour"},
		{"a port in use", releases, "v0.1.0", "", taken.Addr().String(), "The server did not start"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, output, variables, _ := action(t, test.releases, test.version, test.queues, "", test.address)
			if code != 1 || !strings.Contains(output, "::error") || !strings.Contains(output, test.want) {
				t.Errorf("the action ends with %d, want 1 and %q:\n%s", code, test.want, output)
			}
			if variables != "" {
				t.Errorf("the following steps have %q, want nothing", variables)
			}
		})
	}
}

// TestAttackActionInputs: the attacker has a workflow pass an input of theirs, such as a branch's name. It must name no variable or
// output to the following steps, and give the runner no command.
func TestAttackActionInputs(t *testing.T) {
	t.Parallel()
	releases := published(t, "v0.1.0")
	const inject = "\nLD_PRELOAD=/tmp/evil.so\n::set-output name=x::y"
	for _, test := range []struct{ name, version, address, region, want string }{
		{"a region", "v0.1.0", freeAddress(t), "us-east-1" + inject, "The region is"},
		{"a region of a carriage return", "v0.1.0", freeAddress(t), "us-east-1\rX=y", "The region is"},
		{"no region", "v0.1.0", freeAddress(t), "", "The region is"},
		{"an address", "v0.1.0", freeAddress(t) + inject, "us-east-1", "The address is"},
		{"an address before a good one", "v0.1.0", "x" + inject + "\n" + freeAddress(t), "us-east-1", "The address is"},
		{"an address with a path", "v0.1.0", "evil.example/" + freeAddress(t), "us-east-1", "The address is"},
		{"a version", "v0.1.0" + inject, freeAddress(t), "us-east-1", "The version is"},
		{"a version of another folder", "v0/../../x", freeAddress(t), "us-east-1", "The version is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, output, variables, outputs := action(t, releases, test.version, "", "", test.address, "REPRISE_ACTION_REGION="+test.region)
			if code != 1 || !strings.Contains(output, "::error title=Reprise::"+test.want) || strings.Contains(output, "\n::") || strings.Contains(output, "\r") {
				t.Errorf("the action ends with %d:\n%s", code, output)
			}
			if variables+outputs != "" {
				t.Errorf("the following steps have %q and %q", variables, outputs)
			}
		})
	}
}
