package sqsserver_test

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/sqsserver"
)

var (
	doorSeeds = flag.Int("doors.seeds", race.Fewer(300, 20), "how many sequences TestDoors draws, each from a seed of its own")
	doorsFrom = flag.Uint64("doors.from", 1, "the first of the seeds")
)

// TestDoors draws sequences of operations, and sends each to four servers that are equal, through one of the doors
// each: AWS JSON 1.0, Query, Query with a reply in JSON, and a presigned GET. The replies must have the same members
// or the same error, and the servers the same contents at the end.
func TestDoors(t *testing.T) {
	refused, served := 0, 0
	for i := range *doorSeeds {
		seed := *doorsFrom + uint64(i)
		random := rand.New(rand.NewPCG(seed, 0))
		choices := make([]byte, 50+random.IntN(1500))
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		s, r := runDoors(t, choices)
		served, refused = served+s, refused+r
		if t.Failed() {
			t.Fatalf("again: go test -run '^TestDoors$' ./sqsserver -doors.seeds=1 -doors.from=%d", seed)
		}
	}
	fmt.Printf("TestDoors: %d seeds, %d operations were served and %d refused\n", *doorSeeds, served, refused)
	if few := served < *doorSeeds || refused < *doorSeeds; few && *doorSeeds > 50 {
		t.Error("too few operations were served or refused: the test has lost its point")
	}
}

// FuzzDoors is TestDoors with the choices of a fuzzer.
func FuzzDoors(f *testing.F) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		choices := make([]byte, 200)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 2000 {
			return // it would take long, and shows nothing else
		}
		runDoors(t, choices)
	})
}

// doors are the ways to send an operation to a server, and to read the reply.
var doors = []struct {
	name string
	send func(*door, operation) (*http.Request, error)
	read func(action string, w *httptest.ResponseRecorder) (reply, error)
}{
	{"JSON", (*door).inJSON, readJSON},
	{"Query", (*door).inForm, readXML},
	{"Query with JSON", (*door).inFormForJSON, readQueryJSON},
	{"presigned GET", (*door).inURL, readXML},
}

// door is a server, and what a client knows of it.
type door struct {
	server  *sqsserver.Server
	handles []string // the latest last
	tasks   []string
	failed  error
}

// reply is what a door answers, the same for all doors.
type reply struct {
	status  int
	code    string // of the error, "" for none
	message string
	members any
}

func runDoors(t *testing.T, choices []byte) (served, refused int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := make([]*door, len(doors))
		for i := range all {
			all[i] = openDoor(t)
			defer all[i].server.Close()
		}
		d := &draws{rest: choices}
		var story []string
		for operations := 0; len(d.rest) > 0 && operations < 40; operations++ {
			if d.next(12) == 11 {
				time.Sleep([]time.Duration{time.Second, 31 * time.Second, 61 * time.Second, time.Hour}[d.next(4)])
			}
			op := drawOperation(d)
			story = append(story, fmt.Sprintf("%s %.600s", op.action, all[0].json(op.input)))
			replies := knock(all, op)
			for i, door := range all {
				if door.failed != nil {
					t.Fatalf("%s: %v, after\n%s", doors[i].name, door.failed, strings.Join(story, "\n"))
				}
			}
			if replies[0].code == "" {
				served++
			} else {
				refused++
			}
			alike, reason := dictated(all[1], op, replies)
			for _, i := range alike[1:] {
				if !reflect.DeepEqual(replies[alike[0]], replies[i]) {
					t.Fatalf("%s answers\n%+v\nand %s\n%+v\nafter\n%s", doors[alike[0]].name, replies[alike[0]], doors[i].name, replies[i], strings.Join(story, "\n"))
				}
			}
			if reason != "" {
				return // the servers may differ from now on
			}
			all[0].remember(replies[0])
			for _, door := range all[1:] {
				door.handles, door.tasks = all[0].handles, all[0].tasks
			}
		}
		want := contentsOf(t, all[0].server)
		for i, door := range all {
			if got := contentsOf(t, door.server); got != want {
				t.Fatalf("behind %s is\n%s\nand behind %s\n%s\nafter\n%s", doors[0].name, want, doors[i].name, got, strings.Join(story, "\n"))
			}
		}
	})
	return served, refused
}

// dictated returns the doors whose replies must be alike, and why it is not all of them, "" if it is: their
// protocols want another reply.
func dictated(d *door, op operation, replies []reply) (alike []int, reason string) {
	alike = []int{0, 1, 2, 3}
	const inJSON, inURL = 0, 3
	names := make(map[string]bool)
	form := d.formOf(op)
	for _, parameter := range form.parameters {
		name, _, _ := strings.Cut(parameter, "=")
		if names[name] && replies[inURL].code == "IncompleteSignature" {
			alike, reason = alike[:inURL], "the signature of a URL has an order for parameters of different names only"
		}
		names[name] = true
	}
	if op.typed && replies[inJSON].code == "MalformedInput" {
		alike, reason = alike[1:], "a form has texts only: nothing in it is of a wrong type"
	}
	if form.lost && alike[0] == inJSON {
		alike, reason = alike[1:], "a form cannot have an entry without members"
	}
	return alike, reason
}

// openDoor starts a server with queues and messages, the same each time.
func openDoor(t *testing.T) *door {
	t.Helper()
	server := sqsserver.New(sqsserver.Config{
		Seed: 1, BaseURL: "http://sqs.us-east-1.localhost", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Credentials: []sqsserver.Credentials{{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: theKey.SecretAccessKey}},
	})
	b := &testServer{T: t, server: server}
	b.create("dead", nil)
	b.create("line.fifo", map[string]string{"FifoQueue": "true"})
	b.url = b.create("plain", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":2}`})
	b.send("first")
	b.send("second")
	return &door{server: server}
}

// knock sends an operation through all doors at the same time.
func knock(all []*door, op operation) []reply {
	replies := make([]reply, len(all))
	var ended sync.WaitGroup
	for i, d := range all {
		ended.Go(func() { replies[i], d.failed = d.call(i, op) })
	}
	ended.Wait()
	return replies
}

func (d *door) call(way int, op operation) (reply, error) {
	r, err := doors[way].send(d, op)
	if err != nil {
		return reply{}, err
	}
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	if w.Code >= 500 {
		return reply{}, fmt.Errorf("status %d: %s", w.Code, w.Body)
	}
	read, err := doors[way].read(op.action, w)
	if err != nil {
		return reply{}, fmt.Errorf("%w, in the reply %q", err, w.Body)
	}
	read.status = w.Code
	read.members, read.message = withoutEmpty(read.members), inXML.Replace(read.message)
	if read.code == "MalformedInput" {
		read.message = "" // AWS has no text; ours names the place in the body or the parameter
	}
	return read, nil
}

// remember notes the handles in a reply.
func (d *door) remember(r reply) {
	members, _ := r.members.(map[string]any)
	if task, ok := members["TaskHandle"].(string); ok {
		d.tasks = append(d.tasks, task)
	}
	messages, _ := members["Messages"].([]any)
	for _, message := range messages {
		d.handles = append(d.handles, message.(map[string]any)["ReceiptHandle"].(string))
	}
}

// contentsOf returns all that a server has.
func contentsOf(t *testing.T, s *sqsserver.Server) string {
	t.Helper()
	var all []string
	for _, q := range s.Queues() {
		attributes, err := s.GetQueueAttributes(t.Context(), &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		messages, err := s.Messages(q.ARN, sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%+v %v", q, attributes.Attributes))
		for _, m := range messages {
			all = append(all, fmt.Sprintf("%+v", m))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
