package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// keys are those of the files below.
var keys = configfile.Keys{
	Top:     []configfile.Key{{Name: "addr", Type: "string"}, {Name: "memory", Type: "boolean"}, {Name: "max-connections", Type: "integer"}},
	Consume: []configfile.Key{{Name: "url", Type: "string"}, {Name: "retry-status", Type: "string", List: true}, {Name: "pool", Type: "string"}},
}

func TestRead(t *testing.T) {
	got, err := configfile.Read(file(t, `# a server
addr: 127.0.0.1:0
memory: true
max-connections: 100
queues:
  - name: orders
    attributes:
      VisibilityTimeout: 60
      Policy: '{"Statement": []}'
    dead-letter: orders-dead
    max-receives: 5
    tags: {team: shop}
    faults:
      - kind: slow-reply
        delay: 2s
      - {kind: throttle, action: SendMessage, skip: 1, every: 2, probability: 0.5, limit: 3}
  - name: jobs.fifo
    consume:
      url: http://localhost:8080
      retry-status: [404, 5xx]
      pool: all
  - name: mails
    consume:
pools:
  all: {concurrency: 20}
faults:
  "*":
    - kind: server-error
`), keys)
	if err != nil {
		t.Fatal(err)
	}
	want := configfile.Config{
		Settings: []configfile.Setting{{Name: "addr", Values: []string{"127.0.0.1:0"}}, {Name: "memory", Values: []string{"true"}}, {Name: "max-connections", Values: []string{"100"}}},
		Queues: []configfile.Queue{
			{Queue: daemon.Queue{Name: "orders", Attributes: map[string]string{"VisibilityTimeout": "60", "Policy": `{"Statement": []}`},
				DeadLetter: "orders-dead", MaxReceives: 5, Tags: map[string]string{"team": "shop"}}},
			{Queue: daemon.Queue{Name: "jobs.fifo", Attributes: map[string]string{}}, Consumed: true, Consume: []configfile.Setting{
				{Name: "url", Values: []string{"http://localhost:8080"}}, {Name: "retry-status", Values: []string{"404", "5xx"}}, {Name: "pool", Values: []string{"all"}},
			}},
			{Queue: daemon.Queue{Name: "mails", Attributes: map[string]string{}}, Consumed: true},
		},
		Pools: []configfile.Pool{{Name: "all", Concurrency: 20}},
		Faults: map[string][]sqsserver.Fault{
			"orders": {{Kind: sqsserver.FaultSlowReply, Delay: 2 * time.Second},
				{Kind: sqsserver.FaultThrottle, Action: "SendMessage", Skip: 1, Every: 2, Probability: 0.5, Limit: 3}},
			"*": {{Kind: sqsserver.FaultServerError}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(configfile.Setting{}, configfile.Queue{})); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
}

func TestReadNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "---\n"} {
		if got, err := configfile.Read(file(t, text), keys); err != nil || len(got.Settings)+len(got.Queues)+len(got.Faults) > 0 {
			t.Errorf("Read(%q) = %v, %v", text, got, err)
		}
	}
}

// Every mistake gets its line and what to do.
func TestReadRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"no YAML", "addr: [", []string{"reprise.yaml:1:"}},
		{"a list", "- addr", []string{":1:", "mapping"}},
		{"an unknown key", "addr: x\nport: 1\n", []string{":2:1:", `"port"`, "queues, pools, faults"}},
		{"a key twice", "addr: x\naddr: y\n", []string{":2:", "addr"}},
		{"a flag with a list", "addr:\n  - x\n", []string{":2:", "addr", "single value"}},
		{"a flag with a mapping", "addr:\n  x: y\n", []string{":2:", "addr", "single value"}},
		{"a flag with a list of lists", "queues:\n  - name: a\n    consume: {retry-status: [[1]]}\n", []string{":3:30:", "retry-status", "single value"}},
		{"a flag without a value", "memory: true\naddr:\n", []string{":2:", "addr", "no value"}},
		{"a flag that is an alias", "memory: true\naddr: *a\n", []string{":2:", "addr", "aliases"}},
		{"a flag with a tag", "addr: !!str x\n", []string{":1:", "addr", "tags"}},
		{"a flag with a block of text", "addr: |\n  x\n", []string{":1:", "addr", "behind the key"}},
		{"two documents", "addr: x\n---\naddr: y\n", []string{":3:", "one"}},
		{"a document behind an empty one", "---\n---\naddr: y\n", []string{":2:", "one"}},
		{"queues that are no list", "queues:\n  orders: {}\n", []string{":2:", "list"}},
		{"a queue that is a name", "queues:\n  - orders\n", []string{":2:", "name: orders"}},
		{"a queue without a name", "queues:\n  - dead-letter: d\n", []string{":2:", "no name"}},
		{"an unknown key of a queue", "queues:\n  - name: a\n    color: red\n", []string{":3:", "color", "dead-letter"}},
		{"max-receives alone", "queues:\n  - name: a\n    max-receives: 5\n", []string{":2:", "dead-letter: a-dead"}},
		{"max-receives out of range", "queues:\n  - name: a\n    dead-letter: d\n    max-receives: 1001\n", []string{":2:", "1001", "1 to 1000"}},
		{"max-receives that is text", "queues:\n  - name: a\n    max-receives: few\n", []string{":3:", `"few" has to be a whole number`}},
		{"max-receives beyond all numbers", "queues:\n  - name: a\n    max-receives: 99999999999999999999\n", []string{":3:", "99999999999999999999 is too large"}},
		{"tags that are a list", "queues:\n  - name: a\n    tags: [b]\n", []string{":3:", "mapping"}},
		{"a tag that is a list", "queues:\n  - name: a\n    tags: {b: [c]}\n", []string{":3:", "has to be text"}},
		{"a part of a fault that is text", "faults:\n  q:\n    - {kind: throttle, probability: some}\n", []string{":3:", `"some" has to be a number`}},
		{"a number of a fault that is text", "faults:\n  q:\n    - {kind: throttle, every: often}\n", []string{":3:", `"often" has to be a whole number`}},
		{"an attribute that is a mapping", "queues:\n  - name: a\n    attributes: {Policy: {a: b}}\n", []string{"Policy", "quotes"}},
		{"faults that are no list", "faults:\n  q:\n    kind: throttle\n", []string{":3:", "list"}},
		{"a fault that is no mapping", "faults:\n  q:\n    - throttle\n", []string{":3:"}},
		{"an unknown kind", "faults:\n  q:\n    - kind: throttle\n    - kind: fire\n", []string{":4:", `"fire"`, "use one of"}},
		{"an unknown key of a fault", "faults:\n  q:\n    - kind: throttle\n      often: yes\n", []string{":4:", "often", "probability"}},
		{"a delay that is none", "faults:\n  q:\n    - {kind: slow-reply, delay: soon}\n", []string{":3:", `"soon"`, "2s"}},
		{"a queue twice", "queues:\n  - name: a\n  - name: a\n", []string{":3:", `"a"`, "twice"}},
		{"a consume that is a list", "queues:\n  - name: a\n    consume: [b]\n", []string{":3:14:", "mapping"}},
		{"an unknown key of a consume", "queues:\n  - name: a\n    consume:\n      adress: b\n", []string{":4:7:", `"adress"`, "flags of reprise run"}},
		{"a pool that is a number", "pools:\n  a: 5\n", []string{":2:"}},
		{"a pool without places", "pools:\n  a: {}\n", []string{":2:", `"a"`, "from 1 to 100000"}},
		{"an unknown key of a pool", "pools:\n  a: {places: 5}\n", []string{":2:7:", "places", "concurrency"}},
		{"faults of a queue twice", "queues:\n  - name: a\n    faults: [{kind: throttle}]\nfaults:\n  a: [{kind: throttle}]\n", []string{":5:", `"a"`, "keep one"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := configfile.Read(file(t, test.text), keys)
			if err == nil {
				t.Fatalf("read %+v", got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
		})
	}
	if _, err := configfile.Read("/nonexistent/file", keys); err == nil || !strings.Contains(err.Error(), "/nonexistent/file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Editors on Windows begin a file with a mark.
func TestByteOrderMark(t *testing.T) {
	got, err := configfile.Read(file(t, "\ufeffmemory: true\r\n"), keys)
	if err != nil || len(got.Settings) != 1 || got.Settings[0].Values[0] != "true" {
		t.Errorf("read %+v, %v", got, err)
	}
}

// JSON is YAML too.
func TestReadFaults(t *testing.T) {
	got, err := configfile.ReadFaults(file(t, `{"orders": [{"kind": "lose-reply", "every": 10}], "*": []}`))
	want := map[string][]sqsserver.Fault{"orders": {{Kind: sqsserver.FaultLoseReply, Every: 10}}, "*": nil}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ReadFaults: %v (-want +got):\n%s", err, diff)
	}
	if _, err := configfile.ReadFaults(file(t, "faults:\n  orders:\n    - kind: lose-reply\n")); err == nil || !strings.Contains(err.Error(), `remove the key "faults"`) {
		t.Errorf("faults under a key faults: error %v does not say to remove the key", err)
	}
	if _, err := configfile.ReadFaults(file(t, "faults:\n  - kind: lose-reply\n")); err != nil {
		t.Errorf("a queue named faults: %v", err)
	}
	if _, err := configfile.ReadFaults(file(t, "orders:\n  - kind: fire\n")); err == nil || !strings.Contains(err.Error(), ":2:") {
		t.Errorf("a wrong kind: %v", err)
	}
}

// TestFormatLosesNothing: a configuration that is written is read as it was: who keeps what config show prints loses no
// tag, no attribute, and no place of a pool.
func TestFormatLosesNothing(t *testing.T) {
	queues := []daemon.Queue{
		{Name: "orders", DeadLetter: "lost", MaxReceives: 7, Tags: map[string]string{"team": "shop", "cost": "010"}, Attributes: map[string]string{"VisibilityTimeout": "60", "Policy": `{"Statement": []}`}},
		{Name: "archive", Attributes: map[string]string{}}, {Name: "mails", Attributes: map[string]string{"DelaySeconds": "3"}}, {Name: "all", Attributes: map[string]string{}},
	}
	pools := []configfile.Pool{{Name: "few", Concurrency: 2}, {Name: "many places", Concurrency: 100_000}}
	text, err := configfile.Format([]configfile.Entry{{Name: "addr", Value: "127.0.0.1:0"}, {Name: "memory", Value: false}, {Name: "max-connections", Value: 100}}, pools, []configfile.QueueEntries{
		{Queue: queues[0], Consume: []configfile.Entry{{Name: "url", Value: "http://to"}, {Name: "retry-status", Value: []string{"404", "5xx"}}}},
		{Queue: queues[1]}, {Queue: queues[2], Consume: []configfile.Entry{{Name: "pool", Value: "few"}}}, {Queue: queues[3], Consume: []configfile.Entry{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := configfile.Read(file(t, string(text)), keys)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	want := configfile.Config{
		Settings: []configfile.Setting{{Name: "addr", Values: []string{"127.0.0.1:0"}}, {Name: "memory", Values: []string{"false"}}, {Name: "max-connections", Values: []string{"100"}}},
		Pools:    pools,
		Queues: []configfile.Queue{
			{Queue: queues[0], Consumed: true, Consume: []configfile.Setting{{Name: "url", Values: []string{"http://to"}}, {Name: "retry-status", Values: []string{"404", "5xx"}}}},
			{Queue: queues[1]}, {Queue: queues[2], Consumed: true, Consume: []configfile.Setting{{Name: "pool", Values: []string{"few"}}}}, {Queue: queues[3], Consumed: true},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(configfile.Setting{}, configfile.Queue{})); diff != "" {
		t.Errorf("read again (-want +got):\n%s\n%s", diff, text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("addr: x\nqueues:\n  - name: a\n    attributes: {A: 1}\n    faults:\n      - kind: throttle\n")
	f.Add("faults: {q: [{kind: slow-reply, delay: 2s}]}")
	f.Add("a: &x [1]\nb: *x\n<<: {addr: 1}\n")
	f.Add("? [a]\n: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := configfile.Read(name, keys); err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v: does not name the file", err)
		}
	})
}
