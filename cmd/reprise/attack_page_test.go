//go:build unix

package main_test

// Holds off: a web page that a developer visits, on any site, while the program runs on the
// developer's machine. The page may have the browser send any request that a page can, scan
// ports, and point its own name at this machine. It must not be able to send, receive, purge,
// invoke, answer for a function, set faults or read anything.

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// pageAttempt is a request of testdata/attack_page.html, and the answer that the page saw.
type pageAttempt struct{ What, URL, Outcome string }

// pageServer serves that page under every name, and gets its reports.
type pageServer struct {
	*httptest.Server
	reports chan pageReport
}

type pageReport struct {
	as       string
	attempts []pageAttempt
}

func newPageServer(t *testing.T) *pageServer {
	t.Helper()
	page, err := os.ReadFile("testdata/attack_page.html")
	if err != nil {
		t.Fatal(err)
	}
	s := &pageServer{reports: make(chan pageReport, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/attack":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write(page)
		case "/redirect":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
		case "/report":
			report := pageReport{as: r.URL.Query().Get("as")}
			if err := json.NewDecoder(r.Body).Decode(&report.attempts); err != nil {
				t.Error(err)
			}
			s.reports <- report
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *pageServer) port() string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// rebound serves the page under the attacker's name at the port of a server, and passes all other
// requests on to that server unchanged, as if the attacker had pointed the name at this machine.
func (s *pageServer) rebound(t *testing.T, endpoint string) (address string) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	passOn := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/attack" || r.URL.Path == "/redirect" || r.URL.Path == "/report" {
			s.Config.Handler.ServeHTTP(w, r)
			return
		}
		passOn.ServeHTTP(w, r)
	}))
	t.Cleanup(attacker.Close)
	return attacker.Listener.Addr().String()
}

// browse opens a page in Chromium, with rules for the addresses of names, until the test ends.
func browse(t *testing.T, rules, address string) {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("skipped: Chromium is not installed (apt-get install chromium)")
	}
	home := t.TempDir()
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(home, "profile"),
		"--remote-debugging-port=0", // without it some versions end when the page has loaded
		"--host-resolver-rules="+rules, address)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = time.Second // its children may keep the output open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			t.Logf("Chromium wrote:\n%s", output.String())
		}
	})
}

// await returns the report of the page that calls itself as.
func (s *pageServer) await(t *testing.T, as string) []pageAttempt {
	t.Helper()
	select {
	case report := <-s.reports:
		if report.as != as {
			t.Fatalf("the page %q reports, want %q", report.as, as)
		}
		return report.attempts
	case <-time.After(2 * patience):
		t.Fatalf("the page %q has not reported", as)
	}
	return nil
}

const lambdaVictim = `Transform: AWS::Serverless-2016-10-31
Parameters:
  Greeting: {Type: String}
Resources:
  Victim:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: python, Handler: app.handler, Runtime: python$PYTHON}
`

const lambdaVictimPython = `import os
print("runtime API", os.environ["AWS_LAMBDA_RUNTIME_API"])
def handler(event, context):
    print("handles", event)
    return {"handled": event}
`

// pageVictims are the programs that listen on the developer's machine.
type pageVictims struct {
	serve, up, lambda *process
	endpoints         [3]string // of the three
	executed          string    // the file to which the command of up appends each message
	runtime           string    // URL of the function's Runtime API
}

// startPageVictims starts them; allowed is for serve and lambda up.
func startPageVictims(t *testing.T, allowed string) *pageVictims {
	t.Helper()
	needPython(t)
	v := &pageVictims{executed: filepath.Join(t.TempDir(), "executed")}
	v.serve, v.endpoints[0] = serve(t, "--queue", "jobs", "--queue", "friends", "--allow-origin", allowed)
	v.up, v.endpoints[1] = up(t, "--exec", "cat >> "+v.executed, "--queue", "jobs")
	template := lambdaFolder(t, lambdaVictim)
	if err := os.WriteFile(filepath.Join(filepath.Dir(template), "python", "app.py"), []byte(lambdaVictimPython), 0o600); err != nil {
		t.Fatal(err)
	}
	v.lambda, v.endpoints[2] = lambdaUp(t, template, "--allow-origin", allowed)
	v.invoke(t, "first") // starts the process
	v.runtime = "http://" + v.lambda.await("runtime API ")
	sendOne(t, v.endpoints[0], "jobs", "secret")
	return v
}

// invoke invokes the function as the developer does.
func (v *pageVictims) invoke(t *testing.T, text string) {
	t.Helper()
	got := reprise(t, "", "lambda", "invoke", "Victim", `"`+text+`"`, "--endpoint", v.endpoints[2])
	if want := `{"handled": "` + text + `"}` + "\n"; got.code != 0 || got.stdout != want {
		t.Errorf("the developer's own invoke: %+v, want %s", got, want)
	}
}

func sendOne(t *testing.T, endpoint, queue, body string) {
	t.Helper()
	if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, queue), MessageBody: &body}); err != nil {
		t.Fatal(err)
	}
}

// untouched returns what the pages have changed at the victims.
func (v *pageVictims) untouched(t *testing.T) {
	t.Helper()
	out, err := client(v.endpoints[0]).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(v.endpoints[0], "jobs"), MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount"}})
	if err != nil || len(out.Messages) != 1 || *out.Messages[0].Body != "secret" || out.Messages[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("the queue has %+v, %v; want the developer's own message, not received before", out, err)
	}
	for _, endpoint := range v.endpoints {
		if status, text := fetch(t, http.DefaultClient, endpoint+"/_reprise/faults"); status != 200 || strings.Contains(text, "throttle") {
			t.Errorf("the faults: %d %s", status, text)
		}
		if status, text := fetch(t, http.DefaultClient, endpoint+"/_reprise/clock"); status != 200 || !strings.Contains(text, `"virtual": false`) {
			t.Errorf("the clock: %d %s", status, text)
		}
	}
	// The developer's message comes behind any of a page's.
	sendOne(t, v.endpoints[1], "jobs", "own")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(v.executed)
		if err == nil && string(text) == "own" {
			break
		}
		if len(text) > 0 && string(text) != "own" || time.Now().After(deadline) {
			t.Fatalf("the command was given %q, %v; want the developer's own message", text, err)
		}
	}
	v.invoke(t, "last")
	if text := v.serve.output(); !strings.Contains(text, "refused a request that may come from a web page or a stranger") || !strings.Contains(text, "--allow-origin") || strings.Count(text, "refused a request") > 20 {
		t.Errorf("the log of what was refused:\n%s", text)
	}
}

// TestAttackPageInABrowser: with Chromium as the developer's browser, neither a page of
// another origin nor one whose name was pointed at this machine does or reads anything.
func TestAttackPageInABrowser(t *testing.T) {
	t.Parallel()
	pages := newPageServer(t)
	v := startPageVictims(t, "http://friend.example:"+pages.port())
	attack := url.Values{"as": {"evil"}, "queue": {"jobs"}, "purge": {"yes"}, "sqs": v.endpoints[:], "lambda": v.endpoints[2:], "runtime": {v.runtime}}
	for _, endpoint := range v.endpoints[:2] {
		attack.Add("sqs", strings.Replace(endpoint, "127.0.0.1", "localhost", 1))
	}
	attack.Add("sqs", strings.Replace(v.endpoints[0], "127.0.0.1", "0.0.0.0", 1))
	browse(t, "MAP evil.example 127.0.0.1", "http://evil.example:"+pages.port()+"/attack?"+attack.Encode())
	attempts := pages.await(t, "evil")
	for _, a := range attempts {
		if a.Outcome != "opaque" && a.Outcome != "refused by the browser" {
			t.Errorf("%s of %s: the page learns %q", a.What, a.URL, a.Outcome)
		}
	}
	t.Logf("%d requests of a page of another origin", len(attempts))

	// The same from names that were rebound to each of the servers.
	for i, endpoint := range v.endpoints {
		own := strings.Replace(endpoint, "127.0.0.1", "rebound.example", 1)
		attack := url.Values{"as": {"rebound"}, "queue": {"jobs"}, "purge": {"yes"}, "sqs": {own}}
		if i == 2 {
			attack.Set("lambda", own)
		}
		browse(t, "MAP rebound.example "+pages.rebound(t, endpoint), own+"/attack?"+attack.Encode())
		checkRebound(t, pages.await(t, "rebound"))
	}
	own := strings.Replace(v.runtime, "127.0.0.1", "rebound.example", 1)
	browse(t, "MAP rebound.example "+pages.rebound(t, v.runtime), own+"/attack?"+url.Values{"as": {"rebound"}, "runtime": {own}}.Encode())
	checkRebound(t, pages.await(t, "rebound"))
	v.untouched(t)
	if text := v.lambda.output(); strings.Contains(text, "handles {'from'") || !strings.Contains(text, "was refused") {
		t.Errorf("the function was invoked, or nothing is said of what its Runtime API refused:\n%s", text)
	}
}

// checkRebound: the page may read what it gets, and gets refusals alone.
func checkRebound(t *testing.T, attempts []pageAttempt) {
	t.Helper()
	refusals := 0
	for _, a := range attempts {
		switch {
		case a.Outcome == "opaque" || a.Outcome == "refused by the browser":
		case strings.HasPrefix(a.Outcome, "403 ") && !strings.Contains(a.Outcome, "secret") && strings.Contains(a.Outcome, "rebound.example"):
			refusals++
		default:
			t.Errorf("%s of %s: the page learns %q", a.What, a.URL, a.Outcome)
		}
	}
	if refusals == 0 {
		t.Errorf("nothing was refused: %+v", attempts)
	}
	t.Logf("%d requests of a page whose name was rebound, of which it read %d refusals", len(attempts), refusals)
}

// TestAttackPageFriendInABrowser: the same requests of a page of this machine, and of one whose
// origin --allow-origin names, do what they say: they are refused for their origin. /_reprise/
// and the Runtime API refuse these pages too.
func TestAttackPageFriendInABrowser(t *testing.T) {
	t.Parallel()
	pages := newPageServer(t)
	v := startPageVictims(t, "http://friend.example:"+pages.port())
	for _, friend := range []string{"localhost", "friend.example"} {
		attack := url.Values{"as": {friend}, "queue": {"friends"}, "sqs": v.endpoints[:1], "lambda": v.endpoints[2:], "runtime": {v.runtime}}
		browse(t, "MAP friend.example 127.0.0.1", "http://"+friend+":"+pages.port()+"/attack?"+attack.Encode())
		learnt := make(map[string]string)
		for _, a := range pages.await(t, friend) {
			learnt[a.What] = a.Outcome
		}
		for what, want := range map[string]string{
			"list": "200 ", "JSON send": `200 {"MessageId":`, "read by GET": "200 <?xml", "read by POST": "200 <?xml",
			"invoke": `200 {"handled": {"from": "a page"}}`, "event": "202 ", "table": `400 {"__type":"com.amazonaws.dynamodb`,
			"read /_reprise/faults": "refused by the browser", "read /_reprise/clock": "refused by the browser", "faults": "refused by the browser",
			"clear faults": "refused by the browser", "next": "refused by the browser", "read /metrics": "refused by the browser",
		} {
			if !strings.HasPrefix(learnt[what], want) {
				t.Errorf("%s: %s learns %q, want %q", friend, what, learnt[what], want)
			}
		}
		v.lambda.await("handles {'from': 'a page, blindly'}")
	}
	// Images, frames and blind GETs do not say for which page they are. The last beacon may
	// still be on its way.
	want := 2 * len([]string{"form", "no-cors", "beacon", "JSON"})
	deadline := time.Now().Add(patience)
	for messagesIn(t, v.endpoints[0], "friends") < want && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if got := messagesIn(t, v.endpoints[0], "friends"); got != want {
		t.Errorf("the two pages have sent %d messages, want %d", got, want)
	}
	v.untouched(t)
}

// messagesIn counts the messages of a queue, received or not.
func messagesIn(t *testing.T, endpoint, queue string) int {
	t.Helper()
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(endpoint, queue), AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
