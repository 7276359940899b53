//go:build unix

package build_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// answer is what an instance posts to the Runtime API.
type answer struct {
	Path, ErrorType string
	Body            map[string]any
}

// serve runs built behind a Runtime API that has the given events, and returns the
// answers. It ends the instance with the last one.
func serve(t *testing.T, built build.Built, handler string, events ...string) []answer {
	t.Helper()
	answers := make(chan answer, 10)
	next := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if next == len(events) {
			<-r.Context().Done() // until the instance is killed
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request")
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:f")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, events[next])
		next++
		if err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a := answer{Path: strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime/"), ErrorType: r.Header.Get("Lambda-Runtime-Function-Error-Type")}
		if err := json.Unmarshal(text, &a.Body); err != nil {
			a.Body = map[string]any{"": string(text)}
		}
		w.WriteHeader(http.StatusAccepted)
		answers <- a
	})
	server := httptest.NewServer(mux)

	cmd := exec.CommandContext(t.Context(), built.Command[0], built.Command[1:]...)
	cmd.Dir = built.Dir
	cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"), "_HANDLER="+handler,
		"AWS_LAMBDA_FUNCTION_NAME=f", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", "LAMBDA_TASK_ROOT="+built.Dir)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got []answer
	for range max(1, len(events)) {
		select {
		case a := <-answers:
			got = append(got, a)
		case <-time.After(time.Minute):
			t.Error("the instance does not answer")
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	server.Close()
	if t.Failed() {
		t.Logf("the instance wrote:\n%s", output.String())
	}
	return got
}

// trace is whether the body has a stack that names the function's file.
func trace(a answer, key, file string) bool {
	text, err := json.Marshal(a.Body[key])
	delete(a.Body, key)
	return err == nil && strings.Contains(string(text), file)
}

const pythonSource = `
import logging

def handler(event, context):
    logging.getLogger().warning("working")
    how = event["how"]
    if how == "raise":
        raise KeyError("no such order")
    if how == "set":
        return {1}
    return {"id": context.aws_request_id, "name": context.function_name, "left": context.get_remaining_time_in_millis() > 1000, "text": "é"}
`

const nodeSource = `
exports.handler = async (event, context) => {
  switch (event.how) {
    case "throw": throw new RangeError("no such order");
    case "stray": Promise.reject(new Error("nobody listens")); await new Promise(() => {});
  }
  return { id: context.awsRequestId, name: context.functionName, left: context.getRemainingTimeInMillis() > 1000, text: "é" };
};
exports.calling = (event, context, callback) => { setTimeout(() => callback(null, { called: event.how }), 1); };
exports.object = { handler: (event) => ({ nested: event.how }) };
`

func inline(runtime, source, handler string) *template.Function {
	return &template.Function{ID: "F", Name: "f", Runtime: runtime, Handler: handler, Code: template.Code{Inline: source}}
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("skipped: %s is not installed", program)
	}
}

// fine is what the handlers above return.
var fine = answer{"invocation/request/response", "", map[string]any{"id": "request", "name": "f", "left": true, "text": "é"}}

// TestPython: a handler's events, log, result, exceptions and bad results, under our
// own runtime, and under AWS's where it is installed.
func TestPython(t *testing.T) {
	need(t, "python3")
	built, err := (&build.Builder{Dir: t.TempDir()}).Build(t.Context(), inline("python3.11", pythonSource, "index.handler"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("awslambdaric", func(t *testing.T) {
		if len(built.Command) != 5 { // python -u -m awslambdaric HANDLER
			t.Skip("skipped: awslambdaric is not installed for python3")
		}
		python(t, built)
	})
	own := built
	own.Command = []string{built.Command[0], "-u", absolute(t, "bootstrap.py")}
	t.Run("own", func(t *testing.T) { python(t, own) })
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func python(t *testing.T, built build.Built) {
	got := serve(t, built, "index.handler", `{"how": ""}`, `{"how": "raise"}`, `{"how": "set"}`, `{"how": ""}`)
	if !trace(got[1], "stackTrace", "index.py") {
		t.Error("the exception's stack does not name the function's file")
	}
	delete(got[2].Body, "stackTrace")
	want := []answer{
		fine,
		{"invocation/request/error", "", map[string]any{"errorMessage": "'no such order'", "errorType": "KeyError", "requestId": "request"}},
		{"invocation/request/error", "", map[string]any{
			"errorMessage": "Unable to marshal response: Object of type set is not JSON serializable", "errorType": "Runtime.MarshalError", "requestId": "request",
		}},
		fine,
	}
	for i := range got {
		got[i].ErrorType = "" // awslambdaric has it in the body alone
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestPythonInit: a handler that cannot be loaded is an error of the start.
func TestPythonInit(t *testing.T) {
	need(t, "python3")
	for _, test := range []struct{ source, handler, errorType string }{
		{"import absent_module", "index.handler", "Runtime.ImportModuleError"},
		{"x = 1", "absent.handler", "Runtime.ImportModuleError"},
		{"x = (", "index.handler", "Runtime.UserCodeSyntaxError"},
		{"x = 1", "index.handler", "Runtime.HandlerNotFound"},
		{"x = 1", "handler", "Runtime.MalformedHandlerName"},
		{"x = 1 / 0", "index.handler", "ZeroDivisionError"},
	} {
		built, err := (&build.Builder{Dir: t.TempDir()}).Build(t.Context(), inline("python3.11", test.source, test.handler))
		if err != nil {
			t.Fatal(err)
		}
		built.Command = []string{built.Command[0], "-u", absolute(t, "bootstrap.py")}
		got := serve(t, built, test.handler)
		if got[0].Path != "init/error" || got[0].ErrorType != test.errorType {
			t.Errorf("%q with %q: %v, want an init error %s", test.handler, test.source, got, test.errorType)
		}
	}
}

// TestNode: the same for Node.
func TestNode(t *testing.T) {
	need(t, "node")
	built, err := (&build.Builder{Dir: t.TempDir()}).Build(t.Context(), inline("nodejs22.x", nodeSource, "index.handler"))
	if err != nil {
		t.Fatal(err)
	}
	got := serve(t, built, "index.handler", `{"how": ""}`, `{"how": "throw"}`, `{"how": ""}`, `{"how": "stray"}`)
	for _, i := range []int{1, 3} {
		if !trace(got[i], "trace", "index.js") {
			t.Errorf("the stack of error %d does not name the function's file", i)
		}
	}
	want := []answer{
		fine,
		{"invocation/request/error", "RangeError", map[string]any{"errorMessage": "no such order", "errorType": "RangeError"}},
		fine,
		{"invocation/request/error", "Runtime.UnhandledPromiseRejection", map[string]any{"errorMessage": "nobody listens", "errorType": "Runtime.UnhandledPromiseRejection"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	for handler, want := range map[string]string{"index.calling": "called", "index.object.handler": "nested"} {
		got := serve(t, built, handler, `{"how": "so"}`)
		if got[0].Body[want] != "so" {
			t.Errorf("%s answers %v", handler, got)
		}
	}
}

// TestNodeInit: what cannot be loaded is told as Lambda tells it.
func TestNodeInit(t *testing.T) {
	need(t, "node")
	for _, test := range []struct{ source, handler, errorType string }{
		{"require('absent');", "index.handler", "Runtime.ImportModuleError"},
		{"", "absent.handler", "Runtime.ImportModuleError"},
		{"const x = (;", "index.handler", "Runtime.UserCodeSyntaxError"},
		{"exports.x = 1;", "index.handler", "Runtime.HandlerNotFound"},
		{"exports.x = 1;", "handler", "Runtime.MalformedHandlerName"},
		{"throw new RangeError('no');", "index.handler", "RangeError"},
	} {
		built, err := (&build.Builder{Dir: t.TempDir()}).Build(t.Context(), inline("nodejs22.x", test.source+"\n", test.handler))
		if err != nil {
			t.Fatal(err)
		}
		got := serve(t, built, test.handler)
		if got[0].Path != "init/error" || got[0].ErrorType != test.errorType {
			t.Errorf("%q with %q: %v, want an init error %s", test.handler, test.source, got, test.errorType)
		}
	}
}
