package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// extremeNumbers are values at the ends of what the types of flags hold.
var extremeNumbers = map[string][]string{
	"duration": {"-2562047h47m16.854775808s", "-1ns", "1ns", "1281023h53m38.427387904s", "2562047h47m16.854775807s"},
	"int":      {"-9223372036854775808", "-1", "1", "4611686018427387904", "9223372036854775807"},
	"int64":    {"-9223372036854775808", "-1", "1", "8796093022208", "9223372036854775807"},
	"float64":  {"NaN", "-Inf", "-1", "5e-324", "1e-12", "1e12", "1.7976931348623157e+308", "+Inf"},
}

// TestExtremesOfFlags: each number that a command takes, at its extremes, is a mistake of the command line
// that names the flag, or the command works, and ends soon after it is told to stop.
func TestExtremesOfFlags(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"} {
		t.Setenv(name, value)
	}
	letters := filepath.Join(t.TempDir(), "letters")
	if err := os.WriteFile(letters, []byte(`{"body":"a"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 8) // most of the time they wait to be told to stop
	for _, words := range [][]string{
		{"run", "--queue", "orders", "--exec", "true", "--admin-addr", "none", "--no-progress"},
		{"serve", "--memory", "--addr", "127.0.0.1:0"},
		{"serve", "--data", "DATA", "--sync", "interval", "--addr", "127.0.0.1:0"},
		{"up", "--memory", "--addr", "127.0.0.1:0", "--exec", "true"},
		{"send", "orders", "hello"},
		{"peek", "other"},
		{"search", "other", "--body", "1"},
		{"dead", "orders-dead"},
		{"dead", "export", "orders-dead"},
		{"dead", "import", "orders-dead", letters, "--yes"},
		{"redrive", "orders-dead", "--yes"},
		{"move", "other", "orders", "--yes"},
		{"plan", "orders"},
		{"top", "orders", "--samples", "1"},
		{"simulate", "--messages", "5"},
		{"simulate", "--rate", "0.1", "--for", "1m", "--horizon", "1h"},
		{"simulate", "--messages", "5", "--fifo"},
		{"simulate", "schedule", "exponential(base=1s)"},
		{"simulate", "contention"},
		{"simulate", "async-lambda"},
		{"demo"},
		{"health", "127.0.0.1:1"},
	} {
		cmd, _, err := new(app).root().Find(words)
		if err != nil {
			t.Fatal(err)
		}
		var with []string // the words that the command has flags for
		for i := 0; i < len(words); i++ {
			if name, ok := strings.CutPrefix(words[i], "--"); ok && cmd.Flag(name) == nil {
				if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
					i++
				}
				continue
			}
			with = append(with, words[i])
		}
		asks := cmd.Flag("endpoint") != nil
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Annotations[formerOf] != nil {
				return // it sets what another flag does
			}
			for _, value := range extremeNumbers[flag.Value.Type()] {
				seen++
				atOnce <- struct{}{}
				all.Go(func() {
					defer func() { <-atOnce }()
					t.Run(strings.Join(words, " ")+" --"+flag.Name+"="+value, func(t *testing.T) {
						server, endpoint := ordersServer(t)
						defer server.Close()
						args := append(with[:len(with):len(with)], "--"+flag.Name+"="+value)
						for i := range args {
							if args[i] == "DATA" {
								args[i] = filepath.Join(t.TempDir(), "data")
							}
						}
						if asks {
							args = append(args, "--endpoint", endpoint)
						}
						checkExtreme(t, flag.Name, args)
					})
				})
			}
		})
	}
	all.Wait()
	if seen < 300 {
		t.Errorf("%d numbers were tried, want more", seen)
	}
}

// ordersServer is a server with a queue of a few messages and its dead-letter queue.
func ordersServer(t *testing.T) (*httptest.Server, string) {
	t.Helper()
	server := sqsserver.New(sqsserver.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), NoCooldown: true})
	for _, name := range []string{"orders-dead", "other", "orders"} {
		in := &sqsserver.CreateQueueInput{QueueName: name}
		if name == "orders" {
			in.Attributes = map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":3}`}
		}
		created, err := server.CreateQueue(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := server.SendMessage(t.Context(), &sqsserver.SendMessageInput{QueueUrl: created.QueueUrl, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	web := httptest.NewServer(server)
	return web, web.URL
}

// negative is a negative duration in a text.
var negative = regexp.MustCompile(`(^|[\s(=])-\d[\dhms.µn]*(h|m|s)\b`)

// checkExtreme runs a command, which has a flag with an extreme number.
func checkExtreme(t *testing.T, flag string, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var files [3]*os.File
	for i, name := range []string{"in", "out", "err"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	drain, ended := make(chan struct{}), make(chan error, 1)
	a := &app{stdin: files[0], stdout: newStream(files[1]), stderr: newStream(files[2]), ctx: ctx, drain: drain}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	go func() {
		_, err := root.ExecuteContextC(ctx)
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-time.After(100 * time.Millisecond):
		close(drain)
		select {
		case err = <-ended:
		case <-time.After(40 * time.Second):
			t.Fatal("the command goes on 40 s after it was told to stop")
		}
	}
	var texts []string
	for _, f := range files[1:] {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	named := flag
	if args[0] == "simulate" && flag == "messages" && args[1] != "schedule" {
		named = "traffic.backlog" // so scenarios call it
	}
	switch code := exitCodeOf(err); {
	case code == exitUsage && !strings.Contains(err.Error(), named):
		t.Errorf("the error does not name --%s: %v", flag, err)
	case code == exitUnsettled, code == exitFailure && (strings.HasPrefix(err.Error(), "interrupted") || err.Error() == "stopped"): // it was told to stop
	case code == exitFailure && (args[0] == "plan" || args[0] == "health"): // it has found something, or nobody
	case code != exitOK && code != exitUsage:
		t.Errorf("exit code %d: %v\n%.1500s", code, err, strings.Join(texts, ""))
	case code == exitOK && negative.MatchString(strings.Join(texts, "")):
		t.Errorf("the output has a negative time:\n%.3000s", strings.Join(texts, ""))
	}
}
