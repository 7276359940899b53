package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// crowdDoor is a process that carries out requests through an SDK, or without one, and keeps a log of its own.
type crowdDoor struct {
	name, log string
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	errors    output
	n         int64
}

// crowdLanguage is how the clients of a language are started. Why says that they cannot be.
type crowdLanguage struct {
	name    string
	command func(endpoint, log string) *exec.Cmd
	why     error
}

// crowdLanguages finds out which languages this machine has.
func crowdLanguages(t *testing.T, dir string) []crowdLanguage {
	t.Helper()
	python, javascript, java, perl := crowdLanguage{name: "python"}, crowdLanguage{name: "javascript"}, crowdLanguage{name: "java"}, crowdLanguage{name: "perl"}
	python.command, python.why = crowdPython()
	javascript.command, javascript.why = crowdJavaScript(t, dir)
	java.command, java.why = crowdJava(t, dir)
	perl.command, perl.why = crowdPerl()
	return []crowdLanguage{python, javascript, java, perl}
}

type crowdCommandOf = func(endpoint, log string) *exec.Cmd

func crowdPython() (crowdCommandOf, error) {
	if err := exec.Command("python3", "-c", "import boto3").Run(); err != nil {
		return nil, fmt.Errorf("boto3 is not installed for python3: %w", err)
	}
	return func(endpoint, log string) *exec.Cmd {
		return exec.Command("python3", "testdata/crowd/client.py", endpoint, log)
	}, nil
}

func crowdJavaScript(t *testing.T, dir string) (crowdCommandOf, error) {
	t.Helper()
	modules := sdkFile(t, "node_modules")
	if _, err := os.Stat(modules); err != nil {
		return nil, errors.New("the AWS SDK for JavaScript is not installed (npm ci in cmd/reprise/testdata/sdks)")
	}
	if _, err := exec.LookPath("node"); err != nil {
		return nil, err
	}
	// A module is searched for beside the file that imports it.
	text, err := os.ReadFile("testdata/crowd/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "client.mjs")
	if err := errors.Join(os.WriteFile(script, text, 0o600), os.Symlink(modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	return func(endpoint, log string) *exec.Cmd {
		return exec.Command("node", "--no-warnings", script, endpoint, log)
	}, nil
}

func crowdJava(t *testing.T, dir string) (crowdCommandOf, error) {
	t.Helper()
	classes, err := findClasspath(t, "sdks")
	if err != nil {
		return nil, err
	}
	compile := exec.Command("javac", "-d", dir, "--class-path", classes, "testdata/crowd/Client.java")
	if out, err := compile.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, err
		}
		t.Fatalf("%v: %v\n%s", compile, err, out)
	}
	return func(endpoint, log string) *exec.Cmd {
		// Two clients and few requests: what is compiled again and again costs more than it gains.
		return exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "--class-path", classes+":"+dir, "Client", endpoint, log)
	}, nil
}

func crowdPerl() (crowdCommandOf, error) {
	if err := exec.Command("perl", "-MHTTP::Tiny", "-MJSON::PP", "-MTime::HiRes", "-e", "1").Run(); err != nil {
		return nil, fmt.Errorf("perl with HTTP::Tiny and JSON::PP is not installed: %w", err)
	}
	return func(endpoint, log string) *exec.Cmd {
		return exec.Command("perl", "testdata/crowd/client.pl", endpoint, log)
	}, nil
}

// openCrowdDoor starts a client.
func openCrowdDoor(t *testing.T, l crowdLanguage, name, endpoint, log string) *crowdDoor {
	t.Helper()
	d := &crowdDoor{name: name, log: log, cmd: l.command(endpoint, log)}
	var out io.Reader
	var err, failed error
	d.in, err = d.cmd.StdinPipe()
	out, failed = d.cmd.StdoutPipe()
	d.cmd.Stderr = &d.errors
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() }) // if it still runs
	return d
}

// call has the client carry out a request. An error is the client's own failure.
func (d *crowdDoor) call(action string, input crowdInput) (crowdLine, error) {
	d.n++
	text, err := json.Marshal(crowdLine{N: d.n, Action: action, Input: &input})
	if err != nil {
		return crowdLine{}, err
	}
	if _, err := d.in.Write(append(text, '\n')); err != nil {
		return crowdLine{}, fmt.Errorf("%s has ended: %w\n%s", d.name, err, d.errors.text())
	}
	answer, err := d.out.ReadBytes('\n')
	if err != nil {
		return crowdLine{}, fmt.Errorf("%s has ended: %w\n%s", d.name, err, d.errors.text())
	}
	var l crowdLine
	if err := json.Unmarshal(answer, &l); err != nil || l.N != d.n {
		return crowdLine{}, fmt.Errorf("%s answered %q: %w", d.name, answer, err)
	}
	return l, nil
}

// close ends the client.
func (d *crowdDoor) close() error {
	_ = d.in.Close() // it has been read to the last line
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", d.name, err, d.errors.text())
	}
	return nil
}
