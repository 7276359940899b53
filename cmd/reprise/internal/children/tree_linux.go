package children

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// killLimit bounds the wait for killed processes to end: one that waits for a disk
	// that does not answer ends only when the disk does.
	killLimit = 5 * time.Second
	// freezeLimit limits the wait until processes have stopped.
	freezeLimit = time.Second
	// firstLook and lastLook are the shortest and longest wait between two searches for
	// processes that are left.
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// attributes make a command the leader of a process group. If this program dies, the kernel
// kills the command, but not what the command has started.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ask sends SIGTERM to the command and to all that it has started.
func (c *Child) ask() {
	members := c.members() // before one of them ends and its children lose their parent
	c.signalGroup(syscall.SIGTERM)
	for _, p := range members {
		if p.group != c.cmd.Process.Pid {
			p.signal(syscall.SIGTERM)
		}
	}
}

// Kill kills the command, which must have been started, and all that it has started, and
// returns when all of these processes have ended.
func (c *Child) Kill() {
	freeze(c.members) // before one of them ends and its children lose their parent
	c.mu.Lock()
	waited := c.waited
	c.mu.Unlock()
	if !waited || !adopting() {
		c.signalGroup(syscall.SIGKILL) // without /proc, only the group can be found
	}
	killed(c.members)
}

// KillAll kills all processes that commands have left behind, at the end of the program, and
// returns their number. It leaves alone processes in the program's own process group, and
// those that were its children before the first command: a shell that became this program
// by exec may have started them.
func KillAll() int {
	if !adopting() {
		return 0
	}
	find := func() []process {
		all := processes()
		return slices.DeleteFunc(descendants(all), func(p process) bool {
			return p.group == own.group || foreign(all, p)
		})
	}
	freeze(find)
	return killed(find)
}

// freeze stops the processes that find finds until it finds only stopped ones. Otherwise a
// process that is killed could make its running parent start another one, whose origin
// nothing would show once the parent is killed too.
func freeze(find func() []process) {
	deadline := time.Now().Add(freezeLimit)
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		running := false
		for _, p := range find() {
			if !p.dead && !p.stopped && p.signal(syscall.SIGSTOP) {
				running = true
			}
		}
		if !running || time.Now().After(deadline) {
			return
		}
		time.Sleep(wait)
	}
}

// killed kills the processes that find finds until it finds none, because a process may have
// forked since the last search. It returns their number.
func killed(find func() []process) int {
	seen := make(map[identity]bool)
	deadline := time.Now().Add(killLimit)
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		left := 0
		for _, p := range find() {
			if !p.dead && p.signal(syscall.SIGKILL) {
				seen[p.identity] = true
				left++
			}
		}
		reap()
		if left == 0 || time.Now().After(deadline) {
			return len(seen)
		}
		time.Sleep(wait)
	}
}

// members returns the processes of the command: those in its group, those that have its
// mark, those that were members before, and those that descend from one of these or are in a
// group or a session that one of these has made. A process that has left its session, its
// parents and its environment before the first search cannot be attributed to a command;
// KillAll finds it.
func (c *Child) members() []process {
	if !adopting() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := processes()
	leader := c.cmd.Process.Pid
	_, again := all[leader]
	// As long as a group has members, its number is not given to another process.
	group := !c.waited || !again
	var found []process
	in := make(map[int]bool)
	groups, sessions := map[int]bool{}, map[int]bool{}
	rest := descendants(all)
	for more := true; more; {
		more = false
		rest = slices.DeleteFunc(rest, func(p process) bool {
			belongs := group && (p.group == leader || p.id == leader) || in[p.parent] || groups[p.group] || sessions[p.session] || c.known[p.identity] || c.marked(p)
			if belongs {
				found = append(found, p)
				c.known[p.identity] = true
				in[p.id], more = true, true
				groups[p.group] = p.group != own.group
				sessions[p.session] = p.session != own.session
			}
			return belongs
		})
	}
	return found
}

// marked reports whether the process has the command's mark in its environment. The
// environment of another user's process cannot be read; neither could it be killed.
func (c *Child) marked(p process) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.id) + "/environ")
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if string(variable) == c.mark {
			return true
		}
	}
	return false
}

// descendants returns the processes that descend from this one.
func descendants(all map[int]process) []process {
	var found []process
	if own.id == 0 { // unknown: every process is below the kernel, which has this number
		return nil
	}
	for _, p := range all {
		for at, known := p, true; known && at.id != own.id; at, known = all[at.parent] {
			if at.parent == own.id {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// foreign reports whether the process, or an ancestor of it, was there before the first
// command.
func foreign(all map[int]process, p process) bool {
	for at, known := p, true; known && at.id != own.id; at, known = all[at.parent] {
		if before[at.identity] {
			return true
		}
	}
	return false
}
