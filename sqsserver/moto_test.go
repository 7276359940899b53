package sqsserver_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/moto-differences.txt anew")

const motoTable = "testdata/moto-differences.txt"

// Moto's server, where it is installed, goes through the suite. The cases that it
// fails are listed in a table, which is checked as long as the version is the one
// that it was written for. This server passes them all (TestConformance), so what
// the table lists is moto's.
func TestMotoDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("moto takes its time, and -short is given")
	}
	version, err := exec.CommandContext(t.Context(), "python3", "-c", "import moto; print(moto.__version__)").Output()
	if err != nil {
		t.Skip("python3 has no moto")
	}
	url := startMoto(t)
	var rows []string
	compared, failed := 0, 0
	for _, c := range allCases(t) {
		if c.waits() > 2*time.Second || c.is("choice") || c.is("local") {
			continue
		}
		compared++
		problems := make(map[string]string) // by transport
		for _, transport := range []string{"json", "query"} {
			if c.fits(transport) {
				problems[transport] = playOnMoto(t, &c, transport, url)
			}
		}
		if problems["json"]+problems["query"] == "" {
			continue
		}
		failed++
		if problems["json"] == problems["query"] {
			rows = append(rows, "| "+cell(c.name)+" | both | "+problems["json"]+" |")
			continue
		}
		for _, transport := range []string{"json", "query"} {
			if problems[transport] != "" {
				rows = append(rows, "| "+cell(c.name)+" | "+transport+" | "+problems[transport]+" |")
			}
		}
	}
	slices.Sort(rows)
	text := fmt.Sprintf(motoIntroduction, bytes.TrimSpace(version), compared, failed) + strings.Join(rows, "\n") + "\n"
	if *update {
		if err := os.WriteFile(motoTable, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(motoTable)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(want, []byte("moto "+string(bytes.TrimSpace(version))+" ")) {
		t.Skipf("%s was not written for moto %s; go test ./sqsserver -run TestMotoDifferences -update writes it anew", motoTable, version)
	}
	if diff := compareLines(string(want), text); diff != "" {
		t.Errorf("%s is not what moto does; go test ./sqsserver -run TestMotoDifferences -update writes it anew\n%s", motoTable, diff)
	}
}

const motoIntroduction = `Where moto differs from SQS

Written by ` + "`go test ./sqsserver -run TestMotoDifferences -update`" + `; do not edit.

moto %s was put through the conformance suite of this server (sqsserver/testdata/conformance): those %d cases of it that are
AWS's documented or recorded behaviour and need at most two seconds to pass, over both protocols. It departs from %d of them;
Reprise's server passes all. Each row has the first step of a case that goes wrong. The texts of some errors are known from
other emulators only, not from AWS.

| case | protocol | moto |
|---|---|---|
`

// startMoto starts moto's server on a free port and returns its URL.
func startMoto(t *testing.T) (url string) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip("no moto_server on the PATH")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	process := exec.Command(program, "-H", "127.0.0.1", "-p", fmt.Sprint(address.Port))
	process.Env = append(os.Environ(), "MOTO_ACCOUNT_ID=123456789012")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // reports the kill
	})
	url = "http://" + address.String()
	for range 300 {
		if resetMoto(t.Context(), url) == nil {
			return url
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Skip("moto_server did not answer in 30 seconds")
	return ""
}

func resetMoto(ctx context.Context, url string) error {
	_, _, _, err := post(ctx, http.DefaultClient, url+"/moto-api/reset", nil, nil)
	return err
}

// playOnMoto returns what goes wrong, as the cell of a table, or "".
func playOnMoto(t *testing.T, c *conformanceCase, transport, url string) string {
	if err := resetMoto(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	failed, err := c.play(t.Context(), openHTTPTransport(transport, url, scoped{}), "123456789012")
	if err != nil {
		return cell("`" + shorten(failed.action+" "+failed.rest) + "` " + shorten(err.Error()))
	}
	return ""
}

// scoped signs no requests, but says as a signature does what service they are for:
// moto has many.
type scoped struct{}

func (scoped) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00")
	return http.DefaultClient.Do(r)
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	handles = regexp.MustCompile(`[0-9A-Za-z_+/=-]{60,}`)
	ports   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	numbers = regexp.MustCompile(`\b\d{10,}\b`)
)

// shorten takes from a text what differs from run to run, and its length.
func shorten(text string) string {
	text = uuids.ReplaceAllString(text, "…")
	text = ports.ReplaceAllString(text, "localhost")
	text = handles.ReplaceAllString(text, "…")
	text = numbers.ReplaceAllString(text, "…")
	if characters := []rune(strings.Join(strings.Fields(text), " ")); len(characters) > 300 {
		return string(characters[:300]) + "…"
	} else {
		return string(characters)
	}
}

// cell makes a text fit into the cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// compareLines lists the lines that only one of two texts has.
func compareLines(want, got string) string {
	var diff strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", want, got}, {"+", got, want}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains(side.other, line) {
				diff.WriteString(side.sign + line)
			}
		}
	}
	return diff.String()
}
