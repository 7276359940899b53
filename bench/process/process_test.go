package process_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/bench/process"
)

// child makes this test binary a process for the tests: one that listens on this address or,
// without an address, one that fails.
const child = "REPRISE_PROCESS_TEST"

func TestMain(m *testing.M) {
	addr, isChild := os.LookupEnv(child)
	switch {
	case !isChild:
		os.Exit(m.Run())
	case addr == "":
		fmt.Fprintln(os.Stderr, "there is no disk")
		os.Exit(3)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		conn.Close()
		for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // work
		}
	}
}

func command(addr string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+addr)
	return cmd
}

func TestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of another process is read on Linux only")
	}
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(addr, command(addr))
	if err != nil {
		t.Fatal(err)
	}
	before, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	const calls = 5
	for range calls { // each is answered when the work for the one before is done
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1)) // until it is closed
		conn.Close()
	}
	after, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("the process worked, and its processor time went from %v to %v", before, after)
	}
	p.Stop()
	if _, err := net.Dial("tcp", p.Addr); err == nil {
		t.Error("the process still listens after Stop")
	}
	if _, err := p.CPU(); err == nil {
		t.Error("a process that has ended still has processor time")
	}
}

// The error of a process that does not start has the reason.
func TestFailedStart(t *testing.T) {
	_, err := process.Start("127.0.0.1:1", command(""))
	if err == nil || !strings.Contains(err.Error(), "there is no disk") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error is %v", err)
	}
}
