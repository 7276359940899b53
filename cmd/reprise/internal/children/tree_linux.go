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
	// killLimit bounds how long the end of killed processes is awaited: one that waits
	// for a disk that does not answer ends when that does.
	killLimit = 5 * time.Second
	// freezeLimit bounds how long all that is to be killed is awaited to stand still.
	freezeLimit = time.Second
	// firstLook and lastLook are the waits between two looks at what is left.
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// attributes make a command the leader of a process group. The kernel kills it if this
// program dies; what the command has started is then left alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ask asks the command and what it has started to end.
func (c *Child) ask() {
	members := c.members() // before the first of them ends, and leaves others without a parent
	c.signalGroup(syscall.SIGTERM)
	for _, p := range members {
		if p.group != c.cmd.Process.Pid {
			p.signal(syscall.SIGTERM)
		}
	}
}

// Kill kills the command, which was started, and whatever it has started, and returns
// when all of it has ended.
func (c *Child) Kill() {
	freeze(c.members) // before the first of them ends, and leaves others without a parent
	c.mu.Lock()
	waited := c.waited
	c.mu.Unlock()
	if !waited || !adopting() {
		c.signalGroup(syscall.SIGKILL) // all that can be found where there is no /proc
	}
	killed(c.members)
}

// KillAll kills what commands have left behind, at the end of the program, and returns
// how many processes that were. What runs in the program's own process group, or was its
// child before the first command (a shell that became this program may have started it),
// is left alone.
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

// freeze stops what find finds until all of it stands still. A process that is killed
// while its parent runs can make the parent start another, and when the parent is
// killed next nothing tells where that one comes from.
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

// killed kills what find finds until that is nothing, for processes that fork may have
// done so since it looked. It returns how many there were.
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

// members are the processes of the command: those in its group, those that carry its
// mark, those that were members before, and what is below them, or in a group or a
// session that one of them has made. What has left its session, its parents and its
// environment before the first look is not told from what other commands have started;
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
	// While a group has members its number is no other process's.
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

// marked reports whether the process has the command's mark in its environment. That of
// another user's process cannot be read, nor could it be killed.
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

// descendants are the processes below this one.
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

// foreign reports whether the process, or one that it is below, was there before the
// first command.
func foreign(all map[int]process, p process) bool {
	for at, known := p, true; known && at.id != own.id; at, known = all[at.parent] {
		if before[at.identity] {
			return true
		}
	}
	return false
}
