package main_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestManyConnections: many connections do not take the open files that the journal needs:
// accepted ones are served, and afterwards no message is missing.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := startCommand(t, environment(), "sh", "-c", `ulimit -n 128 && exec "$0" "$@"`,
		program(t), "serve", "--addr", "127.0.0.1:0", "--min-free", "0", "--data", dir, "--queue", "q")
	endpoint := p.await("SQS endpoint")
	f := newFiller(t, endpoint)
	if err := f.fill(10); err != nil { // by a connection that is kept
		t.Fatal(err)
	}
	for range 150 {
		idle, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
	}
	const several = 800 // 50 MiB: some tables and logs
	err := f.fill(several)
	if len(f.sent) == 10 {
		// The kept connection was idle for longest, and was closed for others just as it was
		// used: SDKs repeat such a request, this client does not.
		err = f.fill(several)
	}
	if err != nil {
		t.Fatalf("after %d messages: %v\n%s", len(f.sent), err, p.output())
	}
	p.stop()
	_, endpoint = keep(t, dir)
	f.checkAll(endpoint)
}
