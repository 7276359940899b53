package sqsserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The conformance suite is in testdata/conformance: scripts of requests and
// replies in the JSON of the wire, each with the behaviour of AWS that it is
// about. Every script runs through each door: the typed methods, both protocols
// as bytes and the real AWS SDK, in bubbles where time is virtual; and those that
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
//	-> {output}                   what it answers: "*" is any value, "=x" keeps it as $x
//	!! Code: message              or the error it returns
//	wait 30s                      lets time pass
//
// A request may stand on several lines; those after the first are indented.
func TestConformance(t *testing.T) {
	for _, c := range allCases(t) {
		for _, door := range []string{"typed", "json", "query", "sdk"} {
			if !c.fits(door) {
				continue
			}
			t.Run(c.name+"/"+door, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.run(t, openDoor(door, newServer(t))) })
			})
			if c.waits() || door == "typed" {
				continue
			}
			t.Run(c.name+"/"+door+" over tcp", func(t *testing.T) {
				http := httptest.NewServer(newServer(t))
				t.Cleanup(http.Close)
				c.run(t, openHTTPDoor(door, http.URL, http.Client()))
			})
		}
	}
}

func newServer(t *testing.T) *sqsserver.Server {
	s := sqsserver.New(sqsserver.Config{Seed: 1})
	t.Cleanup(func() { s.Close() })
	return s
}

// A door is a way into a server.
type door interface {
	// call returns the reply's JSON, or the code and the message of the error.
	call(t *testing.T, action string, input []byte) (reply []byte, code, message string)
}

func openDoor(name string, s *sqsserver.Server) door {
	if name == "typed" {
		return typedDoor{s}
	}
	return openHTTPDoor(name, "http://sqs.localhost", inProcess{s})
}

func openHTTPDoor(name, url string, client sqs.HTTPClient) door {
	switch name {
	case "json":
		return jsonDoor{client, url}
	case "query":
		return queryDoor{client, url}
	}
	return sdkDoor{sdkClient(url, client)}
}

type typedDoor struct{ server *sqsserver.Server }

func (d typedDoor) call(t *testing.T, action string, input []byte) ([]byte, string, string) {
	method := reflect.ValueOf(d.server).MethodByName(action)
	in := reflect.New(method.Type().In(1).Elem())
	err := sqsserver.DecodeJSON(input, in.Interface())
	var results []reflect.Value
	if err == nil {
		results = method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
		err, _ = results[len(results)-1].Interface().(error)
	}
	var e *sqsserver.Error
	switch {
	case errors.As(err, &e):
		return nil, e.Code, e.Message
	case err != nil:
		t.Fatalf("%s %s: %v", action, input, err)
	case len(results) == 1:
		return nil, "", ""
	}
	return sqsserver.AppendJSON(nil, results[0].Interface()), "", ""
}

type jsonDoor struct {
	client sqs.HTTPClient
	url    string
}

func (d jsonDoor) call(t *testing.T, action string, input []byte) ([]byte, string, string) {
	status, header, reply := post(t, d.client, d.url, input, http.Header{
		"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS." + action},
	})
	if status == http.StatusOK {
		return reply, "", ""
	}
	var problem struct{ Message string }
	if err := json.Unmarshal(reply, &problem); err != nil {
		t.Fatalf("%s %s: the error is not JSON: %s", action, input, reply)
	}
	code, _, _ := strings.Cut(header.Get("X-Amzn-Query-Error"), ";")
	return nil, code, problem.Message
}

func post(t *testing.T, client sqs.HTTPClient, url string, body []byte, header http.Header) (status int, _ http.Header, reply []byte) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	if reply, err = io.ReadAll(w.Body); err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, w.Header, reply
}

type sdkDoor struct{ client *sqs.Client }

func (d sdkDoor) call(t *testing.T, action string, input []byte) ([]byte, string, string) {
	method := reflect.ValueOf(d.client).MethodByName(action)
	in := reflect.New(method.Type().In(1).Elem())
	if err := json.Unmarshal(input, in.Interface()); err != nil {
		t.Fatalf("%s %s: not an input of the SDK: %v", action, input, err)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
	if err, _ := results[1].Interface().(error); err != nil {
		var e smithy.APIError
		if !errors.As(err, &e) {
			t.Fatalf("%s %s: %v", action, input, err)
		}
		return nil, e.ErrorCode(), e.ErrorMessage()
	}
	reply, err := json.Marshal(results[0].Interface())
	if err != nil {
		t.Fatal(err)
	}
	if action == "ListDeadLetterSourceQueues" { // AWS spells this one member as no other
		reply = bytes.Replace(reply, []byte(`"QueueUrls"`), []byte(`"queueUrls"`), 1)
	}
	return reply, "", ""
}

func sdkClient(url string, client sqs.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: client,
	})
}

// inProcess carries requests to a handler without a network.
type inProcess struct{ handler http.Handler }

func (p inProcess) Do(r *http.Request) (reply *http.Response, err error) {
	defer func() {
		if problem := recover(); problem == http.ErrAbortHandler {
			err = errors.New("the connection was cut")
		} else if problem != nil {
			panic(problem)
		}
	}()
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
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

func (c *conformanceCase) fits(door string) bool { return !c.is("not " + door) }

func (c *conformanceCase) waits() bool {
	for _, s := range c.steps {
		if s.action == "wait" {
			return true
		}
	}
	return false
}

func (c *conformanceCase) run(t *testing.T, d door) {
	values := make(map[string]string)
	queue := ""
	for _, s := range c.steps {
		switch s.action {
		case "wait":
			pause, err := time.ParseDuration(s.rest)
			if err != nil {
				t.Fatalf("%s: %v", s.line, err)
			}
			time.Sleep(pause)
			continue
		case "queue":
			queue = createQueue(t, d, s, values)
			continue
		}
		input := parseJSON(t, s, s.rest, values).(map[string]any)
		switch s.action {
		case "CreateQueue", "GetQueueUrl", "ListQueues", "StartMessageMoveTask", "CancelMessageMoveTask", "ListMessageMoveTasks":
		default:
			if _, given := input["QueueUrl"]; !given {
				input["QueueUrl"] = queue
			}
		}
		text, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		reply, code, message := d.call(t, s.action, text)
		s.check(t, reply, code, message, values)
	}
}

// createQueue carries out the queue directive.
func createQueue(t *testing.T, d door, s step, values map[string]string) (url string) {
	name, attributes, _ := strings.Cut(s.rest, " ")
	if attributes == "" {
		attributes = "{}"
	}
	suffix := ""
	if strings.Contains(attributes, `"FifoQueue"`) {
		suffix = ".fifo"
	}
	input, err := json.Marshal(map[string]any{"QueueName": name + suffix, "Attributes": parseJSON(t, s, attributes, values)})
	if err != nil {
		t.Fatal(err)
	}
	reply, code, message := d.call(t, "CreateQueue", input)
	if code != "" {
		t.Fatalf("%s: queue %s: %s: %s", s.line, s.rest, code, message)
	}
	var created struct{ QueueUrl string }
	if err := json.Unmarshal(reply, &created); err != nil {
		t.Fatal(err)
	}
	values[name] = created.QueueUrl
	values[name+".arn"] = "arn:aws:sqs:us-east-1:000000000000:" + name + suffix
	return created.QueueUrl
}

// parseJSON parses JSON in whose texts $name stands for a kept value, and «x*3»
// for xxx.
func parseJSON(t *testing.T, s step, text string, values map[string]string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %s: %v", s.line, text, err)
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
		for {
			longest := ""
			for name := range maps.Keys(values) {
				if strings.Contains(v, "$"+name) && len(name) > len(longest) {
					longest = name
				}
			}
			if longest == "" {
				break
			}
			v = strings.ReplaceAll(v, "$"+longest, values[longest])
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
func (s step) check(t *testing.T, reply []byte, code, message string, values map[string]string) {
	t.Helper()
	if problem, found := strings.CutPrefix(s.want, "!! "); found {
		problem = substitute(problem, values).(string)
		got := code + ": " + message
		if strings.HasSuffix(problem, ": *") && code != "" {
			got = code + ": *"
		}
		if got != problem {
			t.Fatalf("%s: %s %s\n got %s\nwant %s", s.line, s.action, s.rest, got, problem)
		}
		return
	}
	if code != "" {
		t.Fatalf("%s: %s %s: %s: %s", s.line, s.action, s.rest, code, message)
	}
	text := strings.TrimPrefix(s.want, "-> ")
	if text == "" {
		text = "{}"
	}
	var got any
	if len(reply) == 0 {
		reply = []byte("{}")
	}
	if err := json.Unmarshal(reply, &got); err != nil {
		t.Fatalf("%s: %s answers what is no JSON: %s", s.line, s.action, reply)
	}
	got = trim(got)
	want := trim(parseJSON(t, s, text, values))
	keep(want, got, values)
	if diff := cmp.Diff(want, got, cmp.FilterValues(anything, cmp.Ignore())); diff != "" {
		t.Fatalf("%s: %s %s (-want +got):\n%s", s.line, s.action, s.rest, diff)
	}
}

// trim removes what the SDK's outputs have and the wire does not: members that
// are absent and the metadata. False is as good as absent.
func trim(value any) any {
	object, isObject := value.(map[string]any)
	if list, isList := value.([]any); isList {
		for i := range list {
			list[i] = trim(list[i])
		}
	}
	if !isObject {
		return value
	}
	for name, member := range object {
		member = trim(member)
		if member == nil || member == false || name == "ResultMetadata" {
			delete(object, name)
		} else {
			object[name] = member
		}
	}
	return object
}

// keep stores the values that want names with "=x" and puts them into want.
func keep(want, got any, values map[string]string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, value := range w {
			text, isText := value.(string)
			if key, named := strings.CutPrefix(text, "="); isText && named && g[name] != nil {
				values[key] = fmt.Sprint(g[name])
				w[name] = g[name]
				continue
			}
			keep(value, g[name], values)
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			keep(w[i], g[i], values)
		}
	}
}

func anything(a, b any) bool { return (a == "*") != (b == "*") }
