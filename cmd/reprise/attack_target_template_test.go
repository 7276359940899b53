//go:build unix

// The attacker is the code that a template names. It runs as the user, but must not be code
// outside of the template, and gets no more of the shell's environment than on Lambda.

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outsideStack has a function for each of these, wherever its code is.
const outsideStack = `Transform: AWS::Serverless-2016-10-31
Resources:
  F:
    Type: AWS::Serverless::Function
    $METADATA
    Properties: {CodeUri: "$CODE", Handler: app.handler, Runtime: $RUNTIME}
`

const showEnvironment = `import os

def handler(event, context):
    return dict(os.environ)
`

// TestAttackCodeOutside: code that is not in the template's folder is not run, whatever the form
// of its path, unless that is permitted.
func TestAttackCodeOutside(t *testing.T) {
	t.Parallel()
	needPython(t)
	for _, test := range []struct{ name, code, metadata, runtime, property string }{
		{"up", "../outside", "", "python3.12", "CodeUri"},
		{"up and down", "inside/../../outside", "", "python3.12", "CodeUri"},
		{"absolute", "$TEMP/outside", "", "python3.12", "CodeUri"},
		{"a link", "link", "", "python3.12", "CodeUri"},
		{"below a link", "up/outside", "", "python3.12", "CodeUri"},
		{"a Makefile", "inside", `Metadata: {BuildMethod: makefile, WorkingDirectory: ../outside}`, "provided.al2023", "WorkingDirectory"},
		{"a program", "program", "", "provided.al2023", "program"},
		{"the folder's sibling", "../stack-of-another", "", "python3.12", "CodeUri"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			ran := filepath.Join(temp, "ran")
			for name, text := range map[string]string{
				"outside/app.py": showEnvironment, "stack-of-another/app.py": showEnvironment, "stack/inside/app.py": showEnvironment,
				"outside/Makefile": "build-F:\n\ttouch " + ran + "\n", "outside/bootstrap": "#!/bin/sh\ntouch " + ran + "\n",
				"stack/program/README": "",
				"stack/template.yaml": strings.NewReplacer("$CODE", strings.ReplaceAll(test.code, "$TEMP", temp), "$METADATA", test.metadata,
					"$RUNTIME", test.runtime).Replace(outsideStack),
			} {
				write(t, filepath.Dir(filepath.Join(temp, name)), filepath.Base(name), text)
			}
			for name, to := range map[string]string{"stack/link": "../outside", "stack/up": "..", "stack/program/bootstrap": "../../outside/bootstrap"} {
				if err := os.Symlink(to, filepath.Join(temp, name)); err != nil {
					t.Fatal(err)
				}
			}
			p := startIn(t, lambdaEnvironment(t), "lambda", "up", filepath.Join(temp, "stack/template.yaml"), "--addr", "127.0.0.1:0")
			said := p.await("reprise: ") // not from wait, which can return before the last line was read
			if code, _ := p.wait(); code != 1 || !containsAll(said, "function F", test.property, "outside of the template's folder", "--allow-outside") {
				t.Errorf("exit code %d: %s", code, said)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the code was run")
			}
		})
	}
}

// TestAttackHandlerOutside: a handler cannot name code outside of the folder either.
func TestAttackHandlerOutside(t *testing.T) {
	t.Parallel()
	for _, handler := range []string{"../../outside/app.handler", "$TEMP/outside/app.handler", "a/../../../outside/app.handler", `..\..\outside\app.handler`} {
		for _, runtime := range []string{"nodejs22.x", "python3.12"} {
			t.Run(runtime+" "+handler, func(t *testing.T) {
				t.Parallel()
				temp := t.TempDir()
				text := strings.NewReplacer("$CODE", "inside", "$METADATA", "", "$RUNTIME", runtime, "app.handler", strings.ReplaceAll(handler, "$TEMP", temp)).Replace(outsideStack)
				write(t, filepath.Join(temp, "stack"), "template.yaml", text)
				write(t, filepath.Join(temp, "stack/inside"), "app.py", showEnvironment)
				p := startIn(t, lambdaEnvironment(t), "lambda", "up", filepath.Join(temp, "stack/template.yaml"), "--addr", "127.0.0.1:0")
				said := p.await("Handler")
				if code, _ := p.wait(); code == 0 || !containsAll(said, "F, Handler", "leads out of the function's folder") {
					t.Errorf("exit code %d: %s", code, said)
				}
			})
		}
	}
}

// TestAttackFunctionEnvironment: a function sees no variable of the shell that Lambda
// does not have, but for PATH and TMPDIR, and those that are passed by name.
func TestAttackFunctionEnvironment(t *testing.T) {
	t.Parallel()
	needPython(t)
	dir := t.TempDir()
	write(t, dir, "template.yaml", strings.NewReplacer("$CODE", "code", "$METADATA", "", "$RUNTIME", "python3.12").Replace(outsideStack))
	write(t, filepath.Join(dir, "code"), "app.py", showEnvironment)
	secrets := []string{
		"AWS_ACCESS_KEY_ID=AKIAREAL", "AWS_SECRET_ACCESS_KEY=hush", "AWS_SESSION_TOKEN=hush", "AWS_PROFILE=production",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1/hush", "SSH_AUTH_SOCK=/hush", "GITHUB_TOKEN=hush", "REPRISE_SECRET=hush",
		"REPRISE_ACCESS_KEY=local", "XDG_CONFIG_HOME=/hush", "USER=me", "LOGNAME=me", "http_proxy=http://hush", "PYTHONPATH=/hush", "WANTED=yes",
	}
	env := append(lambdaEnvironment(t), secrets...)
	p := startIn(t, env, "lambda", "up", filepath.Join(dir, "template.yaml"), "--addr", "127.0.0.1:0", "--pass-env", "WANTED")
	endpoint := p.await("Lambda API")
	p.await("ready")
	got := reprise(t, "", "lambda", "invoke", "--endpoint", endpoint, "F")
	if got.code != 0 {
		t.Fatalf("invoke: %+v\n%s", got, p.output())
	}
	var seen map[string]string
	if err := json.Unmarshal([]byte(got.stdout), &seen); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.stdout, "hush") || strings.Contains(got.stdout, "AKIAREAL") {
		t.Errorf("the function sees a secret: %s", got.stdout)
	}
	for name, want := range map[string]string{"WANTED": "yes", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"} {
		if seen[name] != want {
			t.Errorf("%s is %q, want %q", name, seen[name], want)
		}
	}
	known := map[string]bool{
		"PATH": true, "TMPDIR": true, "WANTED": true, "LANG": true, "TZ": true, "_HANDLER": true, "LAMBDA_TASK_ROOT": true, "LAMBDA_RUNTIME_DIR": true,
		"_X_AMZN_TRACE_ID": true, "LC_CTYPE": true, // Python sets it itself
	}
	for name, value := range seen {
		if !known[name] && !strings.HasPrefix(name, "AWS_") {
			t.Errorf("the function sees %s=%s", name, value)
		}
	}
	for _, name := range []string{"HOME", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if value, set := seen[name]; set {
			t.Errorf("the function sees %s=%s", name, value)
		}
	}
	p.stop()

	for _, test := range []struct{ flag, want string }{{"NO_SUCH_VARIABLE", "there is no such variable"}, {"A=b", "pass the name alone"}} {
		if got := reprise(t, "", "lambda", "up", "t.yaml", "--pass-env", test.flag); got.code != 2 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("--pass-env %s: %+v", test.flag, got)
		}
	}
}
