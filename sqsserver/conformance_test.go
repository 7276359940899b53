package sqsserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The conformance suite is in testdata/conformance: scripts of requests and
// replies in the JSON of the wire, each with the behaviour of AWS that it is
// about. Every script runs through each transport: the typed methods, both protocols
// as bytes, the older one with replies in XML and in JSON, and the real AWS SDK, in bubbles where time is virtual; and those that
// need no time to pass, over TCP as well. Clients in other languages and other
// servers have tests of their own, with the same scripts.
//
//	# title                       begins a case; marks in brackets may follow:
//	                                [not sdk] asks for what SDKs cannot send
//	                                [not query] asks for what a form cannot say
//	                                [choice] AWS's behaviour is not known, this is ours
//	                                [local] is about this server only
//	queue q {attributes}          creates a queue; $q is its URL, $q.arn its ARN
//	Action {input}                a request; without QueueUrl it goes to the last queue
//	-> {output}                   what it answers: "*" is any value, "=x" keeps it as $x;
//	                              "≠$x" is another one than $x, ">$x" one after it as text
//	!! Code: message              or the error it returns
//	wait 30s                      lets time pass
//
// $account is the account of the client, and «x*3» stands for xxx.
//
// A request may stand on several lines; those after the first are indented.
func TestConformance(t *testing.T) {
	for _, c := range allCases(t) {
		for _, transport := range []string{"typed", "json", "query", "query json", "sdk"} {
			if !c.fits(transport) {
				continue
			}
			t.Run(c.name+"/"+transport, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.run(t, openTransport(transport, newServer(t))) })
			})
			if c.waits() > 0 || transport == "typed" {
				continue
			}
			t.Run(c.name+"/"+transport+" over tcp", func(t *testing.T) {
				http := httptest.NewServer(newServer(t))
				t.Cleanup(http.Close)
				c.run(t, openHTTPTransport(transport, http.URL, http.Client()))
			})
		}
	}
}

func newServer(t *testing.T) *sqsserver.Server {
	s := sqsserver.New(sqsserver.Config{Seed: 1})
	t.Cleanup(func() { s.Close() })
	return s
}

// conformanceCase is one script.
type conformanceCase struct {
	name  string // of the file and the title
	marks []string
	steps []step
}

type step struct {
	line   string // where it stands
	action string // or queue, or wait
	rest   string
	want   string // -> or !!, and what follows
}

// extend adds a further line of the script.
func (s *step) extend(line string) {
	if s.want == "" {
		s.rest += line
	} else {
		s.want += line
	}
}

func allCases(t *testing.T) (cases []conformanceCase) {
	files, err := filepath.Glob("testdata/conformance/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conformance scripts: %v", err)
	}
	for _, file := range files {
		cases = append(cases, readCases(t, file)...)
	}
	return cases
}

func readCases(t *testing.T, file string) []conformanceCase {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []conformanceCase
	for i, line := range strings.Split(string(text), "\n") {
		where := fmt.Sprintf("%s:%d", file, i+1)
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case first == "" || first == "//":
		case strings.HasPrefix(line, "  "):
			steps := cases[len(cases)-1].steps
			steps[len(steps)-1].extend(line)
		case first == "#":
			title, marks, _ := strings.Cut(rest, " [")
			c := conformanceCase{name: strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + title}
			for _, mark := range strings.Split(strings.TrimSuffix(marks, "]"), "] [") {
				if mark != "" && !slices.Contains([]string{"not sdk", "not query", "choice", "local"}, mark) {
					t.Fatalf("%s: unknown mark [%s]", where, mark)
				}
				c.marks = append(c.marks, mark)
			}
			cases = append(cases, c)
		case first == "->" || first == "!!":
			steps := cases[len(cases)-1].steps
			steps[len(steps)-1].want = line
		default:
			c := &cases[len(cases)-1]
			c.steps = append(c.steps, step{line: where, action: first, rest: rest})
		}
	}
	return cases
}

func (c *conformanceCase) is(mark string) bool { return slices.Contains(c.marks, mark) }

func (c *conformanceCase) fits(transport string) bool {
	protocol, _, _ := strings.Cut(transport, " ")
	return !c.is("not " + protocol)
}

// waits returns how much time has to pass.
func (c *conformanceCase) waits() (total time.Duration) {
	for _, s := range c.steps {
		if s.action == "wait" {
			total += s.pause()
		}
		if strings.Contains(s.rest, `"WaitTimeSeconds"`) {
			total += 20 * time.Second
		}
	}
	return total
}

func (s step) pause() time.Duration {
	pause, err := time.ParseDuration(s.rest)
	if err != nil {
		panic(s.line + ": " + err.Error())
	}
	return pause
}

func (c *conformanceCase) run(t *testing.T, d transport) {
	t.Helper()
	if failed, err := c.play(t.Context(), d, "000000000000"); err != nil {
		t.Fatalf("%s: %s %s\n%v", failed.line, failed.action, failed.rest, err)
	}
}

// play carries out a script, up to the first step that fails.
func (c *conformanceCase) play(ctx context.Context, d transport, account string) (failed step, err error) {
	values := map[string]string{"account": account}
	queue := ""
	for _, s := range c.steps {
		switch s.action {
		case "wait":
			time.Sleep(s.pause())
		case "queue":
			queue, err = s.createQueue(ctx, d, values)
		default:
			err = s.request(ctx, d, queue, values)
		}
		if err != nil {
			return s, err
		}
	}
	return step{}, nil
}

// createQueue carries out the queue directive.
func (s step) createQueue(ctx context.Context, d transport, values map[string]string) (url string, err error) {
	name, attributes, given := strings.Cut(s.rest, " ")
	if !given {
		attributes = "{}"
	}
	fullName := name
	if strings.Contains(attributes, `"FifoQueue"`) {
		fullName += ".fifo"
	}
	create := step{
		line: s.line, action: "CreateQueue", rest: fmt.Sprintf(`{"QueueName":%q,"Attributes":%s}`, fullName, attributes),
		want: fmt.Sprintf(`-> {"QueueUrl":"=%s"}`, name),
	}
	if err := create.request(ctx, d, "", values); err != nil {
		return "", err
	}
	attributesOf := step{
		line: s.line, action: "GetQueueAttributes", rest: `{"AttributeNames":["QueueArn"]}`,
		want: fmt.Sprintf(`-> {"Attributes":{"QueueArn":"=%s.arn"}}`, name),
	}
	return values[name], attributesOf.request(ctx, d, values[name], values)
}

// request sends a request, to the queue if it names none, and checks the reply.
func (s step) request(ctx context.Context, d transport, queue string, values map[string]string) error {
	input := s.parse(s.rest, values).(map[string]any)
	switch s.action {
	case "CreateQueue", "GetQueueUrl", "ListQueues", "StartMessageMoveTask", "CancelMessageMoveTask", "ListMessageMoveTasks":
	default:
		if _, given := input["QueueUrl"]; !given {
			input["QueueUrl"] = queue
		}
	}
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	reply, code, message, err := d.call(ctx, s.action, text)
	if err != nil {
		return err
	}
	return s.check(reply, code, message, values)
}

// parse parses JSON of the script.
func (s step) parse(text string, values map[string]string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("%s: %s: %v", s.line, text, err))
	}
	return substitute(value, values)
}

var repetition = regexp.MustCompile(`«(.+?)\*(\d+)»`)

func substitute(value any, values map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[substitute(name, values).(string)] = substitute(v[name], values)
		}
		return object
	case []any:
		for i := range v {
			v[i] = substitute(v[i], values)
		}
	case string:
		// Longer names first: $q.arn is not $q followed by .arn.
		names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
		for _, name := range names {
			v = strings.ReplaceAll(v, "$"+name, values[name])
		}
		return repetition.ReplaceAllStringFunc(v, func(text string) string {
			parts := repetition.FindStringSubmatch(text)
			n, _ := strconv.Atoi(parts[2])
			return strings.Repeat(parts[1], n)
		})
	}
	return value
}

// check compares a reply with what the step wants, and keeps values of it.
func (s step) check(reply []byte, code, message string, values map[string]string) error {
	problem, isProblem := strings.CutPrefix(s.want, "!! ")
	if isProblem {
		wanted := substitute(problem, values).(string)
		got := code + ": " + message
		if strings.HasSuffix(wanted, ": *") && code != "" {
			got = code + ": *"
		}
		switch {
		case code == "":
			return fmt.Errorf("succeeds; want %s", wanted)
		case got != wanted:
			return fmt.Errorf("fails with %s; want %s", got, wanted)
		}
		return nil
	}
	if code != "" {
		return fmt.Errorf("fails with %s: %s; want success", code, message)
	}
	text := strings.TrimPrefix(s.want, "-> ")
	if text == "" {
		text = "{}"
	}
	if len(reply) == 0 {
		reply = []byte("{}")
	}
	var got any
	if err := json.Unmarshal(reply, &got); err != nil {
		return fmt.Errorf("answers what is no JSON: %s", reply)
	}
	got = trim(got)
	want := trim(s.parse(text, values))
	keep(want, got, values)
	if differences := compare("", want, got); len(differences) > 0 {
		return errors.New("answers with another " + strings.Join(differences, "; "))
	}
	return nil
}
