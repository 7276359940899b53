//go:build unix

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sdkPage     = "docs/server.md"
	sdkEndpoint = "http://127.0.0.1:9324" // as the page has it
)

// TestSDKsOfThePage runs the page's code for the SDKs of other languages as it
// stands there, but for the server's address: each sends its message.
func TestSDKsOfThePage(t *testing.T) {
	for language, command := range map[string]func(*testing.T, string) *exec.Cmd{
		"python": pythonSDK, "javascript": javascriptSDK, "java": javaSDK,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			_, endpoint := serve(t, "--queue", "orders")
			code := sdkSnippet(t, language)
			if !strings.Contains(code, sdkEndpoint) {
				t.Fatalf("the code does not name %s:\n%s", sdkEndpoint, code)
			}
			cmd := command(t, strings.ReplaceAll(code, sdkEndpoint, endpoint))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", cmd, err, out)
			}
			if diff := cmp.Diff([]string{"hello"}, receive(t, endpoint, "orders")); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

// sdkSnippet is the one block of the page in a language.
func sdkSnippet(t *testing.T, language string) (code string) {
	t.Helper()
	found := 0
	for _, b := range blocks(t, sdkPage) {
		if b.info == language {
			found++
			code = b.text
		}
	}
	if found != 1 {
		t.Fatalf("%s has %d blocks in %s, want one", sdkPage, found, language)
	}
	return code
}

func pythonSDK(t *testing.T, code string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), boto3(t), written(t, "page.py", code))
}

func javascriptSDK(t *testing.T, code string) *exec.Cmd {
	t.Helper()
	node := installed(t, "node")
	modules := sdkFile(t, "node_modules")
	if _, err := os.Stat(modules); err != nil {
		t.Skip("skipped: the AWS SDK for JavaScript is not installed (npm ci in cmd/reprise/testdata/sdks)")
	}
	page := written(t, "page.mjs", code)
	if err := os.Symlink(modules, filepath.Join(filepath.Dir(page), "node_modules")); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), node, page)
}

func javaSDK(t *testing.T, code string) *exec.Cmd {
	t.Helper()
	java, classes := installed(t, "java"), classpath(t, "sdks")
	program := `import java.net.URI;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;

class Page {
	public static void main(String[] arguments) {
` + code + `	}
}
`
	return exec.CommandContext(t.Context(), java, "--class-path", classes, written(t, "Page.java", program))
}

// classpath is where Java finds what the pom.xml in a folder of testdata requires, if Maven has it.
func classpath(t *testing.T, folder string) string {
	t.Helper()
	classes, err := findClasspath(t, folder)
	if err != nil {
		t.Skip("skipped: ", err)
	}
	return classes
}

// findClasspath is classpath, with the reason why there is none.
func findClasspath(t *testing.T, folder string) (string, error) {
	t.Helper()
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("mvn is not installed")
	}
	file := filepath.Join(t.TempDir(), "classpath")
	resolve := exec.CommandContext(t.Context(), mvn, "--offline", "--quiet", "--batch-mode", "--file", filepath.Join("testdata", folder, "pom.xml"),
		"dependency:build-classpath", "-Dmdep.outputFile="+file)
	if out, err := resolve.CombinedOutput(); err != nil {
		return "", fmt.Errorf("not all packages for Java are there (mvn dependency:build-classpath in cmd/reprise/testdata/%s): %s", folder, bytes.TrimSpace(out))
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// sdkFile is a path beside what names the SDKs.
func sdkFile(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", "sdks", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// installed finds a program, or skips the test.
func installed(t *testing.T, program string) string {
	t.Helper()
	file, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: %s is not installed", program)
	}
	return file
}
