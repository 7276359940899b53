package lambdalocal

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one thread that outlives them. Linux sends a
// process its death signal when the thread that started it ends, rather than the
// program (prctl(2), PR_SET_PDEATHSIG), and the runtime may end any other thread.
type spawner struct {
	begin  sync.Once
	starts chan start
	done   chan struct{} // closed when the thread ends
}

type start struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	return &spawner{starts: make(chan start), done: make(chan struct{})}
}

// start starts cmd.
func (s *spawner) start(cmd *exec.Cmd) error {
	s.begin.Do(func() { go s.run() })
	request := start{cmd: cmd, err: make(chan error)}
	s.starts <- request
	return <-request.err
}

func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for request := range s.starts {
		request.err <- request.cmd.Start()
	}
}

// stop ends the thread. Every process that it started must have ended.
func (s *spawner) stop() {
	close(s.starts)
	s.begin.Do(func() { close(s.done) })
	<-s.done
}
