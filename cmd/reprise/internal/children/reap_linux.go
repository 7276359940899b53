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
	own     process           // this one
	before  map[identity]bool // descendants from before the first command
	adopted atomic.Bool       // set after these
)

// started are the commands that have not been waited for. Whoever started them waits for
// them, not reap.
var started = struct {
	sync.Mutex
	ids map[int]*exec.Cmd
}{ids: make(map[int]*exec.Cmd)}

// adopt makes this program the parent of what its commands leave behind, which it then
// also has to wait for. It is called once.
func adopt() {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return // without /proc, or with that of another PID namespace, process groups are all there is
	}
	own, _ = look(os.Getpid())
	before = make(map[identity]bool)
	for _, p := range descendants(processes()) {
		before[p.identity] = true
	}
	if own.id == 0 || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return // on a kernel before 3.4
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

// reapEvery is how long what has ended may keep its entry in the table of processes.
const reapEvery = 100 * time.Millisecond

func adopting() bool { return adopted.Load() }

// begin starts cmd.
func begin(cmd *exec.Cmd) error {
	started.Lock() // so that reap knows it from its beginning
	defer started.Unlock()
	err := cmd.Start()
	if err == nil {
		started.ids[cmd.Process.Pid] = cmd
	}
	return err
}

// forget takes a command that was waited for.
func forget(cmd *exec.Cmd) {
	started.Lock()
	defer started.Unlock()
	if started.ids[cmd.Process.Pid] == cmd { // not yet another that has got the number
		delete(started.ids, cmd.Process.Pid)
	}
}

// reap waits for the children that this program has got from its commands, and that have
// ended. Its own are in its own process group, or in started: their Wait must find them.
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
