//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestFlippedBytes changes bytes in the files of a data directory. Either the program reports
// them, with the file and the remedy, or they change nothing: no message is lost silently, none
// comes with another body.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	original := filepath.Join(t.TempDir(), "data")
	var want []string
	addBodies := func(endpoint string, n int) {
		var bodies []string
		for range n {
			bodies = append(bodies, fmt.Sprintf("%04d %s", len(want)+len(bodies), strings.Repeat("body ", 100)))
		}
		sendAll(t, endpoint, "q", bodies...)
		want = append(want, bodies...)
	}
	p, endpoint := keep(t, original, "--queue", "q")
	addBodies(endpoint, 100)
	p.stop() // tables, and bodies beside them
	p, endpoint = keep(t, original)
	addBodies(endpoint, 100)
	p.kill() // and a log

	names, err := os.ReadDir(original)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	found := map[string]int{} // by kind of file
	t.Run("each", func(t *testing.T) {
		for _, name := range names {
			for _, part := range []int64{3, 2} {
				t.Run(fmt.Sprintf("%s/%d", name.Name(), part), func(t *testing.T) {
					t.Parallel()
					dir := filepath.Join(t.TempDir(), "data")
					if !copyFlipped(t, original, dir, name.Name(), part) {
						return // empty
					}
					if damaged(t, dir, name.Name(), want) {
						mu.Lock()
						found[strings.TrimLeft(name.Name(), "0123456789-")]++
						mu.Unlock()
					}
				})
			}
		}
	})
	for _, kind := range []string{".log", ".sst", ".blob", "JOURNAL", "LOGS"} {
		if found[kind] == 0 {
			t.Errorf("no damage was found in any %s: %v", kind, found)
		}
	}
}

// copyFlipped copies a directory, with the byte changed that is 1/part into the
// file; false if that is empty.
func copyFlipped(t *testing.T, from, to, flipped string, part int64) bool {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !name.Type().IsRegular() {
			continue // the socket
		}
		data, err := os.ReadFile(filepath.Join(from, name.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if name.Name() == flipped {
			if len(data) == 0 {
				return false
			}
			data[int64(len(data))/part] ^= 0x20
		}
		write(t, to, name.Name(), string(data))
	}
	_, err = os.Stat(filepath.Join(to, flipped))
	return err == nil
}

// damaged reports whether check finds damage in the file, and runs a server, which
// must find the same or have everything.
func damaged(t *testing.T, dir, name string, want []string) bool {
	t.Helper()
	checked := reprise(t, "", "check", dir)
	if checked.code != 0 && (checked.code != 4 || !containsAll(checked.stderr, dir, name, "backup")) {
		t.Errorf("check: %+v; want exit code 4, the file and the remedy", checked)
	}
	p := start(t, "serve", "--addr", "127.0.0.1:0", "--data", dir)
	if endpoint, started := p.started(); started {
		if checked.code == 0 {
			if got := receiveUntil(t, endpoint, "q", len(want)); !slices.Equal(got, want) {
				t.Errorf("the server has not what was acknowledged")
			}
			p.stop()
			return false
		}
		provoke(t, endpoint, want)
	}
	if code, output := p.wait(); code != 4 || !containsAll(output, dir, name, "backup") {
		t.Errorf("serve: exit code %d, and check: %+v; want 4, the file and the remedy:\n%s", code, checked, output)
	}
	return true
}

// provoke receives until the server ends because of the damage. The messages before that are
// right.
func provoke(t *testing.T, endpoint string, want []string) {
	t.Helper()
	c := client(endpoint)
	for {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "q"), MaxNumberOfMessages: 10}, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
		if err != nil {
			return
		}
		if len(out.Messages) == 0 {
			t.Error("everything came, and check has found damage")
			return
		}
		for _, m := range out.Messages {
			if !slices.Contains(want, *m.Body) {
				t.Errorf("received %q", *m.Body)
			}
		}
	}
}
