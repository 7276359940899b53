package delivery

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// signingKeyFile returns the name of a file with a key.
func signingKeyFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte("one:"+strings.Repeat("c2Vj", 12)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCheck: every error names the setting, the problem and the remedy.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		queue    string
		settings []string
		setting  string
		want     []string
	}{
		{"q", nil, "url", []string{"--url, --exec, --worker"}},
		{"q", []string{"url", "http://localhost", "exec", "true"}, "exec", []string{"--exec and --url", "keep one"}},
		{"q", []string{"exec", "true", "retry", "soon"}, "retry", []string{`"soon"`}},
		{"q", []string{"exec", "true", "concurrency", "0"}, "concurrency", []string{"is 0", "1 or more"}},
		{"q", []string{"exec", "true", "concurrency", "200000"}, "concurrency", []string{"--concurrency is 200000", "1 to 100000"}},
		{"q", []string{"exec", "true", "prefetch", "20000"}, "prefetch", []string{"--prefetch is 20000", "at most 10000"}},
		{"q", []string{"exec", "true", "rate", "NaN"}, "rate", []string{"--rate is NaN"}},
		{"q", []string{"exec", "true", "lease", "90m"}, "lease", []string{"--lease is 1h30m0s", "2s to 1h"}},
		{"q", []string{"exec", "true", "long-poll", "1ms"}, "long-poll", []string{"whole seconds"}},
		{"q", []string{"exec", "true", "outage-threshold", "5000"}, "outage-threshold", []string{"--outage-threshold is 5000"}},
		{"q", []string{"exec", "true", "outage-key", "header:x"}, "outage-key", []string{`"header:x"`, "attribute:NAME"}},
		{"q", []string{"exec", "true", "outage-probe", "localhost"}, "outage-probe", []string{`"localhost"`, "http://"}},
		{"q", []string{"exec", "true", "dead-letter", "q"}, "dead-letter", []string{"queue itself"}},
		{"q", []string{"exec", "true", "retry-lane", "q"}, "retry-lane", []string{"queue itself"}},
		{"q.fifo", []string{"exec", "true", "retry-lane", "lane"}, "retry-lane", []string{"out of turn"}},
		{"q", []string{"exec", "true", "retry-lane", "lane", "via", "visibility"}, "retry-lane", []string{"copies"}},
		{"q.fifo", []string{"exec", "true", "via", "requeue"}, "via", []string{"FIFO", "out of turn"}},
		{"q", []string{"exec", "true", "retry-lane-weight", "3"}, "retry-lane-weight", []string{"there is none", "--retry-lane"}},
		{"q", []string{"exec", "true", "weight", "3"}, "weight", []string{"pool"}},
		{"q", []string{"exec", "true", "retry-status", "404"}, "retry-status", []string{"is for --url", "messages go to --exec", "-exit"}},
		{"q", []string{"url", "http://localhost", "permanent-exit", "4"}, "permanent-exit", []string{"is for --exec", "-status"}},
		{"q", []string{"worker", "cat", "retry-exit", "4"}, "retry-exit", []string{"is for --exec", "leave it out"}},
		{"q", []string{"exec", "true", "transform", "cat"}, "transform", []string{"is for --to-queue"}},
		{"q", []string{"lambda", "f", "lambda-payload", "body", "to-queue", "other"}, "to-queue", []string{"two targets"}},
		{"q", []string{"exec", "true", "payloads", "bucket"}, "payloads", []string{`"bucket"`, "s3://BUCKET"}},
		{"q", []string{"exec", "true", "payloads", "s3:///orders"}, "payloads", []string{"Bucket is empty"}},
		{"q", []string{"exec", "true", "keep-payloads", "true"}, "keep-payloads", []string{"--payloads"}},
		{"q", []string{"exec", "true", "content-type", "text/plain"}, "content-type", []string{"is for --url", "leave it out"}},
	} {
		err := settingsOf(t, test.settings...).Check(test.queue)
		bad, ok := errors.AsType[*Error](err)
		if !ok || bad.Name != test.setting {
			t.Errorf("%v: %v; want an error about %s", test.settings, err, test.setting)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v: does not say %q", test.settings, err, want)
			}
		}
		if strings.Contains(err.Error(), "Config.") && test.setting != "payloads" {
			t.Errorf("%v: %v: names a field of the library", test.settings, err)
		}
	}
}

// TestPublicPlace: those who look at a process see where messages go, and nothing that may be secret.
func TestPublicPlace(t *testing.T) {
	for name, test := range map[string]struct{ setting, value, want string }{
		"a URL":                     {"url", "https://user:pa55@shop.example:8443/hooks/pa55/a%2Fb?token=pa55#pa55", "https://shop.example:8443/…"},
		"a URL with a query":        {"url", "https://shop.example?token=pa55", "https://shop.example/…"},
		"a plain URL":               {"url", "http://localhost/", "http://localhost"},
		"a program":                 {"exec", "/usr/local/bin/bill", "command /usr/local/bin/bill"},
		"a program with arguments":  {"exec", "curl -H 'Authorization: pa55' http://x", "command curl …"},
		"variables":                 {"worker", "KEY=pa55 B=2 python3 app.py", "command python3 …"},
		"a variable that is quoted": {"exec", "KEY='pa55 pa55' bill", "a command"},
		"variables alone":           {"exec", "KEY=pa55", "a command"},
		"a program that is quoted":  {"exec", `"$PA55" x`, "a command"},
		"a function":                {"lambda", "charge", "function charge"},
	} {
		if got := settingsOf(t, test.setting, test.value).PublicPlace(); got != test.want || strings.Contains(got, "pa55") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestSharedSettings: a setting for all queues is no error in a queue that has no use for it,
// and a queue's own target replaces the common one.
func TestSharedSettings(t *testing.T) {
	s := settingsOf(t, "url", "http://localhost", "retry-status", "404", "weight", "3")
	s.ShareAll()
	s.Override([]string{"exec"})
	if err := s.flags.Set("exec", "true"); err != nil {
		t.Fatal(err)
	}
	if err := s.Check("q"); err != nil {
		t.Error(err)
	}
	if s.PublicPlace() != "command true" {
		t.Errorf("messages go to %s, want the command", s.PublicPlace())
	}
	s.Override([]string{"retry-status"})
	if err := s.Check("q"); err == nil {
		t.Error("the queue's own setting for another target is taken")
	}
}
