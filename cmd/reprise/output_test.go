//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// TestForms: a command prints a table also through a pipe, and JSON or YAML where they are asked for: by -o, by the
// environment, or by the flag of earlier versions, which says what replaces it.
func TestForms(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead", "--queue", "other")
	run := func(env string, args ...string) (result, []map[string]any) {
		t.Helper()
		cmd := exec.Command(program(t), append(args, "--endpoint", endpoint)...)
		cmd.Env = environment(env)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		got := result{exitCode(t, cmd.Run()), stdout.String(), stderr.String()}
		var values []map[string]any
		if strings.HasPrefix(got.stdout, "{") {
			values = records(t, got.stdout)
		}
		if strings.HasPrefix(got.stdout, "---\n") {
			for document := range strings.SplitSeq(strings.TrimPrefix(got.stdout, "---\n"), "---\n") {
				var value map[string]any
				if err := yaml.Unmarshal([]byte(document), &value); err != nil {
					t.Fatalf("%v: %s", err, document)
				}
				values = append(values, value)
			}
		}
		return got, values
	}
	for _, test := range []struct {
		env   string
		args  []string
		table bool
		said  string
	}{
		{"", nil, true, ""},
		{"", []string{"-o", "table"}, true, ""},
		{"", []string{"-o", "json"}, false, ""},
		{"", []string{"--output=yaml"}, false, ""},
		{"REPRISE_OUTPUT=yaml", nil, false, ""},
		{"REPRISE_OUTPUT=json", []string{"-o", "table"}, true, ""},
		{"", []string{"--json"}, false, "use -o json"},
		{"REPRISE_OUTPUT=json", []string{"--json=false"}, true, "-o table"},
	} {
		got, values := run(test.env, append([]string{"queues", "orders", "other"}, test.args...)...)
		if got.code != 0 || len(values) != 2 == !test.table || strings.HasPrefix(got.stdout, "queue ") != test.table || !strings.Contains(got.stderr, test.said) || test.said == "" && got.stderr != "" {
			t.Errorf("%s %q: exit code %d, %s%s", test.env, test.args, got.code, got.stdout, got.stderr)
		}
	}
	for _, test := range []struct {
		env  string
		args []string
		want string
	}{
		{"", []string{"-o", "xml"}, "use table, json or yaml"},
		{"REPRISE_OUTPUT=xml", nil, "REPRISE_OUTPUT: "},
		{"", []string{"-o", "json", "--json"}, "leave --json out"},
	} {
		if got, _ := run(test.env, append([]string{"queues"}, test.args...)...); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%s %q: exit code %d, %s%s, want %q", test.env, test.args, got.code, got.stdout, got.stderr, test.want)
		}
	}
}

// TestActionsInJSON: commands that act say in JSON what they have done.
func TestActionsInJSON(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead", "--queue", "other")
	orders, other, dead := *queueURL(endpoint, "orders"), *queueURL(endpoint, "other"), *queueURL(endpoint, "orders-dead")
	letters := filepath.Join(t.TempDir(), "letters.jsonl")
	if err := os.WriteFile(letters, []byte(`{"body":"imported"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"dead import orders-dead " + letters + " --dry-run", `{"queue":"` + dead + `","dry_run":true,"sent":1,"refused":0,"requests":0}`},
		{"dead import orders-dead " + letters, `{"queue":"` + dead + `","sent":1,"refused":0,"requests":1}`},
		{"dead delete orders-dead --all --yes", `{"queue":"` + dead + `","deleted":1}`},
		{"send orders a b c", `{"queue":"` + orders + `","sent":3,"refused":0,"requests":1}`},
		{"move orders other --limit 2 --dry-run", `{"queue":"` + orders + `","dry_run":true,"sent":{"` + other + `":2},"left":{}}`},
		{"move orders other --limit 2", `{"queue":"` + orders + `","sent":{"` + other + `":2},"left":{}}`},
		{"move orders orders-dead", `{"queue":"` + orders + `","sent":{"` + dead + `":1},"left":{}}`},
		{"redrive orders-dead --to other --find c --replace d --dry-run", `{"queue":"` + dead + `","dry_run":true,"sent":{"` + other + `":1},"left":{}}`},
		{"redrive orders-dead --to other", `{"queue":"` + dead + `","sent":{"` + other + `":1},"left":{}}`},
		{"dead delete orders-dead --all --yes", `{"queue":"` + dead + `","deleted":0}`},
		{"purge other --dry-run", `{"queue":"` + other + `","dry_run":true,"visible":3,"in_flight":0,"delayed":0}`},
		{"purge other --yes", `{"queue":"` + other + `","visible":3,"in_flight":0,"delayed":0}`},
	} {
		got := reprise(t, "", append(strings.Fields(test.args), "-o", "json", "--endpoint", endpoint)...)
		if got.code != 0 || got.stdout != test.want+"\n" || strings.Contains(test.args, "--find") && !strings.Contains(got.stderr, "1 dead letter would be changed") {
			t.Errorf("%s: exit code %d, %s%s, want %s", test.args, got.code, got.stdout, got.stderr, test.want)
		}
	}
	send := reprise(t, "", "send", "orders-dead", "e", "--endpoint", endpoint)
	job := reprise(t, "", "redrive", "orders-dead", "--to", "other", "--find", "e", "--replace", "f", "--any-queue", "--job", "--admin", endpoint, "-o", "json")
	if did := records(t, job.stdout); send.code != 0 || job.code != 0 || len(did) != 1 || did[0]["state"] != "done" || did[0]["done"] != 1.0 {
		t.Errorf("a job: exit code %d, %s%s", job.code, job.stdout, job.stderr)
	}
}

// TestDirectoriesInJSON: backup and check say in JSON what they have copied and found.
func TestDirectoriesInJSON(t *testing.T) {
	t.Parallel()
	dir, parent := t.TempDir(), t.TempDir()
	dir += "/data"
	endpoint := start(t, "serve", "--addr", "127.0.0.1:0", "--data", dir, "--queue", "orders").await("SQS endpoint")
	if got := reprise(t, "", "send", "orders", "hello", "--endpoint", endpoint); got.code != 0 {
		t.Fatal(got.stderr)
	}
	got := reprise(t, "", "backup", parent+"/copy", "--data", dir, "-o", "json")
	if want := `{"backup":"` + parent + `/copy","of":"` + dir + `"}` + "\n"; got.code != 0 || got.stdout != want {
		t.Errorf("exit code %d, %s%s, want %s", got.code, got.stdout, got.stderr, want)
	}
	got = reprise(t, "", "check", parent+"/copy", "-o", "json")
	var sound struct {
		Directory string
		Format    int
		Queues    []struct {
			ARN             string
			Messages, Bytes int
		}
		Messages  int
		DiskBytes int `json:"disk_bytes"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &sound); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v, %s%s", got.code, err, got.stdout, got.stderr)
	}
	if len(sound.Queues) != 1 || sound.DiskBytes == 0 || sound.Format == 0 {
		t.Fatalf("%+v", sound)
	}
	got.stdout = sound.Queues[0].ARN
	if diff := cmp.Diff([]any{parent + "/copy", 1, 5, 1, true}, []any{sound.Directory, sound.Queues[0].Messages, sound.Queues[0].Bytes, sound.Messages, strings.HasSuffix(got.stdout, ":orders")}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReportsInForms: plan and simulate print their reports in YAML, which says what JSON does, and the environment
// chooses the form where no flag does.
func TestReportsInForms(t *testing.T) {
	t.Parallel()
	const policy = "constant(1s) attempts=2"
	for _, args := range [][]string{{"plan", policy}, {"simulate", "--messages", "3"}, {"simulate", "schedule", policy, "--messages", "9"}, {"simulate", "async-lambda", policy, "--events", "9"}} {
		asJSON := reprise(t, "", append(args, "-o", "json")...)
		asYAML := reprise(t, "", append(args, "-o", "yaml")...)
		if asJSON.code != 0 || asYAML.code != 0 || !sameValue(t, asJSON.stdout, asYAML.stdout) {
			t.Errorf("%q: exit codes %d and %d, %s%s", args, asJSON.code, asYAML.code, asJSON.stdout, asYAML.stdout)
		}
		for env, want := range map[string]string{"REPRISE_OUTPUT=json": asJSON.stdout, "REPRISE_OUTPUT=yaml": asYAML.stdout, "REPRISE_OUTPUT=": reprise(t, "", args...).stdout} {
			cmd := exec.Command(program(t), args...)
			cmd.Env = environment(env)
			if out, err := cmd.Output(); err != nil || string(out) != want {
				t.Errorf("%s %q: %v, %s", env, args, err, out)
			}
		}
		if got := reprise(t, "", append(args, "-o", "nothing")...); got.code != 2 || !strings.Contains(got.stderr, "use table, json, yaml") {
			t.Errorf("%q: exit code %d, %s", args, got.code, got.stderr)
		}
	}
}

// sameValue reports whether a document of JSON and one of YAML say the same.
func sameValue(t *testing.T, asJSON, asYAML string) bool {
	t.Helper()
	var one, other any
	if err := json.Unmarshal([]byte(asJSON), &one); err != nil {
		t.Fatalf("%v: %.1000s", err, asJSON)
	}
	if err := yaml.Unmarshal([]byte(asYAML), &other); err != nil {
		t.Fatalf("%v: %.1000s", err, asYAML)
	}
	text, err := json.Marshal(other)
	if err == nil {
		err = json.Unmarshal(text, &other)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(one, other)
}
