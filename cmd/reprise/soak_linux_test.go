package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

const (
	soakQueue       = "orders"
	soakRate        = 100     // messages a second
	soakSize        = 4 << 10 // of a body; at that rate the server's tables in memory are full after some minutes
	soakConcurrency = 10
	soakPrefetch    = 10
	soakLease       = 10 * time.Second
)

// TestSoak runs the real binary: reprise serve, two reprise run and a flaky target, which are
// killed (SIGKILL) and started again, each at random. What was sent must be done or among the
// dead letters in the end; no message may be received again after its delete was
// acknowledged; each second run must have one of the causes that the documentation names, and
// no cause more of them than a kill can cost; and memory must stay flat.
//
// REPRISE_SOAK is how long. Default: 20 s.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasting := lastingOf(t, "REPRISE_SOAK")
	s := newSoak(t, lasting)
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var work sync.WaitGroup
	for _, r := range s.roles {
		work.Go(func() { s.keepKilling(ctx, r) })
	}
	work.Go(func() { s.sendPaced(ctx) })
	work.Go(func() { s.watchMemory(ctx) })
	work.Wait()
	if t.Failed() {
		return
	}
	s.awaitEmpty()
	dead := s.deadLetters()
	s.stopAll()
	s.audit(dead)
	s.reportMemory()
	for _, problem := range s.problems {
		t.Error(problem)
	}
}

// lastingOf is how long a test of a whole system lasts, by an environment variable.
func lastingOf(t *testing.T, variable string) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 20 * time.Second
	}
	lasting, err := time.ParseDuration(text)
	if err != nil || lasting < 10*time.Second {
		t.Fatalf("%s is %q: set it to a duration of at least 10s", variable, text)
	}
	return lasting
}

type soak struct {
	t       *testing.T
	seed    uint64
	lasting time.Duration
	begin   time.Time
	wire    *wire
	notes   string // the target's file
	client  *sqs.Client
	url     *string
	roles   []*role // serve, run a, run b, target

	problems []string // that the audit has found

	serving atomic.Int64 // when the server was last seen to end or to become ready

	mu     sync.Mutex
	sent   []string // keys of messages whose send was acknowledged
	unsure int      // sends whose outcome is unknown
}

// role is one of the processes of the soak, through all of its lives.
type role struct {
	name  string
	ready string // what it prints when it works
	make  func(life int) *exec.Cmd

	mu    sync.Mutex
	lives []*life
}

// life is a process from its start to its end.
type life struct {
	role    string
	number  int
	cmd     *exec.Cmd
	output  output
	ended   chan struct{}
	begin   time.Time
	killed  int64 // from when it was being killed; 0: it was not
	gone    int64 // by when it was
	samples []sample
}

func newSoak(t *testing.T, lasting time.Duration) *soak {
	t.Helper()
	dir := t.TempDir()
	s := &soak{t: t, seed: rand.Uint64(), lasting: lasting, begin: time.Now(), notes: filepath.Join(dir, "attempts")}
	random := rand.New(rand.NewPCG(s.seed, 0))
	server, target := ownAddress(random, 9324), ownAddress(random, 8080)
	s.wire = newWire(server)
	s.client = sqs.New(client(s.wire.endpoint(t, "sender")).Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	s.url = queueURL("http://"+server, soakQueue)
	own := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program(t), args...)
		cmd.Env = environment()
		return cmd
	}
	s.roles = []*role{
		{name: "serve", ready: "queue         ", make: func(int) *exec.Cmd {
			return own("serve", "--addr", server, "--data", filepath.Join(dir, "data"), "--min-free", "0",
				"--queue", soakQueue+",dead-letter="+soakQueue+"-dead,max-receives=1000")
		}},
		{name: "target", make: func(int) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = environment(soakTargetVariable + "=" + target + "," + s.notes)
			return cmd
		}},
	}
	for _, name := range []string{"run-a", "run-b"} {
		endpoint := s.wire.endpoint(t, name)
		s.roles = append(s.roles, &role{name: name, ready: "admin         ", make: func(life int) *exec.Cmd {
			return own("run", "--queue", soakQueue, "--endpoint", endpoint, "--url", "http://"+target, "--admin-addr", "127.0.0.1:0",
				"--header", fmt.Sprintf("X-Runner: %s.%d", name, life), "--lease", soakLease.String(), "--timeout", soakTimeout.String(),
				"--concurrency", strconv.Itoa(soakConcurrency), "--prefetch", strconv.Itoa(soakPrefetch),
				"--retry", "exponential(base=1s,factor=2,max=4s) jitter=full attempts=50")
		}})
	}
	t.Logf("%v, seed %d: %d messages of %d bytes a second", lasting, s.seed, soakRate, soakSize)
	return s
}

// ownAddress is an address of loopback that nobody else uses: its ports stay free between two lives.
func ownAddress(random *rand.Rand, port int) string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 2+random.IntN(250), random.IntN(256), 1+random.IntN(254), port)
}

// keepKilling has a role live again and again, until ctx ends. The last life goes on.
func (s *soak) keepKilling(ctx context.Context, r *role) {
	random := rand.New(rand.NewPCG(s.seed, uint64(r.name[len(r.name)-1])))
	mean := max(s.lasting/12, 4*time.Second)
	killed := false
	for number := 1; ; number++ {
		l := r.bear(s.t, number)
		if l == nil {
			return
		}
		span := time.Duration(random.ExpFloat64() * float64(mean))
		if !killed {
			span = min(span, s.lasting/4) // each is killed once at least
		}
		select {
		case <-ctx.Done():
			return
		case <-l.ended:
			if !s.mayFail(r, l) {
				s.t.Errorf("%s ended by itself: %v\n%s", r.name, l.cmd.ProcessState, l.output.text())
				return
			}
		case <-time.After(span):
			killed, l.killed = true, time.Now().UnixNano()
			_ = l.cmd.Process.Kill() // it has not been waited for
			<-l.ended
			l.gone = time.Now().UnixNano()
		}
		if r.name == "serve" {
			s.serving.Store(time.Now().UnixNano())
		}
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	}
}

// mayFail reports whether a life may have ended by itself: reprise run does so if it finds no
// queue when it starts, and a supervisor starts it again.
func (s *soak) mayFail(r *role, l *life) bool {
	away := time.Since(time.Unix(0, s.serving.Load())) < 30*time.Second
	return strings.HasPrefix(r.name, "run") && !l.output.has(r.ready) && away
}

// bear starts a life of a role.
func (r *role) bear(t *testing.T, number int) *life {
	l := &life{role: r.name, number: number, cmd: r.make(number), ended: make(chan struct{}), begin: time.Now()}
	l.cmd.Stdout, l.cmd.Stderr = &l.output, &l.output
	if err := l.cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { _ = l.cmd.Process.Kill() }) // if it still runs
	go func() {
		defer close(l.ended)
		_ = l.cmd.Wait() // ProcessState tells
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lives = append(r.lives, l)
	return l
}

// name is what X-Runner has.
func (l *life) name() string { return l.role + "." + strconv.Itoa(l.number) }

// last is the life that a role has now.
func (r *role) last() *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lives) == 0 {
		return nil
	}
	return r.lives[len(r.lives)-1]
}

// output is what a process has printed.
type output struct {
	mu      sync.Mutex
	printed bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.printed.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.printed.String()
}

func (o *output) has(text string) bool { return strings.Contains(o.text(), text) }

// sendPaced sends ten at a time. One message of fifty is hopeless.
func (s *soak) sendPaced(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second / soakRate)
	defer tick.Stop()
	padding := strings.Repeat("x", soakSize-soakKey)
	for number := 0; ; {
		in := &sqs.SendMessageBatchInput{QueueUrl: s.url}
		var keys []string
		for i := range 10 {
			key := strconv.Itoa(number)
			if number%50 == 0 {
				key = hopeless + key
			}
			number++
			keys = append(keys, key)
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(fmt.Sprintf("%-*s", soakKey, key) + padding),
			})
		}
		out, err := s.client.SendMessageBatch(context.WithoutCancel(ctx), in)
		s.mu.Lock()
		switch {
		case err != nil: // the server was killed
			s.unsure += len(keys)
		default:
			for _, done := range out.Successful {
				i, _ := strconv.Atoi(*done.Id) // our own
				s.sent = append(s.sent, keys[i])
			}
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitEmpty waits until no message waits, runs or will come again.
func (s *soak) awaitEmpty() {
	s.t.Helper()
	w := &world{t: s.t, client: s.client, endpoint: strings.TrimSuffix(*s.url, "/000000000000/"+soakQueue)}
	left := 0
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if !s.roles[0].last().output.has(s.roles[0].ready) {
			continue
		}
		if left = w.waiting(soakQueue); left == 0 {
			return
		}
		for _, r := range s.roles { // one that found no server has ended
			l := r.last()
			select {
			case <-l.ended:
				r.bear(s.t, l.number+1)
			default:
			}
		}
	}
	for _, r := range s.roles[1:] {
		text := r.last().output.text()
		s.t.Logf("%s printed last:\n%s", r.last().name(), text[max(0, len(text)-2000):])
	}
	s.t.Fatalf("%d messages are still in the queue:\n%s", left, s.inQueue())
}

// inQueue returns the messages of the queue in all states, as the server describes them.
func (s *soak) inQueue() string {
	response, err := http.Get("http://" + s.wire.server + "/admin/v1/queues/" + soakQueue + "/messages")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 8<<10))
	return fmt.Sprint(string(text), err)
}

// deadLetters returns the keys of the dead letters, each as often as it is there.
func (s *soak) deadLetters() map[string]int {
	s.t.Helper()
	url := queueURL("http://"+s.wire.server, soakQueue+"-dead")
	found := make(map[string]int)
	for {
		out, err := s.client.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return found
		}
		for _, m := range out.Messages {
			found[strings.TrimSpace((*m.Body)[:soakKey])]++
		}
	}
}

// stopAll stops the consumers and the server as an operator does.
func (s *soak) stopAll() {
	s.t.Helper()
	for i := range s.roles {
		r := s.roles[len(s.roles)-1-i]
		l := r.last()
		if r.name == "target" {
			_ = l.cmd.Process.Kill()
			<-l.ended
			continue
		}
		if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Fatalf("%s: %v\n%s", r.name, err, l.output.text())
		}
		select {
		case <-l.ended:
		case <-time.After(patience):
			s.t.Fatalf("%s did not stop", r.name)
		}
		if code := l.cmd.ProcessState.ExitCode(); code != 0 {
			s.t.Errorf("%s stopped with code %d:\n%s", r.name, code, l.output.text())
		}
	}
}
