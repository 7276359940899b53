// Package process runs servers as separate processes, so that their cost can be measured without
// that of their clients.
package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a server that runs.
type Process struct {
	Addr string // host:port that it listens on

	cmd   *exec.Cmd
	said  *tail
	ended chan struct{} // closed when it has ended
}

const (
	startTimeout = time.Minute // a Java program on a busy machine takes its time
	stopTimeout  = 10 * time.Second
)

// FreeAddr returns a loopback address that is not in use.
func FreeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("process: look for a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// Start starts cmd, which must listen on addr, and returns when it does. The error has the end of
// its output.
func Start(addr string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Addr: addr, cmd: cmd, said: &tail{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.said, p.said
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("process: start %s: %w", cmd.Path, err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // a wrong end is reported by the calls that need the process
	}()
	if err := p.listens(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// listens waits until the process accepts connections.
func (p *Process) listens() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("process: %s has ended (%v): %s", p.cmd.Path, p.cmd.ProcessState, p.said)
		case <-ctx.Done():
			return fmt.Errorf("process: %s does not listen on %s after %v: %s", p.cmd.Path, p.Addr, startTimeout, p.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// URL is that of the server.
func (p *Process) URL() string { return "http://" + p.Addr }

// CPU is the processor time that the process has used so far, in all its threads.
func (p *Process) CPU() (time.Duration, error) {
	used, err := cpuTime(p.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("process: read the processor time of %s: %w: %s", p.cmd.Path, err, p.said)
	}
	return used, nil
}

// Signal sends the process a signal, unless it has ended.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Stop ends the process: gracefully, and after ten seconds by force.
func (p *Process) Stop() {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Build builds the program of a package of this workspace and returns its file,
// which is in dir.
func Build(dir, name, pkg string) (file string, err error) {
	file = dir + string(os.PathSeparator) + name
	if out, err := exec.Command("go", "build", "-o", file, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("process: build %s: %w: %s", pkg, err, out)
	}
	return file, nil
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 2 << 10

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return "it printed nothing"
	}
	return strings.TrimSpace(string(t.text))
}
