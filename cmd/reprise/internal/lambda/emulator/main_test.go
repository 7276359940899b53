package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// TestMain lets the test binary be the functions too: started as an instance it is a
// program of AWS's own SDK for functions, and knows nothing of the tests.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		startFunction(os.Getenv("_HANDLER"))
	case os.Getenv("LAMBDALOCAL_PROGRAM") != "":
		runProgram()
	default:
		code := m.Run()
		if leaked := leak(); code == 0 && leaked != "" {
			fmt.Println("FAIL: a goroutine is left after every Lambda was closed:\n" + leaked)
			code = 1
		}
		os.Exit(code)
	}
}

// leak returns the stack of a goroutine of the package, if there is one. Those that
// have just been told to end get a moment.
func leak() string {
	var found string
	for range 100 {
		found = ""
		all := make([]byte, 1<<20)
		for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
			if strings.Contains(stack, "/emulator.(*") {
				found = stack
			}
		}
		if found == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return found
}

// order is the event that says what the function is to do.
type order struct {
	Do    string        `json:"do"`
	Text  string        `json:"text,omitempty"`
	Size  int           `json:"size,omitempty"`
	Sleep time.Duration `json:"sleep,omitempty"`
	File  string        `json:"file,omitempty"`
}

func startFunction(handler string) {
	switch handler {
	case "refuse-init", "refuse-init-and-stay":
		// As other runtimes do, which the SDK for Go does not.
		req, err := http.NewRequest(http.MethodPost, "http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/init/error",
			strings.NewReader(`{"errorType":"Runtime.ImportModuleError","errorMessage":"Unable to import module 'app'","stackTrace":[]}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Lambda-Runtime-Function-Error-Type", "Runtime.ImportModuleError")
		http.DefaultClient.Do(req)
		if handler == "refuse-init-and-stay" {
			time.Sleep(time.Hour)
		}
		os.Exit(1)
	case "sleep-init":
		time.Sleep(time.Hour)
	case "exit-init":
		fmt.Println("no database")
		os.Exit(4)
	}
	lambda.Start(handle)
}

type refusal struct{ reason string }

func (r refusal) Error() string { return r.reason }

var (
	invokes   atomic.Int64
	rendezvus sync.WaitGroup
	meeting   = sync.OnceFunc(func() { rendezvus.Add(2) })
)

func handle(ctx context.Context, event json.RawMessage) (any, error) {
	var o order
	if err := json.Unmarshal(event, &o); err != nil {
		return nil, err
	}
	switch o.Do {
	case "fail":
		return nil, refusal{o.Text}
	case "panic":
		panic(o.Text)
	case "exit":
		os.Exit(1)
	case "exit0":
		os.Exit(0)
	case "print":
		fmt.Println(o.Text)
		fmt.Fprintln(os.Stderr, "to stderr")
		fmt.Print("unfinished")
	case "large":
		return strings.Repeat("x", o.Size), nil
	case "stream":
		return strings.NewReader(o.Text), nil
	case "break":
		return io.MultiReader(strings.NewReader(o.Text), iotest.ErrReader(refusal{"the disk is gone"})), nil
	case "sleep":
		fmt.Println(o.Text)
		time.Sleep(o.Sleep)
	case "child":
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			return nil, err
		}
		if err := os.WriteFile(o.File, fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
			return nil, err
		}
		os.Exit(1)
	case "detach": // a process in a session of its own, which writes until nobody reads
		child := exec.Command("setsid", "sh", "-c", `echo here; echo $$ >"$1.new"; mv "$1.new" "$1"; exec yes "$2"`, "sh", o.File, strings.Repeat("y", 8000))
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return nil, err
		}
		awaitFile(o.File)
		os.Exit(1)
	case "meet": // returns when two invokes are here at once
		meeting()
		rendezvus.Done()
		rendezvus.Wait()
	case "environment":
		return os.Environ(), nil
	case "context":
		return describe(ctx)
	case "wait": // for a file to be there
		awaitFile(o.File)
		return "there", nil
	case "who":
		return map[string]any{"pid": os.Getpid(), "invokes": invokes.Add(1), "version": os.Getenv("VERSION")}, nil
	}
	return event, nil
}

func awaitFile(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// describe tells what the SDK made of the headers.
func describe(ctx context.Context) (any, error) {
	lc, found := lambdacontext.FromContext(ctx)
	deadline, limited := ctx.Deadline()
	if !found || !limited {
		return nil, errors.New("the context lacks what Lambda tells")
	}
	return map[string]any{
		"id": lc.AwsRequestID, "arn": lc.InvokedFunctionArn, "client": lc.ClientContext.Custom["tenant"],
		"seconds": int(time.Until(deadline).Round(time.Second).Seconds()), "trace": ctx.Value("x-amzn-trace-id") != "",
		"memory": lambdacontext.MemoryLimitInMB, "name": lambdacontext.FunctionName, "log": lambdacontext.LogGroupName,
	}, nil
}

// runProgram is a program with a function, which a test kills: it prints the id of
// the instance's process, and a line when that process is busy for good. (One that
// waits for an invoke ends by itself when nobody answers it any more.)
func runProgram() {
	busy := make(chan string, 10)
	l, err := emulator.New(emulator.Config{
		Functions: []emulator.Function{{Name: "f", Command: []string{os.Args[0]}, Dir: ".", Timeout: 15 * time.Minute}},
		Log: func(line emulator.Line) {
			if line.Source == emulator.SourceFunction {
				busy <- line.Text
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	result, err := l.Invoke(context.Background(), "f", []byte(`{"do":"who"}`))
	fmt.Println(string(result.Payload), err)
	go func() { fmt.Println(<-busy) }()
	result, err = l.Invoke(context.Background(), "f", []byte(`{"do":"sleep","sleep":3600000000000,"text":"sleeping"}`))
	fmt.Println(string(result.Payload), err)
}

// journal collects the lines of a log.
type journal struct {
	t     *testing.T
	mu    sync.Mutex
	lines []emulator.Line
}

func (j *journal) log(line emulator.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// texts returns the lines from source.
func (j *journal) texts(source emulator.Source) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var texts []string
	for _, line := range j.lines {
		if line.Source == source {
			texts = append(texts, line.Text)
		}
	}
	return texts
}

// awaitStarts waits until n invokes have begun; the test's own deadline bounds it.
func (j *journal) awaitStarts(n int) {
	for {
		starts := 0
		for _, text := range j.texts(emulator.SourcePlatform) {
			if strings.HasPrefix(text, "START") {
				starts++
			}
		}
		if starts >= n || j.t.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// dump shows the log of a test that failed.
func (j *journal) dump() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		j.t.Logf("%s %s#%d %s: %s", line.Source, line.Function, line.Instance, line.RequestID, line.Text)
	}
}

// self is a function that is this binary.
func self(t testing.TB, name string) emulator.Function {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Function{Name: name, Command: []string{program}, Dir: t.TempDir(), Timeout: time.Minute}
}

// open returns a Lambda that is closed, empty, at the end of the test.
func open(t *testing.T, cfg emulator.Config) (*emulator.Lambda, *journal) {
	t.Helper()
	j := &journal{t: t}
	cfg.Log = j.log
	l, err := emulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close = %v", err)
		}
		if t.Failed() {
			j.dump()
		}
	})
	return l, j
}

// invoke invokes the function called f.
func invoke(t *testing.T, l *emulator.Lambda, o order) emulator.Result {
	t.Helper()
	result, err := l.Invoke(t.Context(), "f", encode(t, o))
	if err != nil {
		t.Fatalf("Invoke = %v", err)
	}
	return result
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
