//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// printedEndpoint is where the pages' commands find the server.
const printedEndpoint = "http://127.0.0.1:9324"

// TestAWSCLIOfThePages runs every aws sqs command that a page, a help text or the
// server's landing page shows, with version 1 and version 2 of the AWS CLI, as it
// stands but for the port.
func TestAWSCLIOfThePages(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders", "--queue", "DeadLetterQueue")
	scripts := awsScripts(t, endpoint)
	if len(scripts) < 4 {
		t.Fatalf("found %d scripts with aws sqs, too few: %v", len(scripts), scripts)
	}
	for version, how := range map[int]string{
		1: "pip install awscli",
		2: "it is not on PyPI: apt-get install awscli on Debian 12, or AWS's own installer",
	} {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			aws := awsCLI(version)
			if aws == "" {
				t.Skipf("skipped: no version %d of the AWS CLI on the PATH (%s)", version, how)
			}
			for where, script := range scripts {
				cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), "PATH="+aws+":"+os.Getenv("PATH"), "HOME="+cmd.Dir, "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", where, err, script, out)
				}
			}
		})
	}
}

// awsScripts returns what sets the environment of the aws sqs commands of each page
// and text, and the commands.
func awsScripts(t *testing.T, endpoint string) map[string]string {
	t.Helper()
	scripts := make(map[string]string)
	add := func(where string, lines []string) {
		var script strings.Builder
		found := false
		for _, line := range lines {
			isAWS := strings.HasPrefix(line, "aws sqs ")
			if found = found || isAWS; isAWS || strings.HasPrefix(line, "export ") {
				script.WriteString(strings.ReplaceAll(line, printedEndpoint, endpoint) + "\n")
			}
			if isAWS && !strings.Contains(line, " --endpoint-url "+printedEndpoint) && !strings.Contains(line, " --endpoint-url "+endpoint) {
				t.Errorf("%s: %s: without --endpoint-url version 1 of the AWS CLI calls AWS", where, line)
			}
		}
		if found {
			scripts[where] = script.String()
		}
	}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info == "sh" || b.info == "sh parsed" {
				add(b.String(), commands(b.text))
			}
		}
	}
	for _, command := range []string{"serve", "up", "send", "redrive", "lambda up"} {
		add("reprise "+command+" --help", commands(reprise(t, "", append(strings.Fields(command), "--help")...).stdout))
	}
	_, landing := fetch(t, http.DefaultClient, endpoint+"/")
	add("the landing page", commands(landing))
	return scripts
}

// awsCLI returns the folder on the PATH with that version of the AWS CLI, or "".
func awsCLI(version int) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		said, err := exec.Command(filepath.Join(dir, "aws"), "--version").CombinedOutput()
		if err == nil && strings.HasPrefix(string(said), fmt.Sprintf("aws-cli/%d.", version)) {
			return dir
		}
	}
	return ""
}

// TestAWSCLIOfTheSource: the commands that the program itself prints name the endpoint too.
func TestAWSCLIOfTheSource(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Skipf("skipped: git cannot list the sources: %v", err)
	}
	call, found := regexp.MustCompile(`aws sqs [a-z]+-[a-z-]+`), 0
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if call.MatchString(line) {
				if found++; !strings.Contains(line, "--endpoint-url") {
					t.Errorf("%s: %s: without --endpoint-url version 1 of the AWS CLI calls AWS", name, strings.TrimSpace(line))
				}
			}
		}
	}
	if found == 0 {
		t.Error("no aws sqs command found")
	}
}
