package emulator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// TestOutcomes: what each end of an invoke looks like to the caller.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   string
		change  func(*emulator.Function)
		failed  bool
		payload string // a pattern; ID stands for the request's
		log     string // a line of Lambda's; "": none is looked for
	}{
		{name: "success", event: `{"do":"echo","text":"שלום <🚀>"}`, payload: `\{"do":"echo","text":"שלום <🚀>"\}`, log: `REPORT RequestId: ID\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 128 MB\tInit Duration: [\d.]+ ms`},
		{name: "empty payload", event: ``, payload: `\{\}`},
		{name: "error", event: `{"do":"fail","text":"no stock"}`, failed: true, payload: `\{"errorMessage":"no stock","errorType":"refusal"\}`},
		{name: "panic", event: `{"do":"panic","text":"nil map"}`, failed: true, payload: `\{"errorMessage":"nil map","errorType":"string","stackTrace":\[.*\]\}`},
		{name: "streamed", event: `{"do":"stream","text":"in one piece"}`, payload: `in one piece`},
		{name: "stream broken", event: `{"do":"break","text":"half"}`, failed: true, payload: `\{"errorMessage":"the disk is gone","errorType":"refusal"\}`},
		{
			name: "exit", event: `{"do":"exit"}`, failed: true,
			payload: `\{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited with error: exit status 1"\}`,
			log:     `RequestId: ID Error: Runtime exited with error: exit status 1`,
		},
		{
			name: "exit 0", event: `{"do":"exit0"}`, failed: true,
			payload: `\{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited without providing a reason"\}`,
		},
		{
			name: "timeout", event: `{"do":"sleep","sleep":3600000000000}`, failed: true,
			change:  func(f *emulator.Function) { f.Timeout = 50 * time.Millisecond },
			payload: `\{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: ID Error: Task timed out after 0.05 seconds"\}`,
			log:     `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ID Task timed out after 0.05 seconds`,
		},
		{
			name: "response too large", event: fmt.Sprintf(`{"do":"large","size":%d}`, 6<<20+99), failed: true,
			payload: `\{"errorType":"Function.ResponseSizeTooLarge","errorMessage":"Response payload size exceeded maximum allowed payload size \(6291556 bytes\)."\}`,
		},
		{
			name: "init error", failed: true, change: func(f *emulator.Function) { f.Handler = "refuse-init" },
			payload: `\{"errorType":"Runtime.ImportModuleError","errorMessage":"Unable to import module 'app'","stackTrace":\[\]\}`,
			log:     `INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init\tStatus: error\tError Type: Runtime.ImportModuleError`,
		},
		{
			name: "init error, and no end", failed: true,
			change: func(f *emulator.Function) {
				f.Handler, f.Timeout = "refuse-init-and-stay", 50*time.Millisecond
			},
			payload: `\{"errorType":"Runtime.ImportModuleError","errorMessage":"Unable to import module 'app'","stackTrace":\[\]\}`,
		},
		{
			name: "exit in init", failed: true, change: func(f *emulator.Function) { f.Handler = "exit-init" },
			payload: `\{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited with error: exit status 4"\}`,
		},
		{
			name: "no program", failed: true, change: func(f *emulator.Function) { f.Command = []string{"./absent"} },
			payload: `\{"errorType":"Runtime.InvalidEntrypoint","errorMessage":"RequestId: ID Error: fork/exec ./absent: no such file or directory"\}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := self(t, "f")
			if test.change != nil {
				test.change(&f)
			}
			l, j := open(t, emulator.Config{Functions: []emulator.Function{f}})
			result, err := l.Invoke(t.Context(), "f", []byte(test.event))
			if err != nil {
				t.Fatalf("Invoke = %v", err)
			}
			if failed := result.FunctionError == "Unhandled"; failed != test.failed || !failed && result.FunctionError != "" {
				t.Errorf("FunctionError = %q, want a failure: %v", result.FunctionError, test.failed)
			}
			if !full(test.payload, result.RequestID).Match(result.Payload) {
				t.Errorf("payload %s\ndoes not match %s", result.Payload, test.payload)
			}
			if test.log == "" {
				return
			}
			pattern := full(test.log, result.RequestID)
			for _, line := range j.texts(emulator.SourcePlatform) {
				if pattern.MatchString(line) {
					return
				}
			}
			t.Errorf("no line matches %s", pattern)
		})
	}
}

func full(pattern, id string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "ID", id) + "$")
}

// TestRefusals: what never reaches a function.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	none := self(t, "none")
	none.Concurrency = -1
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{f, none}})
	for _, test := range []struct {
		name, payload string
		want          emulator.Error
	}{
		{"absent", `{}`, emulator.Error{Status: 404, Code: "ResourceNotFoundException", Message: "Function not found: arn:aws:lambda:us-east-1:000000000000:function:absent"}},
		{"f:7", `{}`, emulator.Error{Status: 404, Code: "ResourceNotFoundException", Message: "Function not found: arn:aws:lambda:us-east-1:000000000000:function:f:7"}},
		{"f", `{"half`, emulator.Error{Status: 400, Code: "InvalidRequestContentException", Message: "Could not parse request body into json: the payload must be one JSON value"}},
		{"f", `"` + strings.Repeat("x", 6<<20) + `"`, emulator.Error{Status: 413, Code: "RequestTooLargeException", Message: "6291458 byte payload is too large for the RequestResponse invocation type (limit 6291456 bytes)"}},
		{"none", `{}`, emulator.Error{Status: 429, Code: "TooManyRequestsException", Message: "Rate Exceeded.", Reason: "ReservedFunctionConcurrentInvocationLimitExceeded"}},
	} {
		_, err := l.Invoke(t.Context(), test.name, []byte(test.payload))
		refused, ok := errors.AsType[*emulator.Error](err)
		if !ok {
			t.Errorf("Invoke(%s) = %v, want %v", test.name, err, &test.want)
			continue
		}
		if diff := cmp.Diff(test.want, *refused); diff != "" {
			t.Errorf("Invoke(%s) (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestWhatTheFunctionSees: the headers as the SDK reads them, and the environment.
func TestWhatTheFunctionSees(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SHELL", "kept")
	f := self(t, "f")
	f.Environment = map[string]string{"TABLE": "orders", "BOTH": "function", "AWS_LAMBDA_FUNCTION_NAME": "forged"}
	f.MemorySize, f.Handler = 256, "app.main"
	l, _ := open(t, emulator.Config{
		Functions:   []emulator.Function{f},
		Region:      "eu-west-1",
		Environment: map[string]string{"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9324", "BOTH": "config"},
	})

	result, err := l.Invoke(t.Context(), "function:f:$LATEST", encode(t, order{Do: "context"}))
	if err != nil {
		t.Fatal(err)
	}
	var seen map[string]any
	if err := json.Unmarshal(result.Payload, &seen); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": result.RequestID, "arn": "arn:aws:lambda:eu-west-1:000000000000:function:f:$LATEST", "client": "",
		"seconds": 60.0, "trace": true, "memory": 256.0, "name": "f", "log": "/aws/lambda/f",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the context (-want +got):\n%s", diff)
	}

	var list []string
	if err := json.Unmarshal(invoke(t, l, order{Do: "environment"}).Payload, &list); err != nil {
		t.Fatal(err)
	}
	environment := make(map[string]string)
	for _, setting := range list {
		name, value, _ := strings.Cut(setting, "=")
		environment[name] = value
	}
	for name, value := range map[string]string{
		"TABLE": "orders", "BOTH": "function", "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9324", "SECRET_OF_THE_SHELL": "",
		"_HANDLER": "app.main", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_LAMBDA_FUNCTION_NAME": "f",
		"AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_MAX_CONCURRENCY": "",
		"AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/f", "LAMBDA_TASK_ROOT": f.Dir, "AWS_EXECUTION_ENV": "AWS_Lambda_provided.al2023",
		"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand", "TZ": ":UTC",
	} {
		if environment[name] != value {
			t.Errorf("%s=%q, want %q", name, environment[name], value)
		}
	}
}

// TestLogs: lines come in the order in which they were written, with the invoke that
// wrote them, and are there when the invoke has ended.
func TestLogs(t *testing.T) {
	t.Parallel()
	l, j := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}})
	for range 20 {
		result := invoke(t, l, order{Do: "print", Text: "one\r\ntwo"})
		var got []string
		j.mu.Lock()
		for _, line := range j.lines {
			if line.RequestID == result.RequestID && line.Function == "f" && line.Instance == 1 {
				got = append(got, string(line.Source)+" "+strings.Split(line.Text, "\t")[0])
			}
		}
		j.mu.Unlock()
		want := []string{
			"platform START RequestId: " + result.RequestID + " Version: $LATEST",
			"function one", "function two", "function to stderr", "function unfinished",
			"platform END RequestId: " + result.RequestID,
			"platform REPORT RequestId: " + result.RequestID,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the log (-want +got):\n%s", diff)
		}
		if tail := string(result.Log); !strings.HasPrefix(tail, want[0][len("platform "):]+"\none\ntwo\nto stderr\nunfinished\nEND") {
			t.Fatalf("the end of the log is %q", tail)
		}
	}
	long := invoke(t, l, order{Do: "print", Text: strings.Repeat("long line ", 1000)})
	if len(long.Log) != 4096 {
		t.Errorf("%d bytes of the log are returned, want 4096", len(long.Log))
	}
}

// TestConfigProblems: every problem is told at once, with its function and remedy.
func TestConfigProblems(t *testing.T) {
	t.Parallel()
	queue := "arn:aws:sqs:us-east-1:000000000000:"
	bad := emulator.Function{
		Name: "a b", Timeout: 16 * time.Minute, MemorySize: -1, PerInstance: -1,
		Async: emulator.AsyncConfig{
			MaxRetryAttempts: new(3), MaxEventAge: time.Second,
			OnSuccess: "arn:aws:sns:us-east-1:000000000000:topic", OnFailure: queue + "q.fifo", DeadLetter: "q",
		},
	}
	other := emulator.Function{Name: "g", Command: []string{filepath.Join(t.TempDir(), "x")}, Dir: ".", Async: emulator.AsyncConfig{OnFailure: queue + "q"}}
	_, err := emulator.New(emulator.Config{Functions: []emulator.Function{bad, other, other}, TimeScale: -1, IdleTimeout: -1})
	if err == nil {
		t.Fatal("New accepted it")
	}
	for _, want := range []string{
		`function "a b": the name must be`, "Command is empty", "Dir is empty", "Timeout is 16m0s", "MemorySize is -1", "PerInstance is -1",
		"MaxRetryAttempts is 3", "MaxEventAge is 1s", "service sns", "FIFO queue", `DeadLetter "q" is not an ARN`,
		`function "g": OnFailure is a queue, but Config.Send is missing`, `function "g" is given twice`, "TimeScale is -1", "IdleTimeout is -1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said by\n%v", want, err)
		}
	}
	for want, cfg := range map[string]emulator.Config{
		"TimeScale is NaN":        {TimeScale: math.NaN()},
		"TimeScale is +Inf":       {TimeScale: math.Inf(1)},
		`Region is "local"`:       {Region: "local"},
		`AccountID is "12345678"`: {AccountID: "12345678"},
	} {
		if _, err := emulator.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
	for arn, want := range map[string]string{
		"arn:aws:lambda:us-east-1:000000000000:function:h":      "names a function that does not exist",
		"arn:aws:lambda:eu-west-1:000000000000:function:g":      "not reachable in this region",
		"arn:aws:lambda:us-east-1:000000000000:function:g:live": "Function not found",
	} {
		other.Async.OnFailure = arn
		if _, err := emulator.New(emulator.Config{Functions: []emulator.Function{other}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New with the destination %s = %v, want %q", arn, err, want)
		}
	}
}
