package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const (
	crowdDisk    = 192 // MiB
	crowdMinFree = 32  // MiB, of the server's --min-free
)

// crowdProgram builds the program with a clock that a test can set, as a machine's: the server reads it in place of
// time.Now. A server with a journal refuses to have its own time moved, since its journal would have times of the future.
func crowdProgram(t *testing.T, dir string) string {
	t.Helper()
	overlay := map[string]string{}
	write := func(path, text string) {
		file := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[path] = file
	}
	folder, err := filepath.Abs("../../sqsserver")
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, name := range []string{"clock.go", "open.go", "server.go"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		changed += strings.Count(string(text), "time.Now()")
		write(filepath.Join(folder, name), strings.ReplaceAll(string(text), "time.Now()", "machineNow()"))
	}
	if changed < 5 {
		t.Fatalf("the server reads the machine's clock at %d places in these files: this test knows others", changed)
	}
	text, err := os.ReadFile("testdata/crowd/machinenow.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, "machinenow.go"), string(text))
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	write("overlay.json", string(list))
	program := filepath.Join(dir, "reprise-crowd")
	if out, err := exec.Command("go", "build", withoutCommit, "-overlay", overlay["overlay.json"], "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return program
}

// crowdClock makes the file by which the clock of the server is set, and returns it and the seconds in it.
func crowdClock(t *testing.T, file string) *int64 {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	shared, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(shared) })
	return (*int64)(unsafe.Pointer(&shared[0])) //nolint:gosec // G103: it is shared with the server
}

// jump sets the clock of the server.
func (c *crowd) jump(seconds int64) {
	from := time.Now().UnixNano()
	atomic.AddInt64(c.clock, seconds)
	c.note(func() {
		c.jumps = append(c.jumps, crowdJump{from, time.Now().UnixNano(), seconds * int64(time.Second)})
	})
}

// keepJumping sets the clock at random, forward and back, by minutes now and then.
func (c *crowd) keepJumping(ctx context.Context, random *rand.Rand) {
	for i := 0; ; i++ {
		if !pausedFor(ctx, time.Duration((0.5+random.Float64())*float64(c.mean))) {
			return
		}
		switch draw := random.IntN(20); {
		case i == 0, draw < 9 && i != 1:
			c.jump(1 + random.Int64N(20))
		case draw == 9 && i != 1:
			c.jump(int64(dedupWindow/time.Second) + random.Int64N(30))
		default:
			c.jump(-1 - random.Int64N(8))
		}
	}
}

// pausedFor waits; false: ctx has ended.
func pausedFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// keepBreaking has the server live again and again until ctx ends, and ends its lives in one way and the other. The last
// life goes on.
func (c *crowd) keepBreaking(ctx context.Context, random *rand.Rand) {
	acts := []func(context.Context, *rand.Rand){c.kill, c.stop, c.kill}
	if c.disk != "" {
		acts = append(acts, c.fill, c.lower)
	}
	order := random.Perm(len(acts)) // each once, and then at random
	for i := 0; ; i++ {
		if !c.await() || !pausedFor(ctx, time.Duration((0.5+random.Float64())*float64(c.mean))) {
			return
		}
		act := acts[random.IntN(len(acts))]
		if i < len(order) {
			act = acts[order[i]]
		}
		act(ctx, random)
	}
}

// begin notes that the server is not up.
func (c *crowd) begin(kind string) int {
	index := 0
	c.note(func() {
		index = len(c.breaks)
		c.breaks = append(c.breaks, crowdBreak{kind: kind, from: time.Now().UnixNano(), to: 1<<63 - 1})
	})
	return index
}

// start starts the server, until it is up. It can be in use by a backup that was being made when it was killed.
func (c *crowd) start(index int) {
	for deadline := time.Now().Add(patience); ; {
		c.number++
		l := c.server.bear(c.t, c.number)
		if l == nil {
			return
		}
		for !l.output.has(c.server.ready) && !hasEnded(l) {
			if time.Sleep(5 * time.Millisecond); time.Now().After(deadline) {
				c.t.Errorf("the server was never up:\n%s", l.output.text())
				return
			}
		}
		if !hasEnded(l) {
			c.note(func() { c.breaks[index].to = time.Now().UnixNano() })
			return
		}
		if !l.output.has("in use by another process") || time.Now().After(deadline) {
			c.t.Errorf("the server did not start: %v\n%s", l.cmd.ProcessState, l.output.text())
			return
		}
		c.count("starts that a backup prevented")
	}
}

func hasEnded(l *life) bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// await reports whether the server is up, as it should be.
func (c *crowd) await() bool {
	l := c.server.last()
	if l == nil || !hasEnded(l) {
		return l != nil && !c.t.Failed()
	}
	c.t.Errorf("the server ended by itself: %v\n%s", l.cmd.ProcessState, l.output.text())
	return false
}

func (c *crowd) kill(_ context.Context, random *rand.Rand) {
	index, l := c.begin("kill"), c.server.last()
	_ = l.cmd.Process.Kill() // it has not been waited for
	<-l.ended
	c.count("kills")
	if random.IntN(3) == 0 { // and once more while it starts
		c.number++
		if l := c.server.bear(c.t, c.number); l != nil {
			time.Sleep(time.Duration(random.Int64N(int64(80 * time.Millisecond))))
			_ = l.cmd.Process.Kill() // it may have ended
			<-l.ended
			c.count("kills while it started")
		}
	}
	time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	c.start(index)
}

func (c *crowd) stop(_ context.Context, random *rand.Rand) {
	index, l := c.begin("stop"), c.server.last()
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it has not been waited for
	if !c.ends(l, 0) {
		return
	}
	c.count("stops")
	time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	c.start(index)
}

// ends waits for the server's end, with an exit code.
func (c *crowd) ends(l *life, want int) bool {
	select {
	case <-l.ended:
	case <-time.After(patience):
		c.t.Errorf("the server did not end:\n%s", l.output.text())
		return false
	}
	if code := l.cmd.ProcessState.ExitCode(); code != want {
		c.t.Errorf("the server ended with code %d, want %d:\n%s", code, want, l.output.text())
		return false
	}
	return true
}

// fill fills the disk. The server ends with the first write that fails, says why, and starts when there is room again.
// While it refuses sends, what it writes of the rest may fit into files that it has.
func (c *crowd) fill(_ context.Context, _ *rand.Rand) {
	index, l := c.begin("full"), c.server.last()
	remove := c.ballast(0)
	for end := time.Now().Add(10 * time.Second); !hasEnded(l) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	remove()
	if !hasEnded(l) { // it can have failed and be about to end
		c.regain(index)
	}
	if !hasEnded(l) {
		c.count("full disks that the server outlived")
		return
	}
	if !c.ends(l, 4) {
		return
	}
	if !containsAll(l.output.text(), "no space left", "nothing that was acknowledged is lost") {
		c.t.Errorf("the server ended without naming the full disk:\n%s", l.output.text())
	}
	c.count("full disks")
	c.start(index)
}

// lower leaves too little room for sends for some seconds: the rest goes on.
func (c *crowd) lower(ctx context.Context, random *rand.Rand) {
	if c.minFree() == 0 {
		c.fill(ctx, random) // this life takes sends until the disk is full
		return
	}
	index := c.begin("low")
	remove := c.ballast(crowdMinFree << 19) // half of what the server wants
	pausedFor(ctx, time.Second+time.Duration(random.Int64N(int64(3*time.Second))))
	c.count("nearly full disks")
	remove()
	c.regain(index)
}

// regain waits until the server has noticed that there is room.
func (c *crowd) regain(index int) {
	time.Sleep(5 * time.Second)
	c.note(func() { c.breaks[index].to = time.Now().UnixNano() })
}

// minFree is the --min-free of the server's life: every second one has none.
func (c *crowd) minFree() int { return c.number % 2 * crowdMinFree }

// ballast takes all of the disk but for so many bytes.
func (c *crowd) ballast(left int64) (remove func()) {
	file := filepath.Join(c.disk, "ballast")
	out, err := os.Create(file)
	if err != nil {
		c.t.Error(err)
		return func() {}
	}
	defer out.Close()
	var room syscall.Statfs_t
	for chunk := make([]byte, 1<<20); ; {
		if err := syscall.Statfs(c.disk, &room); err != nil {
			c.t.Error(err)
			break
		}
		free := int64(room.Bavail)*room.Bsize - left //nolint:gosec // G115: a small disk
		if free <= 0 {
			break
		}
		if _, err := out.Write(chunk[:min(free, int64(len(chunk)))]); err != nil {
			break // full, which it shall be
		}
	}
	return func() {
		if err := os.Remove(file); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *crowd) count(what string) { c.note(func() { c.counts[what]++ }) }

func (c *crowd) url(queue string) string {
	return fmt.Sprintf("http://%s/000000000000/%s", c.addr, queue)
}
