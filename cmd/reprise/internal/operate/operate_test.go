package operate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

const urlOf = "https://sqs.eu-west-1.amazonaws.com/123456789012/"

func described(name string, more map[string]string) operate.Described {
	attributes := map[string]string{
		"QueueArn": "arn:aws:sqs:eu-west-1:123456789012:" + name, "MessageRetentionPeriod": "345600", "VisibilityTimeout": "30",
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
	}
	for k, v := range more {
		attributes[k] = v
	}
	return operate.Described{URL: urlOf + name, Attributes: attributes}
}

func redrivePolicy(dead string, receives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:%s","maxReceiveCount":%d}`, dead, receives)
}

// TestQueues: counts are those of SQS, and each finding is where it belongs.
func TestQueues(t *testing.T) {
	queues := operate.Queues([]operate.Described{
		described("orders", map[string]string{"RedrivePolicy": redrivePolicy("orders-dead", 100), "ApproximateNumberOfMessages": "4", "ApproximateNumberOfMessagesDelayed": "2"}),
		described("orders-dead", map[string]string{"ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "1", "MessageRetentionPeriod": "1209600"}),
		described("bare", map[string]string{"ApproximateNumberOfMessagesNotVisible": "96000"}),
		described("lost", map[string]string{"RedrivePolicy": redrivePolicy("gone", 100)}),
		{URL: urlOf + "denied", Problem: "AccessDenied: no"},
		described("abroad", map[string]string{"RedrivePolicy": strings.Replace(redrivePolicy("gone", 100), "123456789012", "999999999999", 1)}),
	}, true)
	var got []string
	for _, q := range queues {
		var codes []string
		for _, f := range q.Findings {
			if codes = append(codes, f.Severity+" "+f.Code); f.Problem == "" || f.Remedy == "" {
				t.Errorf("%s: %+v", q.Name, f)
			}
		}
		got = append(got, fmt.Sprint(q.Name, " ", q.Visible, q.InFlight, q.Delayed, " ", q.DeadLetterQueue, q.DeadLettersOf, " ", codes))
	}
	want := []string{
		"abroad 0 0 0 gone[] []",
		"bare 0 96000 0 [] [error in-flight-quota-near warning no-dead-letter-queue]",
		"denied 0 0 0 [] [error attributes-unknown]",
		"lost 0 0 0 gone[] [error dead-letter-queue-missing]",
		"orders 4 0 2 orders-dead[] []",
		"orders-dead 1 1 0 [orders] [warning dead-letters]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	if one := operate.Queues([]operate.Described{described("lost", map[string]string{"RedrivePolicy": redrivePolicy("gone", 100)})}, false); len(one[0].Findings) > 0 {
		t.Errorf("a dead-letter queue that was not asked for is taken for missing: %+v", one[0].Findings)
	}
}

// TestFindingsOfPolicies: a queue is compared with the policy of its consumers. Without one there are
// only findings that hold whatever the policy: nobody retries by a default that nobody has set.
func TestFindingsOfPolicies(t *testing.T) {
	deliveries := &retry.Policy{MaxAttempts: 20}
	for _, test := range []struct {
		name   string
		queue  map[string]string
		policy *retry.Policy
		want   []string
	}{
		{"FIFO", map[string]string{"FifoQueue": "true", "RedrivePolicy": redrivePolicy("dead.fifo", 200)}, nil, nil},
		{"FIFO, by the default", map[string]string{"FifoQueue": "true", "RedrivePolicy": redrivePolicy("dead.fifo", 200)}, new(retry.Policy), []string{"fifo-receives-are-not-attempts", "retention-ends-first"}},
		{"FIFO, enough", map[string]string{"FifoQueue": "true", "RedrivePolicy": redrivePolicy("dead.fifo", 200)}, deliveries, nil},
		{"FIFO, too few", map[string]string{"FifoQueue": "true", "RedrivePolicy": redrivePolicy("dead.fifo", 199)}, deliveries, []string{"fifo-receives-are-not-attempts"}},
		{"one receive", map[string]string{"RedrivePolicy": redrivePolicy("dead", 1)}, nil, []string{"single-receive"}},
		{"no dead-letter queue", nil, nil, []string{"no-dead-letter-queue"}},
		{"other type", map[string]string{"RedrivePolicy": redrivePolicy("dead.fifo", 20)}, nil, []string{"dead-letter-queue-type"}},
	} {
		d := described("q", test.queue)
		d.Policy = test.policy
		var got []string
		for _, f := range operate.Queues([]operate.Described{d}, false)[0].Findings {
			got = append(got, f.Code)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestQueuesNotKnownIsNotMissing: a dead-letter queue whose attributes could not be read exists; nothing
// else is said of it.
func TestQueuesNotKnownIsNotMissing(t *testing.T) {
	queues := operate.Queues([]operate.Described{
		described("orders", map[string]string{"RedrivePolicy": redrivePolicy("orders-dead", 100)}),
		{URL: urlOf + "orders-dead", Problem: "RequestThrottled: slow down"},
	}, true)
	if len(queues[0].Findings) != 0 {
		t.Errorf("findings of the queue: %+v, want none", queues[0].Findings)
	}
	dead := queues[1]
	if len(dead.Findings) != 1 || dead.Findings[0].Code != operate.CodeUnreadable || !slices.Equal(dead.DeadLettersOf, []string{"orders"}) {
		t.Errorf("the dead-letter queue: %+v, want that of orders, with unknown attributes", dead)
	}
}

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
}

// TestRead: why a letter died is read from wherever it is told, and believed only where it can be.
func TestRead(t *testing.T) {
	story := map[string]types.MessageAttributeValue{
		"tenant":               stringAttribute("t"),
		reprise.StoryAttribute: stringAttribute(`{"reason":"attempts","attempts":3,"last":"2026-01-02T03:04:05Z","error":"no","source":"arn:aws:sqs:eu-west-1:1:orders","message":"m","origin":"o"}`),
	}
	moved := map[string]string{"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:refunds", "SentTimestamp": "1767323045000", "ApproximateReceiveCount": "4"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		name string
		m    types.Message
		want *operate.Death
	}{
		{"no dead letter", types.Message{}, nil},
		{"story", types.Message{MessageAttributes: story}, &operate.Death{Reason: "attempts", Error: "no", Attempts: 3, At: at, Source: "arn:aws:sqs:eu-west-1:1:orders", Origin: "o", Message: "m"}},
		{"moved by SQS", types.Message{Attributes: moved}, &operate.Death{Reason: "receives", Source: "arn:aws:sqs:eu-west-1:1:refunds", Trusted: true}},
		{"moved by SQS, with a story", types.Message{Attributes: moved, MessageAttributes: story}, &operate.Death{Reason: "attempts", Error: "no", Attempts: 3, At: at, Source: "arn:aws:sqs:eu-west-1:1:refunds", Origin: "o", Message: "m"}},
		{"of a retry handler", types.Message{MessageAttributes: map[string]types.MessageAttributeValue{
			repriselambda.ReasonAttribute: stringAttribute("age"), repriselambda.ErrorTypeAttribute: stringAttribute("ValueError"), repriselambda.ErrorMessageAttribute: stringAttribute("bad"),
			repriselambda.AttemptsAttribute: {DataType: aws.String("Number"), StringValue: aws.String("7")}, repriselambda.LastAttribute: stringAttribute("2026-01-02T03:04:05Z"),
			repriselambda.FunctionAttribute: stringAttribute("ship"),
		}}, &operate.Death{Reason: "age", Error: "ValueError: bad", Attempts: 7, At: at, Source: "ship"}},
		{"a story that is none", types.Message{MessageAttributes: map[string]types.MessageAttributeValue{reprise.StoryAttribute: stringAttribute("{")}}, nil},
	} {
		got := operate.Read(urlOf+"dead", test.m, nil)
		if diff := cmp.Diff(test.want, got.Death); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if _, shown := got.Attributes[reprise.StoryAttribute]; shown {
			t.Errorf("%s: the story is shown twice", test.name)
		}
	}
}

// TestSelection: every field has to match, and a body that is not JSON matches no condition.
func TestSelection(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	m := operate.Message{
		ID: "id", Body: `{"customer":{"id":42,"vip":true},"lines":[{"sku":"a"}],"note":null,"big":12345678901234567890}`, Group: "g", Sent: now.Add(-time.Hour),
		Attributes: map[string]operate.Attribute{"tenant": {Type: "String", Value: "acme"}},
		Death:      &operate.Death{Reason: "permanent", Error: "card refused", Source: "arn:aws:sqs:eu-west-1:1:orders", Origin: "origin", Message: "before"},
	}
	where := func(texts ...string) (s operate.Selection) {
		for _, text := range texts {
			c, err := operate.ParseCondition(text)
			if err != nil {
				t.Fatal(err)
			}
			s.Where = append(s.Where, c)
		}
		return s
	}
	re := regexp.MustCompile
	for _, test := range []struct {
		name string
		s    operate.Selection
		want bool
	}{
		{"empty", operate.Selection{}, true},
		{"id", operate.Selection{IDs: []string{"x", "id"}}, true},
		{"id of the first message", operate.Selection{IDs: []string{"origin"}}, true},
		{"id before the copy", operate.Selection{IDs: []string{"before"}}, true},
		{"another id", operate.Selection{IDs: []string{"x"}}, false},
		{"reason", operate.Selection{Reasons: []string{"age", "permanent"}}, true},
		{"another reason", operate.Selection{Reasons: []string{"age"}}, false},
		{"source", operate.Selection{Source: "orders"}, true},
		{"another source", operate.Selection{Source: "order"}, false},
		{"group", operate.Selection{Group: "g"}, true},
		{"another group", operate.Selection{Group: "h"}, false},
		{"error", operate.Selection{Error: re("^card")}, true},
		{"another error", operate.Selection{Error: re("^x")}, false},
		{"body", operate.Selection{Body: re("vip")}, true},
		{"another body", operate.Selection{Body: re("^x")}, false},
		{"attribute", operate.Selection{Attributes: map[string]*regexp.Regexp{"tenant": re("acme")}}, true},
		{"another attribute", operate.Selection{Attributes: map[string]*regexp.Regexp{"tenan": re("")}}, false},
		{"older", operate.Selection{OlderThan: time.Hour}, true},
		{"not so old", operate.Selection{OlderThan: time.Hour + 1}, false},
		{"newer", operate.Selection{NewerThan: time.Hour + 1}, true},
		{"not so new", operate.Selection{NewerThan: time.Hour}, false},
		{"number", where("customer.id=42"), true},
		{"large number", where("big=12345678901234567890"), true},
		{"element", where("lines.0.sku=a"), true},
		{"element that is not there", where("lines.1.sku=a"), false},
		{"pattern", where("lines.0.sku~^a$"), true},
		{"truth", where("customer.vip=true"), true},
		{"null", where("note=null"), true},
		{"not equal", where("customer.id!=43"), true},
		{"not equal to what is not there", where("customer.name!=x"), true},
		{"one of two", where("customer.id=42", "lines.0.sku=b"), false},
		{"all of it", operate.Selection{IDs: []string{"id"}, Reasons: []string{"permanent"}, Group: "h"}, false},
	} {
		if got := test.s.Matches(&m, now); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
	equal, notEqual := where("customer.id=42"), where("customer.id!=1")
	for _, body := range []string{"customer.id=42", `{"customer":{"id":42}} and more`, `{"customer":{"id":42}}{}`, `{"customer":{"id":42}}]`, ""} {
		if plain := (operate.Message{Body: body}); equal.Matches(&plain, now) || notEqual.Matches(&plain, now) {
			t.Errorf("%q, which is not JSON, matches a condition", body)
		}
	}
	if spaced := (operate.Message{Body: " {\"customer\":{\"id\":42}}\r\n "}); !equal.Matches(&spaced, now) {
		t.Error("JSON between spaces matches no condition")
	}
	for _, text := range []string{"", "=x", "path", "a~(", "!=x"} {
		if _, err := operate.ParseCondition(text); err == nil {
			t.Errorf("%q is a condition", text)
		}
	}
	if (&operate.Selection{Group: "g"}).Empty() || !(&operate.Selection{}).Empty() {
		t.Error("Empty is wrong")
	}
}

// TestPattern: errors of the same cause are equal, those of different causes are not.
func TestPattern(t *testing.T) {
	for _, test := range []struct{ err, want string }{
		{"", ""},
		{"card refused", "card refused"},
		{"order 4711 of customer 12.5 is unknown", "order <n> of customer <n> is unknown"},
		{"order 3f1c2b6e-0d4a-4f5e-9c1b-2a3b4c5d6e7f is unknown", "order <id> is unknown"},
		{"at 2026-01-02T03:04:05.678Z: deadline exceeded", "at <time>: deadline exceeded"},
		{"dial tcp 10.0.0.12:5432: connect: connection refused", "dial tcp <address>: connect: connection refused"},
		{"dial tcp [::1]:5432: refused", "dial tcp <address>: refused"},
		{"nil pointer at 0xc000123abc", "nil pointer at <id>"},
		{"request a1b2c3d4e5f6a7b8 failed", "request <id> failed"},
		{"the target answered 503 Service Unavailable after 30.2s", "the target answered 503 Service Unavailable after <n>s"},
		{"exit status 2", "exit status 2"},
		{"exit code 75: line 12", "exit code 75: line <n>"},
		{"HTTP 404: order 404", "HTTP 404: order <n>"},
		{"two\n lines\tof text", "two lines of text"},
	} {
		if got := operate.Pattern(test.err); got != test.want {
			t.Errorf("Pattern(%q) = %q, want %q", test.err, got, test.want)
		}
	}
}

// TestGroups: letters that died alike are counted together, the most frequent first, and however
// many errors there are, the groups are bounded and every letter is counted.
func TestGroups(t *testing.T) {
	at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	letter := func(id, reason, err string, minutes int) *operate.Message {
		return &operate.Message{ID: id, Death: &operate.Death{Reason: reason, Error: err, Source: "arn:aws:sqs:eu-west-1:1:orders", At: at.Add(time.Duration(minutes) * time.Minute)}}
	}
	var g operate.Groups
	for _, m := range []*operate.Message{
		letter("a", "attempts", "order 1 is late", 5), letter("b", "permanent", "order 1 is late", 1), letter("c", "attempts", "order 2 is late", 3),
		letter("d", "attempts", "order 3 is late", 9), letter("e", "attempts", "order 4 is late", 7), {ID: "f", Sent: at},
	} {
		g.Add(m)
	}
	want := []operate.Group{
		{Reason: "attempts", Source: "orders", Error: "order 3 is late", Pattern: "order <n> is late", Count: 4, First: at.Add(3 * time.Minute), Last: at.Add(9 * time.Minute), Samples: []string{"a", "c", "d"}},
		{Reason: "permanent", Source: "orders", Error: "order 1 is late", Pattern: "order <n> is late", Count: 1, First: at.Add(time.Minute), Last: at.Add(time.Minute), Samples: []string{"b"}},
		{Reason: "unknown", Count: 1, First: at, Last: at, Samples: []string{"f"}},
	}
	if diff := cmp.Diff(want, g.List()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	total := 0
	for i := range 3000 {
		g.Add(letter("x", strings.Repeat("x", i+1), "", 0))
	}
	for _, group := range g.List() {
		total += group.Count
	}
	if total != 3006 || len(g.List()) > 1001 {
		t.Errorf("%d letters in %d groups, want 3006 in 1001 at most", total, len(g.List()))
	}
}

// TestTable: lines keep within the width, columns are aligned, and text of others cannot steer a
// terminal.
func TestTable(t *testing.T) {
	table := operate.Table{
		Header: []string{"n", "name", "text"}, Right: []bool{true, false, false},
		Rows: [][]string{{"1", "a", "short"}, {"100", "bücher", strings.Repeat("x", 100) + "\x1b[2J"}, {"2", "c", "two\nlines"}},
	}
	const want = "  n  name    text\n  1  a       short\n100  bücher  xxxxxxxxxxxxxx...\n  2  c       two lines\n"
	if got := table.Text(30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(table.Text(1)) {
		if utf8.RuneCountInString(line) > 24 || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h", 90 * time.Minute: "1h 30m", 25 * time.Hour: "1d 1h", 48 * time.Hour: "2d",
	} {
		if got := operate.Ago(d); got != want {
			t.Errorf("Ago(%v) = %q, want %q", d, got, want)
		}
	}
}
