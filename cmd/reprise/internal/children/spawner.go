package children

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one thread that lives as long as the program. Linux sends a
// process its death signal when the thread that started it ends, not when the program does
// (prctl(2), PR_SET_PDEATHSIG), and Go's runtime may end any other thread.
type spawner struct {
	begin  sync.Once
	starts chan start
}

type start struct {
	cmd *exec.Cmd
	err chan error
}

var threads = spawner{starts: make(chan start)}

// start starts cmd.
func (s *spawner) start(cmd *exec.Cmd) error {
	s.begin.Do(func() {
		adopt()
		go s.run()
	})
	request := start{cmd: cmd, err: make(chan error)}
	s.starts <- request
	return <-request.err
}

func (s *spawner) run() {
	runtime.LockOSThread() // never unlocked, and this never returns
	for request := range s.starts {
		request.err <- begin(request.cmd)
	}
}
