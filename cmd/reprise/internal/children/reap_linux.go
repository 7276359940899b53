package children

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	own     process           // this process
	before  map[identity]bool // descendants from before the first command
	adopted atomic.Bool       // set once own and before are valid
)

// started are the commands that have not been waited for. reap leaves them to the Wait of
// their Child.
var started = struct {
	sync.Mutex
	ids map[int]*exec.Cmd
}{ids: make(map[int]*exec.Cmd)}

// adopt makes this program the parent of the processes that its commands leave behind, so
// that it must also wait for them. It is called once.
func adopt() {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return // no /proc, or that of another PID namespace: use process groups only
	}
	own, _ = look(os.Getpid())
	before = make(map[identity]bool)
	for _, p := range descendants(processes()) {
		before[p.identity] = true
	}
	if own.id == 0 || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return // a kernel before 3.4
	}
	adopted.Store(true)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			time.Sleep(reapEvery)
			reap()
		}
	}()
}

// reapEvery is how long a process that has ended may stay in the process table.
const reapEvery = 100 * time.Millisecond

func adopting() bool { return adopted.Load() }

// begin starts cmd.
func begin(cmd *exec.Cmd) error {
	started.Lock() // so that reap never sees the process without its entry
	defer started.Unlock()
	err := cmd.Start()
	if err == nil {
		started.ids[cmd.Process.Pid] = cmd
	}
	return err
}

// forget removes a command that was waited for.
func forget(cmd *exec.Cmd) {
	started.Lock()
	defer started.Unlock()
	if started.ids[cmd.Process.Pid] == cmd { // the number may belong to another command already
		delete(started.ids, cmd.Process.Pid)
	}
}

// reap waits for the ended children that this program has inherited from its commands. It
// leaves out the program's own children, which are in its own process group or in started:
// their own Wait must find them.
func reap() {
	if !adopting() {
		return
	}
	for _, id := range childIDs() {
		p, ok := look(id)
		if !ok || !p.dead || p.parent != own.id || p.group == own.group {
			continue
		}
		started.Lock()
		if started.ids[id] == nil {
			_, _ = syscall.Wait4(id, nil, syscall.WNOHANG, nil) // it has ended
		}
		started.Unlock()
	}
}
