package children

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity tells a process from an earlier one that had its number.
type identity struct {
	id    int
	began string // the time, as the kernel counts it
}

// members are processes of one command.
type members map[identity]bool

// process is a process as /proc describes it.
type process struct {
	identity
	parent, group, session int
	dead                   bool // a zombie: its parent has not waited for it yet
	stopped                bool // by a signal or a tracer, so that it can start nothing
}

// processes returns all processes by their numbers.
func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]process, len(entries))
	for _, entry := range entries {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := look(id); ok {
				all[id] = p
			}
		}
	}
	return all
}

// The fields of /proc/PID/stat that follow the program's name: see proc_pid_stat(5).
const (
	fieldState = iota
	fieldParent
	fieldGroup
	fieldSession
	fieldBegan = 19
)

// look returns the process with the number id, if there is one.
func look(id int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return process{}, false
	}
	_, text, _ = cutLast(text, ')') // the name may have any characters
	fields := bytes.Fields(text)
	if len(fields) <= fieldBegan {
		return process{}, false
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(string(fields[field])) // the kernel has written it
		return n
	}
	state := fields[fieldState][0]
	return process{
		identity: identity{id, string(fields[fieldBegan])},
		parent:   number(fieldParent), group: number(fieldGroup), session: number(fieldSession),
		dead:    state == 'Z' || state == 'X',
		stopped: state == 'T' || state == 't',
	}, true
}

func cutLast(text []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, sep)
	if i < 0 {
		return nil, nil, false
	}
	return text[:i], text[i+1:], true
}

// signal signals the process, and reports whether it existed and could be signalled. It never
// reaches another process that has been given its number.
func (p process) signal(signal syscall.Signal) bool {
	handle, err := os.FindProcess(p.id) // on Linux a pidfd
	if err != nil {
		return false
	}
	defer handle.Release() //nolint:errcheck // there is nothing to lose
	if now, ok := look(p.id); !ok || now.identity != p.identity {
		return false
	}
	return handle.Signal(signal) == nil
}

// childIDs returns the numbers of this process's children, including those that it has
// inherited from parents that have ended.
func childIDs() []int {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 { // a kernel without these files
		var ids []int
		for id, p := range processes() {
			if p.parent == own.id {
				ids = append(ids, id)
			}
		}
		return ids
	}
	var ids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range bytes.Fields(text) {
			if id, err := strconv.Atoi(string(field)); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
