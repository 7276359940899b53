//go:build unix

package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The service refuses some of the first 24 messages of this seed; none crashes it: that would be
// retried for 15 seconds.
var fewMessages = []string{"demo", "--messages", "24", "--seed", "11"}

// TestDemo: it ends by itself with the report and exit code 0; an output that is not a terminal
// gets plain lines.
func TestDemo(t *testing.T) {
	t.Parallel()
	got := reprise(t, "", fewMessages...)
	if got.code != 0 || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	for _, want := range []string{
		`^SQS at http://127\.0\.0\.1:\d+, a webhook service at http://127\.0\.0\.1:\d+/hooks$`,
		`^Retry policy: exponential\(`,
		`^ +\d+\.\ds 24 messages sent in 3 requests$`,
		`^ +\d+\.\ds the service goes down$`,
		`^ +\d+\.\ds the breaker opens: messages are held, a canary in \d+\.\d s$`,
		`^ +\d+\.\ds \d+/24 .*\d+ held.* OUTAGE$`,
		`^ +\d+\.\ds a canary fails: \d+ held, the next in \d+\.\d s$`,
		`^ +\d+\.\ds the service is back$`,
		`^ +\d+\.\ds a canary succeeds: work begins again, slowly at first$`,
		`^24 messages in \d+\.\d s: \d\d delivered, \d dead letters$`,
		`^Attempts per message$`,
		`^   1 +\d+ █+`,
		`^Failed runs of the handler: \d+$`,
		`^ +\d+ (503 Service Unavailable|connection lost)$`,
		`^The outage of \d+\.\d s cost \d+ attempts$`,
		`^ +\d+ failed until the breaker opened$`,
		`^ +[1-9]\d* sent as canaries after that, which count as no attempt$`,
		`^ +[1-9]\d* held at once, at most$`,
		`^Dead letters: \d, with their reasons$`,
		`^ +\d permanent: the target answered 4`,
		`^API calls per message: \d\.\d\d, per attempt: \d\.\d\d$`,
		`^ +\d\.\d\d receive$`,
		`^ +ok every message is accounted for, once$`,
		`^ +ok every body arrived byte for byte$`,
		`^ +ok every dead letter tells its story$`,
		`^ +ok no attempt came before it was due$`,
		`^ +ok no attempt went uncounted$`,
		`^ +ok the outage cost no more attempts than opened the breaker, plus the canaries$`,
	} {
		if !regexp.MustCompile(`(?m)` + want).MatchString(got.stdout) {
			t.Errorf("no line matches %s", want)
		}
	}
	if strings.Contains(got.stdout, "\x1b") || strings.Contains(got.stdout, "\r") {
		t.Error("a pipe got control characters")
	}
	for line := range strings.Lines(got.stdout) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Logf("it printed:\n%s", got.stdout)
	}
}

// TestDemoInterrupted: the first signal drains and reports; the remaining messages are accounted
// for, so the exit code is 0.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--seed", "2")
	p.await("the service goes down")
	p.signal(os.Interrupt)
	code, output := p.wait()
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"stopping gracefully; press Ctrl-C again to stop now", "left in the queue", "ok every message is accounted for, once"} {
		if !strings.Contains(output, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it printed:\n%s", output)
	}
}

// TestDemoKeep: after the report everything keeps running until a signal.
func TestDemoKeep(t *testing.T) {
	t.Parallel()
	p := start(t, append(fewMessages, "--keep")...)
	p.await("Everything is left running until Ctrl-C")
	dead := strings.TrimSuffix(p.await("reprise send "), ` '{"hello":1}'`) + "-dead"
	endpoint := strings.TrimSuffix(dead, "/000000000000/webhooks-dead")
	if len(receive(t, endpoint, "webhooks-dead")) == 0 {
		t.Error("the dead-letter queue is empty")
	}
	if got := reprise(t, "", "send", strings.TrimSuffix(dead, "-dead"), `{"hello":1}`); got.code != 0 {
		t.Errorf("sending to it: %+v", got)
	}
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 || strings.Count(output, "Attempts per message") != 1 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}
