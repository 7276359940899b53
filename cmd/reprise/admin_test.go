//go:build unix

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// controlled is a target whose posts the test counts and can have fail.
type controlled struct {
	*httptest.Server
	posts  atomic.Int32
	broken atomic.Bool
}

func newControlled(t *testing.T) *controlled {
	c := new(controlled)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.posts.Add(1)
		if c.broken.Load() {
			http.Error(w, "closed for repairs", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// control runs a command against a process, which must succeed, and returns the consumer that it
// prints.
func control(t *testing.T, admin string, args ...string) map[string]any {
	t.Helper()
	got := reprise(t, "", append(args, "--admin", admin, "-o", "json")...)
	rows := records(t, got.stdout)
	if got.code != 0 || len(rows) != 1 {
		t.Fatalf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
	}
	if c, isDone := rows[0]["consumer"].(map[string]any); isDone {
		return c
	}
	return rows[0]
}

// awaitConsumer waits until a consumer is as asked.
func awaitConsumer(t *testing.T, admin, queue string, is func(map[string]any) bool) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c := control(t, admin, "consumers", queue)
		if is(c) {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("the consumer stays %v", c)
		}
	}
}

func deleted(c map[string]any) float64 { return c["counts"].(map[string]any)["deleted"].(float64) }

// TestControl: what an operator sees and does to a running process: a pause holds, a resume works on,
// numbers change, and an outage is explained and probed by hand.
func TestControl(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	endpoint := orders(t)
	p, admin := runQueue(t, endpoint, "--url", target.URL, "--retry", "constant(1h) jitter=none attempts=50")
	if c := control(t, admin, "pause", "orders"); c["paused"] != true {
		t.Errorf("after pause: %v", c)
	}
	sendOrders(t, endpoint, 20)
	if n := target.posts.Load(); n != 0 {
		t.Errorf("%d posts while it was paused", n)
	}
	if n := inQueue(t, endpoint, "orders"); n != 20 {
		t.Errorf("%d messages while it was paused", n)
	}
	if c := control(t, admin, "concurrency", "orders", "3"); c["concurrency"] != 3.0 {
		t.Errorf("after concurrency: %v", c)
	}
	if c := control(t, admin, "rate", "orders", "100"); c["rate"] != 100.0 {
		t.Errorf("after rate: %v", c)
	}
	control(t, admin, "resume", "orders")
	awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return deleted(c) == 20 })
	control(t, admin, "rate", "orders", "none")

	target.broken.Store(true)
	sendOrders(t, endpoint, 60)
	c := awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return c["breakers"] != nil })
	b := c["breakers"].([]any)[0].(map[string]any)
	if b["state"] != "open" || !strings.Contains(fmt.Sprint(b["problem"]), "closed for repairs") || b["since"] == nil || b["next_probe"] == nil {
		t.Errorf("the breaker %v", b)
	}
	awaitThat(t, "the table shows the outage, between two probes", func() bool {
		table := reprise(t, "", "consumers", "--admin", admin, "-o", "table").stdout
		return strings.Contains(table, "the breaker is open: outage since ") && strings.Contains(table, " held; next probe in ") && strings.Contains(table, "or now by reprise probe orders") &&
			strings.Contains(table, "in backoff: reprise wake orders starts")
	})
	target.broken.Store(false)
	got := reprise(t, "", "probe", "--all", "--admin", admin)
	if got.code != 0 || !strings.Contains(got.stderr, "orders: 1 breaker probing") && !strings.Contains(got.stderr, "orders: 0 breakers probing") {
		t.Errorf("probe: %+v", got)
	}
	awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return c["breakers"] == nil })
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		control(t, admin, "wake", "orders") // those that failed wait for an hour
		if c := control(t, admin, "consumers", "orders"); deleted(c) == 80 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all were worked off: %v", control(t, admin, "consumers", "orders"))
		}
	}
	p.signal(syscall.SIGTERM)
	code, output := p.wait()
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, action := range []string{"pause", "resume", "concurrency", "rate", "wake", "probe"} {
		if !strings.Contains(output, `msg="admin action" action=`+action+" queue="+endpoint+"/000000000000/orders with=") {
			t.Errorf("the log has no line about %s", action)
		}
	}
}

// TestWakeOneMessage: one message of two that wait for their retry is woken by its id, and one that does not wait is
// named as such.
func TestWakeOneMessage(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	target.broken.Store(true)
	p := start(t, "up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--url", target.URL, "--retry", "constant(1h) jitter=none attempts=9")
	endpoint := p.await("SQS endpoint  ")
	sendOrders(t, endpoint, 2)
	awaitConsumer(t, endpoint, "orders", func(c map[string]any) bool { return c["in_backoff"] == 2.0 && c["settling"] == 0.0 })
	hidden := reprise(t, "", "peek", "orders", "--hidden", "-o", "json", "--admin", endpoint, "--endpoint", endpoint)
	var ids []string
	for line := range strings.Lines(hidden.stdout) {
		var m struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		ids = append(ids, m.ID)
	}
	if len(ids) != 2 {
		t.Fatalf("peek: %+v", hidden)
	}
	const unknown = "00000000-0000-4000-8000-000000000000"
	got := reprise(t, "", "wake", "orders", "--id", ids[1], "--id", unknown, "--admin", endpoint)
	if got.code == 0 || !strings.Contains(got.stderr, "orders: woke 1 message") || !strings.Contains(got.stderr, "not woken: "+unknown+":") {
		t.Errorf("wake: %+v", got)
	}
	awaitConsumer(t, endpoint, "orders", func(c map[string]any) bool {
		counts := c["counts"].(map[string]any)
		return counts["woken"] == 1.0 && counts["attempts"] == 3.0
	})
	if got := reprise(t, "", "wake", "--all", "--id", ids[0], "--admin", endpoint); got.code != 2 || !strings.Contains(got.stderr, "messages of one queue") {
		t.Errorf("wake --all --id: %+v", got)
	}
}

// TestControlOfKeys: one key is paused, the others are worked off.
func TestControlOfKeys(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	endpoint := orders(t)
	_, admin := runQueue(t, endpoint, "--url", target.URL, "--outage-key", "attribute:tenant")
	control(t, admin, "pause", "orders", "--key", "acme")
	for i := range 10 {
		got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "--attribute", "tenant="+[]string{"acme", "bolt"}[i%2], fmt.Sprint(i))
		if got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	c := awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return deleted(c) == 5 })
	if b := c["breakers"].([]any)[0].(map[string]any); b["key"] != "acme" || b["paused"] != true || b["state"] != "closed" {
		t.Errorf("the key %v", b)
	}
	control(t, admin, "resume", "orders", "--key", "acme")
	awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return deleted(c) == 10 })
}

// TestControlByUnixSocket, which needs no token, and by TCP with one.
func TestControlByUnixSocket(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	socket := "unix:" + filepath.Join(t.TempDir(), "admin.sock")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint), "run", "--queue", "orders", "--exec", "true", "--admin-addr", socket)
	if at := p.await("admin         "); at != socket+"/health, /metrics, /admin/v1/" {
		t.Errorf("it prints %s", at)
	}
	if c := control(t, socket, "pause", "orders"); c["paused"] != true {
		t.Errorf("by socket: %v", c)
	}
	_, admin := runQueue(t, endpoint, "--exec", "true", "--admin-token", "file:"+token)
	if got := reprise(t, "", "consumers", "--admin", admin); got.code != 1 || !strings.Contains(got.stderr, "asks for its token") {
		t.Errorf("without the token: %+v", got)
	}
	if got := reprise(t, "", "consumers", "--admin", admin, "--admin-token", "file:"+token); got.code != 0 || !strings.Contains(got.stdout, `"queue":"orders"`) {
		t.Errorf("with the token: %+v", got)
	}
	_, readOnly := runQueue(t, endpoint, "--exec", "true", "--admin-read-only")
	if got := reprise(t, "", "pause", "orders", "--admin", readOnly); got.code != 1 || !strings.Contains(got.stderr, "start it without --admin-read-only") {
		t.Errorf("read-only: %+v", got)
	}
}

// TestControlOfAServer: up and serve have the API at their address and in the data directory, with
// the rows of reprise queues.
func TestControlOfAServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, "up", "--addr", "127.0.0.1:0", "--data", data, "--queue", "orders", "--exec", "true")
	endpoint := p.await("SQS endpoint")
	p.await("msg=consuming")
	for _, admin := range []string{endpoint, "unix:" + filepath.Join(data, "control.sock")} {
		if c := control(t, admin, "consumers"); c["queue"] != "orders" || c["health"] != "ok" {
			t.Errorf("%s: %v", admin, c)
		}
	}
	response, err := http.Get(endpoint + "/admin/v1/queues")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var reply struct{ Queues []json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(reprise(t, "", "queues", "--endpoint", endpoint).stdout), "\n")
	if len(reply.Queues) != 2 || len(rows) != 2 {
		t.Fatalf("%d queues, and the command prints %q", len(reply.Queues), rows)
	}
	for i := range rows {
		if string(reply.Queues[i]) != rows[i] {
			t.Errorf("the API has %s, the command prints %s", reply.Queues[i], rows[i])
		}
	}
	if status, text := fetch(t, http.DefaultClient, endpoint+"/admin/v1/queues/orders-dead/messages"); status != 200 || !strings.HasSuffix(strings.TrimSpace(text), `,"messages":[],"looked":0}`) {
		t.Errorf("messages: %d %s", status, text)
	}
	_, keyed := serve(t, "--access-key", "AKID", "--secret", "s3cret")
	if got := reprise(t, "", "consumers", "--admin", keyed); got.code != 1 || !strings.Contains(got.stderr, "start the process with --admin-token") {
		t.Errorf("a server with keys: %+v", got)
	}
	_, without := serve(t, "--no-admin")
	if got := reprise(t, "", "consumers", "--admin", without); got.code != 1 || !strings.Contains(got.stderr, "pass the address of a reprise process") {
		t.Errorf("a server without: %+v", got)
	}
	_, bare := serve(t)
	if got := reprise(t, "", "pause", "--all", "--admin", bare); got.code != 1 || !strings.Contains(got.stderr, "consumes no queue") {
		t.Errorf("a server without consumers: %+v", got)
	}
}

// TestQueuesOfARun: those that are consumed, with the dead-letter queues that they name.
func TestQueuesOfARun(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead", "--queue", "unrelated", "--queue", "lane")
	_, admin := runQueue(t, endpoint, "--exec", "true", "--retry-lane", "lane")
	status, text := fetch(t, http.DefaultClient, admin+"/admin/v1/queues")
	var reply struct{ Queues []struct{ Name string } }
	if err := json.Unmarshal([]byte(text), &reply); status != 200 || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	var names []string
	for _, q := range reply.Queues {
		names = append(names, q.Name)
	}
	if fmt.Sprint(names) != "[lane orders orders-dead]" {
		t.Errorf("queues %v", names)
	}
}

// TestLiveEvents: a stream tells of each attempt within a moment, outlives the server's write timeout
// where it is quiet, and does not hold up the stop.
func TestLiveEvents(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	endpoint := orders(t)
	p, admin := runQueue(t, endpoint, "--url", target.URL)
	response, err := http.Get(admin + "/admin/v1/events?queue=orders&type=attempt")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	sendOrders(t, endpoint, 3)
	lines := bufio.NewScanner(response.Body)
	seen := 0
	for seen < 3 && lines.Scan() {
		if text, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
			if e := records(t, text)[0]; e["queue"] != "orders" || e["outcome"] != "delete" || e["attempt"] != 1.0 {
				t.Errorf("event %v", e)
			}
			seen++
		}
	}
	if seen != 3 {
		t.Errorf("%d events of 3", seen)
	}
	began := time.Now()
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 || strings.Contains(output, "cutting off") {
		t.Errorf("exit code %d after %v:\n%s", code, time.Since(began), output)
	}
	for lines.Scan() { // to its end, which comes with the process's
	}
}

// TestTail: each attempt is a line, as it ends, until Ctrl-C.
func TestTail(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	target.broken.Store(true)
	endpoint := orders(t)
	p, admin := runQueue(t, endpoint, "--url", target.URL, "--outage", "off", "--retry", "constant(1h) jitter=none attempts=9")
	table, lines := start(t, "tail", "--admin", admin, "-o", "table"), start(t, "tail", "orders", "--type", "settled", "--admin", admin)
	// Neither prints anything before the first event: send until both have begun.
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			sendOrders(t, endpoint, 1)
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	if line := table.await(" orders "); !strings.Contains(line, "attempt 1") || !strings.Contains(line, ": retry, due ") || !strings.Contains(line, "closed for repairs") {
		t.Errorf("the table has %s", line)
	}
	if e := records(t, "{"+lines.await("{"))[0]; e["event"] != "settled" || e["queue"] != "orders" || e["outcome"] != "retry" {
		t.Errorf("an event %v", e)
	}
	close(stop)
	sending.Wait()
	table.signal(os.Interrupt)
	if code, output := table.wait(); code != 0 {
		t.Errorf("after Ctrl-C: %d, %s", code, output)
	}
	p.signal(syscall.SIGTERM)
	p.wait()
	if code, output := lines.wait(); code != 1 || !strings.Contains(output, "has ended the stream") {
		t.Errorf("after the end of the process: %d, %s", code, output)
	}
}

// TestControlMistakes are named, with the remedy.
func TestControlMistakes(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	_, admin := runQueue(t, endpoint, "--exec", "true")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pause"}, 2, "pass --all"},
		{[]string{"pause", "orders", "--all"}, 2, "pass --all"},
		{[]string{"pause", "absent"}, 5, `does not consume queue "absent", but orders`},
		{[]string{"pause", "orders", "--key", "acme"}, 1, "set --outage-key"},
		{[]string{"concurrency", "orders"}, 2, "accepts 2 arg"},
		{[]string{"concurrency", "orders", "many"}, 2, `NUMBER is "many"`},
		{[]string{"concurrency", "orders", "0"}, 2, "reprise pause orders"},
		{[]string{"concurrency", "orders", "100001"}, 1, "reprise: a concurrency of 100001 is out of range"},
		{[]string{"rate", "orders", "-1"}, 2, "unknown shorthand flag"},
		{[]string{"rate", "orders", "0"}, 2, "or none for no limit"},
		{[]string{"rate", "orders", "NaN"}, 2, "or none for no limit"},
		{[]string{"rate", "orders", "1e9"}, 1, "out of range"},
		{[]string{"tail", "--type", "x"}, 1, "type is"},
		{[]string{"consumers", "absent"}, 5, `does not consume queue "absent"`},
		{[]string{"consumers", "--admin-token", "0123456789abcdef"}, 2, "pass file:PATH or env:VARIABLE, not the secret itself"},
		{[]string{"consumers", "--admin", "ftp://x"}, 2, "unix:/run/reprise/admin.sock"},
		{[]string{"consumers", "--admin", "http://127.0.0.1:1"}, 1, "is one running?"},
		{[]string{"consumers", "--admin", "unix:/nonexistent/s"}, 1, "no process answers at unix:/nonexistent/s"},
		{[]string{"run", "--queue", "orders", "--endpoint", endpoint, "--exec", "true", "--admin-token", "file:/dev/null"}, 2, "empty"},
		{[]string{"run", "--queue", "orders", "--endpoint", endpoint, "--exec", "true", "--admin-token", "env:SHORT"}, 2, "at least 16"},
	} {
		args := test.args
		if args[0] != "run" && !strings.Contains(fmt.Sprint(args), "--admin ") {
			args = append(args, "--admin", admin)
		}
		p := startIn(t, environment("SHORT=secret"), args...)
		if code, output := p.wait(); code != test.code || !strings.Contains(output, test.want) {
			t.Errorf("%q: exit code %d, %s; want %d and %q", args, code, output, test.code, test.want)
		}
	}
}

// TestWakeSaysWhatIsLeft: where copies are left to be retried when due, wake does not say that no message waits.
func TestWakeSaysWhatIsLeft(t *testing.T) {
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/admin/v1/consumers/orders/wake" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"consumer":{"queue":"orders","url":"http://localhost/000000000000/orders"},"copies_left":3}`)
	}))
	defer process.Close()
	got := reprise(t, "", "wake", "orders", "--admin", process.URL)
	if got.code != 0 || !strings.Contains(got.stderr, "orders: 3 copies left to be retried when due") || strings.Contains(got.stderr, "no messages to wake") {
		t.Errorf("%+v", got)
	}
}
