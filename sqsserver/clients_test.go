package sqsserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// switchboard is a handler that can be changed while it is being served: so that a
// client that is slow to start serves many cases, each with a server of its own.
type switchboard struct {
	server atomic.Pointer[sqsserver.Server]
}

func (b *switchboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.server.Load().ServeHTTP(w, r)
}

// Python's SDK and the AWS CLI pass the suite, where they can say what the scripts
// ask.
func TestConformanceThroughBoto3(t *testing.T) { testPythonTransport(t, "boto3", "boto3door.py") }

func TestConformanceThroughTheCLI(t *testing.T) {
	if testing.Short() {
		t.Skip("the AWS CLI takes its time for each command, and -short is given")
	}
	testPythonTransport(t, "awscli", "awsclidoor.py",
		"page",                           // the CLI asks for all pages
		"digest",                         // and takes binary values in JSON
		"types and values of attributes", // as they stand
	)
}

func testPythonTransport(t *testing.T, module, script string, except ...string) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on the PATH")
	}
	if text, err := exec.CommandContext(t.Context(), python, "-c", "import "+module).CombinedOutput(); err != nil {
		t.Skipf("python3 has no %s: %s", module, text)
	}
	var board switchboard
	listener := httptest.NewServer(&board)
	t.Cleanup(listener.Close)
	process := exec.Command(python, "testdata/clients/"+script, listener.URL)
	process.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	transport := startPipeTransport(t, process)
	for _, c := range allCases(t) {
		isExcepted := func(word string) bool { return strings.Contains(c.name, word) }
		if c.waits() > 0 || c.is("not sdk") || slices.ContainsFunc(except, isExcepted) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			board.server.Store(newServer(t))
			c.run(t, transport)
		})
	}
}

// pipeTransport is a process that carries requests to a server: a line of JSON for each
// request, and one for each reply.
type pipeTransport struct {
	in  io.Writer
	out *bufio.Reader
}

func startPipeTransport(t *testing.T, process *exec.Cmd) *pipeTransport {
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := process.Wait(); err != nil {
			t.Errorf("%v: %v", process.Args, err)
		}
	})
	return &pipeTransport{in, bufio.NewReader(out)}
}

func (d *pipeTransport) call(_ context.Context, action string, input []byte) ([]byte, string, string, error) {
	request, err := json.Marshal(map[string]any{"action": action, "input": json.RawMessage(input)})
	if err != nil {
		return nil, "", "", err
	}
	if _, err := d.in.Write(append(request, '\n')); err != nil {
		return nil, "", "", err
	}
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return nil, "", "", err
	}
	var answer struct {
		Reply                  json.RawMessage
		Code, Message, Problem string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, "", "", err
	}
	if answer.Problem != "" {
		return nil, "", "", errors.New(answer.Problem)
	}
	return answer.Reply, answer.Code, answer.Message, nil
}
