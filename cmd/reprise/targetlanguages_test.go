//go:build unix

package main_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// languageTargets are targets of each kind in other languages. Each appends a line for an attempt
// to the file $RECORD, the digest of the body and the attribute kind, and accepts the message, but
// refuses messages of the kind bad, and fails the first attempt of the kind flaky. Targets for
// --url print their port.
var languageTargets = []struct{ flag, program, file, code string }{
	{"url", "python3", "target.py", `
import hashlib, http.server, os
class Target(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers.get("X-Aws-Sqsd-Attr-kind", "none")
        with open(os.environ["RECORD"], "a") as record:
            record.write(hashlib.sha256(body).hexdigest() + " " + kind + "\n")
        first = self.headers["X-Reprise-Attempt"] == "1"
        self.send_response(422 if kind == "bad" else 503 if kind == "flaky" and first else 204)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
print(server.server_port, flush=True)
server.serve_forever()
`},
	{"url", "node", "target.js", `
const crypto = require('crypto'), fs = require('fs'), http = require('http');
const server = http.createServer((request, response) => {
  const digest = crypto.createHash('sha256');
  request.on('data', (chunk) => digest.update(chunk)).on('end', () => {
    const kind = request.headers['x-aws-sqsd-attr-kind'] ?? 'none';
    fs.appendFileSync(process.env.RECORD, digest.digest('hex') + ' ' + kind + '\n');
    const first = request.headers['x-reprise-attempt'] === '1';
    response.writeHead(kind === 'bad' ? 422 : kind === 'flaky' && first ? 503 : 204, {'Retry-After': '1'}).end();
  });
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
`},
	{"exec", "python3", "work.py", `
import hashlib, os, sys
kind = os.environ.get("REPRISE_ATTR_KIND", "none")
with open(os.environ["RECORD"], "a") as record:
    record.write(hashlib.sha256(sys.stdin.buffer.read()).hexdigest() + " " + kind + "\n")
sys.exit(100 if kind == "bad" else 75 if kind == "flaky" and os.environ["REPRISE_ATTEMPT"] == "1" else 0)
`},
	{"exec", "node", "work.js", `
const kind = process.env.REPRISE_ATTR_KIND ?? 'none';
const digest = require('crypto').createHash('sha256');
process.stdin.on('data', (chunk) => digest.update(chunk)).on('end', () => {
  require('fs').appendFileSync(process.env.RECORD, digest.digest('hex') + ' ' + kind + '\n');
  process.exit(kind === 'bad' ? 100 : kind === 'flaky' && process.env.REPRISE_ATTEMPT === '1' ? 75 : 0);
});
`},
	{"exec", "sha256sum", "work.sh", `
echo "$(sha256sum | cut -d' ' -f1) ${REPRISE_ATTR_KIND-none}" >>"$RECORD"
case "${REPRISE_ATTR_KIND-} $REPRISE_ATTEMPT" in
	bad*) exit 100 ;;
	"flaky 1") exit 75 ;;
esac
`},
	{"worker", "python3", "worker.py", `
import hashlib, json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    kind = m.get("attributes", {}).get("kind", "none")
    with open(os.environ["RECORD"], "a") as record:
        record.write(hashlib.sha256(m["body"].encode()).hexdigest() + " " + kind + "\n")
    answer = {"id": m["id"]}
    if kind == "bad":
        answer |= {"result": "permanent", "error": "refused"}
    elif kind == "flaky" and m["attempt"] == 1:
        answer |= {"error": "not yet"}
    print(json.dumps(answer), flush=True)
`},
	{"worker", "node", "worker.js", `
const crypto = require('crypto'), fs = require('fs');
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const m = JSON.parse(line), kind = m.attributes?.kind ?? 'none', answer = {id: m.id};
  fs.appendFileSync(process.env.RECORD, crypto.createHash('sha256').update(m.body).digest('hex') + ' ' + kind + '\n');
  if (kind === 'bad') Object.assign(answer, {result: 'permanent', error: 'refused'});
  if (kind === 'flaky' && m.attempt === 1) answer.error = 'not yet';
  console.log(JSON.stringify(answer));
});
`},
}

// TestTargetsOfOtherLanguages: targets in Python, Node and shell, of each kind, get every body
// byte by byte, one of 1 MiB too, and their answers retry, dead-letter and delete.
func TestTargetsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, target := range languageTargets {
		t.Run(target.flag+" "+target.program, func(t *testing.T) {
			t.Parallel()
			installed(t, target.program)
			interpreter := target.program
			if strings.HasSuffix(target.file, ".sh") {
				interpreter = "sh"
			}
			record := filepath.Join(t.TempDir(), "record")
			env := environment("RECORD="+record, "PYTHONIOENCODING=utf-8")
			command := interpreter + " " + written(t, target.file, target.code)
			if target.flag == "url" {
				command = "http://127.0.0.1:" + listening(t, env, command)
			}
			p := startIn(t, env, "up", "--memory", "--addr", "127.0.0.1:0", "--"+target.flag, command, "--retry", "constant(1s) jitter=none attempts=5")
			endpoint := p.await("SQS endpoint")
			p.await("retry         ")

			want := sendKinds(t, endpoint)
			awaitHealth(t, endpoint, func(h health) bool { return h.Consumer.Deleted == 3 && h.Consumer.DeadLettered == 1 })
			p.signal(syscall.SIGTERM)
			if code, output := p.wait(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, output)
			}
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, slices.Sorted(strings.Lines(string(text)))); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// sendKinds sends a message of each kind, and returns the lines that its attempts record.
func sendKinds(t *testing.T, endpoint string) (attempts []string) {
	t.Helper()
	for kind, body := range map[string]string{"good": `{"text":"שלום 🚀"}`, "flaky": "two\nlines\t", "bad": "\"", "none": strings.Repeat("é", 1<<19)} {
		in := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "jobs"), MessageBody: &body}
		if kind != "none" { // 1 MiB leaves no room for attributes
			in.MessageAttributes = map[string]types.MessageAttributeValue{
				"kind":  {DataType: aws.String("String"), StringValue: &kind},
				"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
			}
		}
		if _, err := client(endpoint).SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(body)), kind)
		attempts = append(attempts, line)
		if kind == "flaky" {
			attempts = append(attempts, line)
		}
	}
	slices.Sort(attempts)
	return attempts
}

// listening starts a program that prints the port on which it listens.
func listening(t *testing.T, env []string, command string) (port string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+command)
	cmd.Env, cmd.Stderr = env, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startServer(t, cmd)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(line)
}
