package review_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/review"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func policy(t *testing.T, text string) retry.Policy {
	t.Helper()
	var p retry.Policy
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return p
}

func codes(found []plan.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, f.Severity.String()+" "+f.Code)
	}
	return all
}

const (
	ordersARN = "arn:aws:sqs:eu-west-1:123456789012:orders"
	deadARN   = "arn:aws:sqs:eu-west-1:123456789012:dead"
)

// TestFindings: what is not known is said once, and no finding claims what is only unknown.
func TestFindings(t *testing.T) {
	redrive := `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":100}`
	whole := map[string]string{"MessageRetentionPeriod": "345600", "RedrivePolicy": redrive}
	for _, test := range []struct {
		name    string
		subject review.Subject
		want    []string
	}{
		{"deployed", review.Subject{
			Deployed: true, Attributes: map[string]string{"QueueArn": ordersARN, "MessageRetentionPeriod": "345600", "RedrivePolicy": redrive},
			DeadLetter: map[string]string{"MessageRetentionPeriod": "1209600"},
		}, nil},
		{"deployed, without permissions", review.Subject{Deployed: true}, []string{"warning retention-unknown", "warning no-dead-letter-queue"}},
		{"declared, no redrive policy", review.Subject{Attributes: map[string]string{"MessageRetentionPeriod": "345600"}}, []string{"warning no-dead-letter-queue"}},
		{"declared, redrive policy unknown", review.Subject{
			Attributes: map[string]string{"MessageRetentionPeriod": "345600"}, Unknown: []string{"RedrivePolicy"},
		}, []string{"warning attribute-unknown"}},
		{"declared, retention unknown", review.Subject{
			Attributes: map[string]string{"RedrivePolicy": redrive}, Unknown: []string{"MessageRetentionPeriod"},
		}, []string{"warning attribute-unknown", "info dead-letter-queue-unknown"}},
		{"policy alone", review.Subject{Assumed: true}, nil},
		{"function", review.Subject{
			Attributes: map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "RedrivePolicy": redrive}, FunctionTimeout: time.Minute,
			DeadLetter: map[string]string{"MessageRetentionPeriod": "1209600"},
		}, []string{"error visibility-below-function-timeout", "info visibility-below-handler-timeout", "info function-crash-waits-visibility"}},
		{"failed messages are ignored", review.Subject{Attributes: whole, Wholesale: []string{"Ship.Orders"}}, []string{"warning batch-item-failures-ignored", "info dead-letter-queue-unknown"}},
		{"failed events are ignored", review.Subject{Attributes: whole, Wholesale: []string{"Retries"}, OnFailure: true}, []string{"error batch-item-failures-ignored", "info dead-letter-queue-unknown"}},
		{"failed events", review.Subject{Attributes: whole, OnFailure: true}, []string{"info dead-letter-queue-unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := review.New(policy(t, "attempts=5 age=24h"), test.subject, plan.Settings{HandlerTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, codes(r.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadable: an attribute that cannot be understood is an error that names its queue.
func TestUnreadable(t *testing.T) {
	_, err := review.New(retry.Policy{}, review.Subject{Name: "orders", Attributes: map[string]string{"VisibilityTimeout": "soon"}}, plan.Settings{})
	if err == nil || !strings.Contains(err.Error(), "orders") || !strings.Contains(err.Error(), "VisibilityTimeout") {
		t.Errorf("error %v", err)
	}
}

// example is a report with something of everything.
func example(t *testing.T) review.Report {
	t.Helper()
	r := review.Report{
		Policy: policy(t, "exponential(base=2s,max=1h) attempts=8"),
		Notes:  []review.Note{{File: "template.yaml", Line: 12, Text: "Refunds, QueueName: it has no value | <none>"}},
	}
	for _, s := range review.Link([]review.Subject{
		{
			Name: "orders", Source: "template.yaml", Line: 3, Unknown: []string{"DelaySeconds"}, FunctionTimeout: time.Minute,
			Attributes: map[string]string{
				"QueueArn": ordersARN, "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600",
				"RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":3}`,
			},
		},
		{Name: "dead", Source: "template.yaml", Line: 9, Attributes: map[string]string{"QueueArn": deadARN, "MessageRetentionPeriod": "1209600"}},
		{
			Name: "refunds", Source: "https://sqs.eu-west-1.amazonaws.com/123456789012/refunds", Deployed: true,
			Attributes: map[string]string{"QueueArn": "arn:aws:sqs:eu-west-1:123456789012:refunds", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"},
		},
	}) {
		one, err := review.New(r.Policy, s, plan.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		r.Reviews = append(r.Reviews, one)
	}
	return r
}

// TestFormats holds a report in every format to golden files.
func TestFormats(t *testing.T) {
	r := example(t)
	if got := r.Count(plan.Error); got != 1 || len(r.Reviews) != 2 {
		t.Errorf("%d errors in %d queues, want 1 in 2: a queue for dead letters is not one to review", got, len(r.Reviews))
	}
	golden(t, "report.txt", r.Text(80, true))
	golden(t, "report.md", r.Markdown())
	for name, encode := range map[string]func() ([]byte, error){
		"report.json":  r.JSON,
		"report.sarif": func() ([]byte, error) { return r.SARIF("v1.2.3") },
	} {
		text, err := encode()
		if err != nil || !json.Valid(text) {
			t.Errorf("%s: %v", name, err)
		}
		golden(t, name, string(text))
	}
}

// TestTextOfQueueLimit: a policy without a limit of attempts has the queue's, in the policy as in the
// schedule.
func TestTextOfQueueLimit(t *testing.T) {
	subject := review.Subject{Name: "orders", Deployed: true, Attributes: map[string]string{
		"QueueArn": ordersARN, "MessageRetentionPeriod": "345600", "RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":7}`,
	}}
	p := policy(t, "constant(1s) jitter=none")
	one, err := review.New(p, subject, plan.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	text := review.Report{Policy: p, Reviews: []review.Review{one}}.Text(80, true)
	if len(one.Schedule.Attempts) != 7 || !strings.Contains(text, "attempts=7 ") {
		t.Errorf("%d attempts; the report:\n%s", len(one.Schedule.Attempts), text)
	}
}

// TestChart: every attempt is within the columns, in the order of its times, whatever the policy.
func TestChart(t *testing.T) {
	for _, text := range []string{
		"attempts=1", "constant(0s) jitter=none attempts=3", "constant(100ms) attempts=4", "attempts=1000 age=336h", "list(1h,1s) attempts=3", "exponential(base=1s,max=12h) jitter=decorrelated attempts=30",
	} {
		for _, columns := range []int{1, 40, 80, 200} {
			chart := review.Chart(plan.NewSchedule(policy(t, text), plan.Queue{}, plan.Settings{}), columns, false)
			lines := strings.Split(strings.TrimSuffix(chart, "\n"), "\n")
			if len(lines) < 3 || len(lines) > 25 {
				t.Errorf("%s: %d lines:\n%s", text, len(lines), chart)
			}
			for _, line := range lines {
				if len(line) > max(columns, 29) {
					t.Errorf("%s, %d columns: a line of %d: %q", text, columns, len(line), line)
				}
			}
			dots := slices.DeleteFunc(slices.Clone(lines[2:]), func(line string) bool { return strings.Contains(line, "...") })
			for i := 1; i < len(dots); i++ {
				if strings.Index(dots[i], "o") < strings.Index(dots[i-1], "o") {
					t.Errorf("%s: an attempt is expected before the one above it:\n%s", text, chart)
				}
			}
		}
	}
}

// TestAttackMarkdown: the attacker writes a template with names and places that are Markdown, in a change that a check comments on. The
// comment has them as text: no link, image, HTML, mention, reference or table of theirs.
func TestAttackMarkdown(t *testing.T) {
	for _, hostile := range []string{
		"![x](https://evil.example/pixel)", "[click](https://evil.example)", "<img src=x>", "https://evil.example", "www.evil.example", "@acme/security", "#1", "a|b|c",
		"`x` @acme", "line\n## Approved\n", "line\r\n| a | b |", "\\[x](y)", "\\`x` @acme", "<!-- -->", "**bold** _it_ ~~no~~ $x$", "&#64;acme",
	} {
		r := example(t)
		r.Reviews[0].Name = hostile
		r.Reviews[0].Source = hostile
		r.Reviews[0].Findings = []plan.Finding{{Severity: plan.Error, Code: hostile, Problem: "it is " + hostile, Remedy: "mend " + hostile}}
		r.Notes = []review.Note{{File: hostile, Line: 1, Text: hostile}, {File: "x", Text: hostile}}
		text := r.Markdown()
		safe := example(t)
		safe.Reviews[0].Name, safe.Reviews[0].Source, safe.Reviews[0].Findings, safe.Notes = "x", "x", []plan.Finding{{Severity: plan.Error, Code: "x", Problem: "it is x", Remedy: "mend x"}}, []review.Note{{File: "x", Line: 1, Text: "x"}, {File: "x", Text: "x"}}
		if got, want := strings.Count(text, "\n"), strings.Count(safe.Markdown(), "\n"); got != want {
			t.Errorf("%q makes %d lines, want %d", hostile, got, want)
		}
		spans := regexp.MustCompile("(?m)(^|[^\\\\])`[^`\n]*`") // in which Markdown means nothing
		rest := spans.ReplaceAllString(text, "$1CODE")
		for _, bad := range []string{"](", "<img", "https://evil", "www.evil", "@acme", "#1", "## Approved", "a|b", "**bold", " _it", "~~no", "$x$", "&#64"} {
			for at := strings.Index(rest, bad); at >= 0; at = -1 {
				if at > 0 && rest[at-1] == '\\' {
					continue
				}
				t.Errorf("%q: the comment has %q: %q", hostile, bad, rest[max(0, at-40):min(len(rest), at+40)])
			}
		}
	}
}

// TestChainOfDeadLetterQueues: a dead-letter queue whose own redrive policy is known only in part does not keep the queue
// before it from being reviewed.
func TestChainOfDeadLetterQueues(t *testing.T) {
	subjects := review.Link([]review.Subject{
		{Name: "orders", Attributes: map[string]string{"QueueArn": ordersARN, "MessageRetentionPeriod": "345600", "RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":7}`}},
		{Name: "dead", Unknown: []string{"RedrivePolicy"}, Attributes: map[string]string{"QueueArn": deadARN, "MessageRetentionPeriod": "1209600", "RedrivePolicy": `{"maxReceiveCount":3}`}},
		{Name: "other", Unknown: []string{"RedrivePolicy"}, Attributes: map[string]string{"QueueArn": ordersARN + "2", "RedrivePolicy": `{}`}},
	})
	if len(subjects) != 3 {
		t.Fatalf("%+v", subjects)
	}
	subjects[0].DeadLetter["RedrivePolicy"] = "{}"
	for _, s := range subjects {
		one, err := review.New(policy(t, "constant(1s)"), s, plan.Settings{})
		if err != nil || s.Name == "orders" && one.Queue.DeadLetterRetention != 14*24*time.Hour {
			t.Errorf("%s: %+v, %v", s.Name, one.Queue, err)
		}
	}
}

// TestSARIFOfAnyFile: the name of a file is a valid URI reference in SARIF, whatever it contains; uploads are refused else.
func TestSARIFOfAnyFile(t *testing.T) {
	for file, want := range map[string]string{
		"template.yaml": "template.yaml", "standard input": "standard%20input", "a b/100%.yaml": "a%20b/100%25.yaml", "c:d.yaml": "./c:d.yaml", "/tmp/x.yaml": "/tmp/x.yaml",
	} {
		text, err := review.Report{Notes: []review.Note{{File: file, Text: "x"}}}.SARIF("v1.2.3")
		if err != nil || !strings.Contains(string(text), `"uri": "`+want+`"`) {
			t.Errorf("%q: want the URI %q: %v, %s", file, want, err, text)
		}
	}
}
