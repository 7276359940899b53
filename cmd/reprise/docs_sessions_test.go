//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	library "github.com/reprise-sqs/reprise"
)

// sessionPages have blocks marked "console": what a user types, behind "$ ", and what the program
// then printed. They are one session from the first block to the last. Those that are true find
// messages in their queues: see fill.
var sessionPages = map[string]bool{"docs/start.md": false, "docs/operate.md": true, "docs/runbook.md": true, "docs/simulate.md": true}

// TestSessionsOfThePages types what the pages have, and compares what is printed. Ids, times and
// the server's port differ from run to run. With -update the pages get what is printed.
func TestSessionsOfThePages(t *testing.T) {
	for page, filled := range sessionPages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, page)
			s.filled = filled
			path := filepath.Join(root, page)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			played := 0
			got := regexp.MustCompile("(?ms)^```console\n(.*?)^```$").ReplaceAllStringFunc(string(text), func(block string) string {
				played++
				block = strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```")
				return "```console\n" + s.play(block) + "```"
			})
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(s.stable(string(text)), s.stable(got)); diff != "" || played == 0 {
				t.Errorf("%d blocks; %s (-page +printed; write it with -update):\n%s", played, page, diff)
			}
		})
	}
}

// session is a shell in a folder of its own, with the page's files and the server that the page starts.
type session struct {
	t        *testing.T
	dir      string
	env      []string
	endpoint string
	filled   bool // whether the page finds messages in the server's queues
}

func newSession(t *testing.T, page string) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir()}
	s.use(program(t))
	s.env = append(environment(), "PATH="+s.dir+":"+os.Getenv("PATH"))
	for _, b := range blocks(t, page) {
		first, _, _ := strings.Cut(b.text, "\n")
		if name, isFile := strings.CutPrefix(first, "# "); isFile && slices.Contains([]string{"yaml", "csv", "sh file"}, b.info) {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// use has the session's commands run a binary of the program.
func (s *session) use(binary string) {
	s.t.Helper()
	name := filepath.Join(s.dir, "reprise")
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	if err := os.Symlink(binary, name); err != nil {
		s.t.Fatal(err)
	}
}

// play runs the commands of a block, and returns it with what they print.
func (s *session) play(block string) string {
	var b strings.Builder
	for _, command := range regexp.MustCompile(`(?m)^\$ (.*(?:\\\n.*)*)`).FindAllStringSubmatch(block, -1) {
		b.WriteString("$ " + command[1] + "\n")
		if serve, isServer := strings.CutPrefix(command[1], "reprise serve "); isServer {
			args := strings.Fields(strings.TrimSuffix(serve, "&"))
			p := start(s.t, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
			s.endpoint = p.await("SQS endpoint")
			if s.filled {
				s.fill()
			}
			continue
		}
		if run, isRun := strings.CutPrefix(command[1], "reprise run "); isRun {
			p := startCommand(s.t, s.env, "sh", "-c", `cd "$0" && exec reprise run --admin-addr 127.0.0.1:0 `+strings.TrimSuffix(run, "&"), s.dir)
			admin, _, _ := strings.Cut(p.await("admin         "), "/health")
			s.env = append(s.env, "REPRISE_ADMIN_URL="+admin)
			p.await("msg=consuming")
			continue
		}
		if setting, isExport := strings.CutPrefix(command[1], "export "); isExport {
			s.env = append(s.env, strings.ReplaceAll(setting, sdkEndpoint, s.endpoint))
			continue
		}
		var out bytes.Buffer
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command[1])
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &out
		code := exitCode(s.t, cmd.Run())
		text := out.String()
		if s.endpoint != "" {
			text = strings.ReplaceAll(text, s.endpoint, sdkEndpoint)
		}
		b.WriteString(text)
		if code != 0 {
			fmt.Fprintf(&b, "[exit code %d]\n", code)
		}
	}
	return b.String()
}

// fill puts into the queues what the page finds there: orders that wait, and others that consumers
// gave up, or SQS.
func (s *session) fill() {
	for i := range 3 {
		sendJSON(s.t, s.endpoint, "orders", fmt.Sprintf(`{"order":%d,"customer":{"id":%d}}`, 4711+i, 40+i), nil)
	}
	ago := func(d time.Duration) string { return time.Now().Add(-d - time.Second).UTC().Format(time.RFC3339) }
	for i, letter := range []struct{ reason, err, last string }{
		{"attempts", "the target answered 503 Service Unavailable", ago(4 * time.Hour)},
		{"attempts", "the target answered 503 Service Unavailable", ago(3 * time.Hour)},
		{"attempts", "the target answered 503 Service Unavailable", ago(2 * time.Hour)},
		{"permanent", "order 4801: card ending in 4242 was refused", ago(26 * time.Hour)},
		{"permanent", "order 4802: card ending in 1881 was refused", ago(20 * time.Minute)},
		{"age", "dial tcp 10.0.3.17:5432: connect: connection refused", ago(49 * time.Hour)},
	} {
		sendJSON(s.t, s.endpoint, "orders-dead", fmt.Sprintf(`{"order":%d,"customer":{"id":%d}}`, 4798+i, 42+i%2), map[string]any{
			"reason": letter.reason, "attempts": 12, "receives": 12, "sent": ago(72 * time.Hour), "first": ago(72*time.Hour - time.Minute), "last": letter.last, "error": letter.err, "consumer": "ship",
			"source": "arn:aws:sqs:us-east-1:000000000000:orders", "message": fmt.Sprint("m-", i), "origin": fmt.Sprint("o-", i),
		})
	}
}

// sendJSON sends a message, with a story if there is one.
func sendJSON(t *testing.T, endpoint, queue, body string, story map[string]any) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, queue), MessageBody: &body}
	if story != nil {
		text, err := json.Marshal(story)
		if err != nil {
			t.Fatal(err)
		}
		in.MessageAttributes = map[string]types.MessageAttributeValue{library.StoryAttribute: {DataType: aws.String("String"), StringValue: aws.String(string(text))}}
	}
	if _, err := client(endpoint).SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

var (
	anyID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anySeconds = regexp.MustCompile(` +\d+s  `) // a column
	anyClient  = regexp.MustCompile(`operator at 127\.0\.0\.1:\d+`)
	anyJob     = regexp.MustCompile(`job-[A-Z2-7]{12}`)
	anyTime    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// stable is text without what differs from run to run.
func (s *session) stable(text string) string {
	text = anyID.ReplaceAllString(text, "ID")
	text = anyClient.ReplaceAllString(text, "operator at ADDRESS")
	text = anyJob.ReplaceAllString(text, "JOB")
	text = anySeconds.ReplaceAllString(text, " Ns  ")
	return anyTime.ReplaceAllString(text, "TIME")
}
