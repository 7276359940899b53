package main_test

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestCrowd lets ten clients of five languages (Go with the library, Python, JavaScript and Java with their SDKs, Perl
// without one) use one durable server at once, and operators beside them, while it is killed and stopped, its disk becomes
// full, and its clock is set forward and back. Each client keeps a log of what it asked for and was told; the audit
// (auditCrowd) holds all logs against what the documentation promises.
//
// REPRISE_CROWD is how long. Without it the test is skipped: its clients need a processor for themselves.
func TestCrowd(t *testing.T) {
	t.Parallel()
	if os.Getenv("REPRISE_CROWD") == "" {
		t.Skip("skipped: its clients need a processor for themselves; make crowd runs this test, and make night")
	}
	lasting := lastingOf(t, "REPRISE_CROWD")
	c := newCrowd(t, lasting)
	c.start(c.begin("start"))
	if !c.await() {
		return
	}
	c.openDoors()
	t.Logf("after %v: the server and %d processes of clients are up", time.Since(c.beginning).Round(time.Second), len(c.doors))
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var work sync.WaitGroup
	seeds := rand.New(rand.NewPCG(c.seed, 2))
	random := func() *rand.Rand { return rand.New(rand.NewPCG(seeds.Uint64(), 0)) }
	for _, d := range c.doors {
		driver := &crowdDriver{c: c, door: d, random: random()}
		work.Go(func() { driver.run(ctx) })
	}
	for i, queues := range [][]string{{crowdOrders, crowdJobs}, {crowdLetters, crowdJobs}} {
		name := "go-" + strconv.Itoa(i+1)
		l := &crowdLibrary{c: c, name: name, recorder: newCrowdRecorder(t, "http://"+c.addr, c.logOf(name)), queues: queues, random: random()}
		work.Go(func() { l.run(ctx) })
	}
	operating, breaking, jumping := random(), random(), random()
	work.Go(func() { c.operate(ctx, operating) })
	work.Go(func() { c.keepBreaking(ctx, breaking) })
	work.Go(func() { c.keepJumping(ctx, jumping) })
	work.Go(func() { c.watchBacklog(ctx) })
	work.Wait()
	if t.Failed() {
		t.Fatalf("seed %d", c.seed)
	}
	c.finish()
}

// crowd is a server, its clients, and what is known of both.
type crowd struct {
	t         *testing.T
	seed      uint64
	mean      time.Duration // between two breaks, and between two jumps
	pause     time.Duration // between two requests of a client
	dir, data string
	disk      string // empty: there is none that can be filled
	addr      string
	program   string
	server    *role
	number    int // of the server's lives
	clock     *int64
	sdk       *sqs.Client
	doors     []*crowdDoor
	logs      map[string]string
	backlog   atomic.Int64
	operated  int
	round     crowdValue // the operator's
	timeout   crowdValue
	beginning time.Time

	mu        sync.Mutex
	breaks    []crowdBreak
	jumps     []crowdJump
	commands  []crowdCommand
	byCommand []*crowdExchange
	counts    map[string]int
}

func newCrowd(t *testing.T, lasting time.Duration) *crowd {
	t.Helper()
	c := &crowd{
		t: t, seed: rand.Uint64(), dir: t.ArtifactDir(), logs: make(map[string]string), counts: make(map[string]int), beginning: time.Now(),
		round: crowdValue{permitted: []string{""}}, timeout: crowdValue{permitted: []string{"30"}},
		mean: min(max(lasting/10, 2*time.Second), 10*time.Second), pause: 50 * time.Millisecond,
	}
	t.Logf("%v, seed %d", lasting, c.seed)
	c.data = filepath.Join(c.dir, "data")
	disk := t.TempDir()
	if err := mountSmall(t, disk, crowdDisk); err != nil {
		t.Logf("left out: full disks: %v", err)
	} else {
		c.disk, c.data = disk, filepath.Join(disk, "data")
	}
	c.addr = ownAddress(rand.New(rand.NewPCG(c.seed, 1)), 9324)
	c.sdk = sqs.New(client("http://"+c.addr).Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	clock := filepath.Join(c.dir, "clock")
	c.clock = crowdClock(t, clock)
	c.program = crowdProgram(t, c.dir)
	c.server = &role{name: "serve", ready: "queue         ", make: func(int) *exec.Cmd {
		cmd := exec.Command(c.program, "serve", "--addr", c.addr, "--data", c.data, "--min-free", strconv.Itoa(c.minFree()),
			"--queue", crowdOrders+",VisibilityTimeout=5", "--queue", crowdLetters+",VisibilityTimeout=5,dead-letter="+crowdDead+",max-receives="+strconv.Itoa(crowdReceives),
			"--queue", crowdSide, "--queue", crowdJobs+",VisibilityTimeout=5", "--queue", crowdBin)
		cmd.Env = environment("REPRISE_CROWD_CLOCK=" + clock)
		return cmd
	}}
	return c
}

// note changes what is known.
func (c *crowd) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *crowd) logOf(client string) string {
	c.logs[client] = filepath.Join(c.dir, client+".log")
	return c.logs[client]
}

// openDoors starts the clients that are processes, two of each language that is there.
func (c *crowd) openDoors() {
	for _, l := range crowdLanguages(c.t, c.dir) {
		if l.why != nil {
			c.t.Logf("left out: the clients of %s: %v", l.name, l.why)
			continue
		}
		for i := range 2 {
			name := l.name + "-" + strconv.Itoa(i+1)
			c.doors = append(c.doors, openCrowdDoor(c.t, l, name, "http://"+c.addr, c.logOf(name)))
		}
	}
	if len(c.doors) == 0 {
		c.t.Skip("skipped: none of Python, JavaScript, Java and Perl is there with what its clients need")
	}
}

// watchBacklog reads how many messages there are.
func (c *crowd) watchBacklog(ctx context.Context) {
	for pausedFor(ctx, time.Second) {
		if n, err := c.waiting(); err == nil {
			c.backlog.Store(int64(n))
		}
	}
}

// waiting is how many messages the queues have that the clients use.
func (c *crowd) waiting() (total int, _ error) {
	for _, queue := range []string{crowdOrders, crowdLetters, crowdDead, crowdSide, crowdJobs} {
		url := c.url(queue)
		out, err := c.sdk.GetQueueAttributes(c.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"", "NotVisible", "Delayed"} {
			n, err := strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"+name])
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// finish empties the queues, ends everything, and has the audit.
func (c *crowd) finish() {
	c.t.Helper()
	for _, d := range c.doors {
		if err := d.close(); err != nil {
			c.t.Error(err)
		}
	}
	left, err := c.waiting()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("after %v: %d messages to drain", time.Since(c.beginning).Round(time.Second), left)
	c.drain()
	index, l := c.begin("stop"), c.server.last()
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it has not been waited for
	if !c.ends(l, 0) {
		return
	}
	c.breaks[index].to = time.Now().UnixNano()
	if checked := c.command("check", c.data); checked.code != 0 {
		c.t.Errorf("the data directory is not sound: %s", checked.output)
	}
	record := crowdRecord{
		exchanges: c.byCommand, breaks: c.breaks, jumps: c.jumps, commands: c.commands, receives: map[string]int{crowdLetters: crowdReceives},
		routes: map[string][]string{crowdLetters: {crowdDead, crowdSide}, crowdSide: {crowdLetters}, crowdDead: {crowdLetters}},
	}
	for _, name := range slices.Sorted(maps.Keys(c.logs)) {
		some, err := readCrowdFile(name, c.logs[name])
		if err != nil {
			c.t.Fatal(err)
		}
		record.exchanges = append(record.exchanges, some...)
	}
	began := time.Now()
	problems := auditCrowd(record)
	c.t.Logf("the audit took %v", time.Since(began).Round(time.Millisecond))
	c.report(record, left)
	for i, problem := range problems {
		if i == 100 {
			c.t.Errorf("and %d more problems", len(problems)-i)
			break
		}
		c.t.Error(problem)
	}
}

// drain receives and deletes all that is left: by a jump of the clock all leases and delays are over, also of messages that
// a consumer has hidden for as long as it can, twelve hours.
func (c *crowd) drain() {
	c.t.Helper()
	c.jump(13 * 3600)
	r := newCrowdRecorder(c.t, "http://"+c.addr, c.logOf("drain"))
	deadline := time.Now().Add(patience)
	for left := 1; left > 0; {
		for _, queue := range []string{crowdOrders, crowdLetters, crowdDead, crowdSide, crowdJobs} {
			for c.drainSome(r, c.url(queue)) {
				if time.Now().After(deadline) {
					c.t.Fatalf("%s still has messages", queue)
				}
			}
		}
		var err error
		if left, err = c.waiting(); err != nil || time.Now().After(deadline) {
			c.t.Fatalf("%d messages are left that no receive gets: %v", left, err)
		}
	}
}

// drainSome deletes up to ten messages; false: none came.
func (c *crowd) drainSome(r *crowdRecorder, url string) bool {
	c.t.Helper()
	out, err := r.ReceiveMessage(c.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 600, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i, m := range out.Messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	if len(in.Entries) == 0 {
		return false
	}
	if out, err := r.DeleteMessageBatch(c.t.Context(), in); err != nil || len(out.Failed) > 0 {
		c.t.Fatalf("deleting what is left: %v, %+v", err, out)
	}
	return true
}

// report prints what has happened, and fails if that was too little.
func (c *crowd) report(record crowdRecord, left int) {
	type sums struct{ requests, failed, sent, received, deleted int }
	languages := make(map[string]*sums)
	var all sums
	for _, x := range record.exchanges {
		language, _, _ := strings.Cut(x.client, "-")
		if languages[language] == nil {
			languages[language] = &sums{}
		}
		for _, s := range []*sums{languages[language], &all} {
			s.requests++
			for _, e := range x.entries() {
				_, acked := x.answer(e.ID)
				switch {
				case !acked:
					s.failed++
				case strings.HasPrefix(x.action, "SendMessage"):
					s.sent++
				case strings.HasPrefix(x.action, "DeleteMessage"):
					s.deleted++
				case x.action == "ReceiveMessage":
					s.received += len(x.reply.Messages)
				}
			}
		}
	}
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		s := languages[language]
		c.t.Logf("%-10s %7d requests: %6d sends acknowledged, %6d messages received, %6d deletes acknowledged, %5d failed or refused", language, s.requests, s.sent, s.received, s.deleted, s.failed)
	}
	c.t.Logf("%d sends acknowledged, %d requests, %d messages received, %d left at the end", all.sent, all.requests, all.received, left)
	forward := 0
	for _, j := range c.jumps {
		if j.by > 0 {
			forward++
		}
	}
	c.counts["jumps of the clock forward"], c.counts["jumps of the clock back"] = forward, len(c.jumps)-forward
	for _, what := range slices.SortedFunc(maps.Keys(c.counts), cmp.Compare[string]) {
		c.t.Logf("%-30s %5d", what, c.counts[what])
	}
	for _, what := range []string{"kills", "stops", "jumps of the clock back", "command backup"} {
		if c.counts[what] == 0 {
			c.t.Errorf("no %s: nothing was tested", what)
		}
	}
	if least := int(time.Since(c.beginning).Seconds()); all.sent < least || all.received < least {
		c.t.Errorf("there was too little load to test anything: want %d messages", least)
	}
}
