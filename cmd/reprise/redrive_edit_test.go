package main_test

import (
	"slices"
	"strings"
	"testing"
)

// TestRedriveEdits: letters are changed on their way, the same by a server, by receives and by a job; what cannot be
// changed stays, and a dry run says all that before.
func TestRedriveEdits(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		serve []string
		job   bool
	}{
		"by the server": {},
		"by receives":   {serve: []string{"--no-admin"}},
		"by a job":      {job: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, endpoint := serve(t, append([]string{"--queue", "orders,dead-letter=dead"}, way.serve...)...)
			for _, body := range []string{`{"currency":"EUK"}`, `{"currency":"NOK"}`, "EUK"} {
				sendJSON(t, endpoint, "dead", body, nil)
			}
			const ( // receives come in any order
				exampleOfOne   = "-   \"currency\": \"EUK\"\n+   \"currency\": \"EUR\"\n"
				exampleOfOther = "- EUK\n+ \"R\"\n"
			)
			redrive := func(code int, want string, args ...string) {
				t.Helper()
				args = append([]string{"redrive", "dead", "--to", "orders"}, args...)
				if way.job {
					args = append(args, "--job", "--admin", strings.TrimPrefix(endpoint, "http://"))
				} else {
					args = append(args, "--endpoint", endpoint)
				}
				got := reprise(t, "", args...)
				text := strings.ReplaceAll(got.stdout, endpoint+"/000000000000/", "")
				if text = strings.ReplaceAll(text, exampleOfOther, exampleOfOne); got.code != code || text != want {
					t.Errorf("%q: %+v\nwant\n%s", args, got, want)
				}
			}
			edit := []string{"--find", `^EUK$|(?:"(EU)K")`, "--replace", "$1", "--body", "EUK"}
			const left = "1 left in dead: dead letters that cannot be edited so: the new body is empty: SQS has no empty messages\n"
			redrive(3, "1 dead letter would be changed, such as\nbody\n- {\"currency\":\"EUK\"}\n+ {\"currency\":EU}\n1 would be sent back to orders\n"+left, append(edit, "--dry-run")...)
			if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != "3" || inFlight != "0" {
				t.Fatalf("a dry run leaves %s visible and %s in flight", visible, inFlight)
			}
			edit[3] = `"${1}R"`
			redrive(0, "2 dead letters changed, such as\nbody\n"+exampleOfOne+"2 sent back to orders\n", edit...)
			redrive(0, "1 dead letter changed, such as\nattribute checked\n+ String yes\n1 sent back to orders\n", "--set-attribute", "checked=yes")
			got := received(t, endpoint, "orders", 3)
			slices.Sort(got)
			if want := []string{`"R"`, `{"currency":"EUR"}`, `{"currency":"NOK"}`}; !slices.Equal(got, want) {
				t.Errorf("sent were %q, want %q", got, want)
			}
			if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != "0" || inFlight != "0" {
				t.Errorf("%s visible and %s in flight are left", visible, inFlight)
			}
		})
	}
}

// TestRedriveEditMistakes: what cannot be meant is refused before anything is looked at.
func TestRedriveEditMistakes(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--replace needs --find":                              {"--replace", "x"},
		"--find cannot be used: error parsing regexp":         {"--find", "("},
		"--find is \"x*\", which matches between any two":     {"--find", "x*"},
		"--set-attribute \"x\" is not of the form name=value": {"--set-attribute", "x"},
		"attribute \"a\" is both set and removed":             {"--set-attribute", "a=b", "--remove-attribute", "a"},
		"remove has an empty name":                            {"--remove-attribute", ""},
		"--task has SQS move the letters, which changes none": {"--find", "x", "--task"},
	} {
		got := reprise(t, "", append([]string{"redrive", "dead", "--endpoint", "http://127.0.0.1:1"}, args...)...)
		if got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}
