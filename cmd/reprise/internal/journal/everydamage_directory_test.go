package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// holdings are all that a server can serve, as text, one queue, task or message a line.
type holdings []string

// directory is a data directory of a server, as a crash leaves it.
type directory struct {
	disk *vfs.MemFS
	want holdings

	// before are what the server could serve after each action whose records are in the newest log
	// alone, and want is the last of them: that log may end early.
	before []holdings
}

// writeDirectory has servers fill a directory with queues of all kinds, messages in every state,
// tags, tasks, and traces of what is gone. The directory has tables, bodies beside them, and two
// logs that are not yet in tables.
func writeDirectory(t *testing.T, seed uint64) directory {
	t.Helper()
	disk := vfs.NewCrashableMem()
	s, _ := openServer(t, disk, seed)
	d := &driver{t: t, Server: s}
	d.create("orders-dead", nil)
	d.create("orders", map[string]string{
		"RedrivePolicy":     `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":1}`,
		"VisibilityTimeout": "43200",
	})
	d.create("steps.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "43200"})
	d.create("gone", nil)
	d.create("moved", nil)
	d.must(d.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: d.url("orders"), Tags: map[string]string{"team": "shipping", "cost": "7"}}))
	d.round(1)
	d.must(d.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: d.url("gone")}))
	_, err := d.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{SourceArn: d.arn("orders-dead"), DestinationArn: d.arn("moved")})
	d.must(err)
	for tasks := ""; !strings.Contains(tasks, "COMPLETED"); {
		tasks = fmt.Sprint(d.tasks("orders-dead"))
	}
	d.round(2)
	d.must(s.Close()) // writes tables

	s, _ = openServer(t, disk, seed+1)
	d.Server = s
	d.round(3)
	d.must(s.Close()) // writes more tables

	tables := newGate()
	j := open(t, journal.WithMemTable(journal.Options{FS: diskfault.Wrap(disk, func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && kindOf(op.Path) == "sst" {
			tables.pass()
		}
		return nil
	})}, 16<<10))
	s, err = sqsserver.Open(j, sqsserver.Config{Seed: seed + 2, NoCooldown: true})
	d.must(err)
	d.Server = s
	d.round(4)
	n := 0
	fill := func(enough func() bool) {
		for !enough() {
			n++
			d.must(s.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: d.url("filler"), Tags: map[string]string{"filler": fmt.Sprint(n, strings.Repeat(" filler", 30))}}))
		}
	}
	changeLog := func() {
		newest := newestLog(t, disk)
		fill(func() bool { return newestLog(t, disk) > newest })
	}
	waitFor := func(condition func(*journal.Journal) bool) { await(j, condition) }
	for range 2 + seed%3 {
		changeLog()
		waitFor(journal.Flushed)
		waitFor(journal.Compacted)
	}
	d.round(5)
	if seed%2 == 0 {
		// The newest change of the manifest adds a table, and names no older one: its compaction hangs.
		tables.permit(1)
		changeLog()
		waitFor(journal.Flushed)
	} else {
		tables.permit(0)
	}
	result := directory{}
	d.acted = func() { result.before = append(result.before, holdingsOf(t, s)) }
	changeLog() // from here on there are two logs
	d.round(6)
	waitFor(journal.Listed)
	result.disk = disk.CrashClone(vfs.CrashCloneCfg{})
	result.want = result.before[len(result.before)-1]
	tables.permit(-1)
	d.must(s.Close())
	return result
}

// gate lets as many through as it permits, at first any number.
type gate struct {
	mu      sync.Mutex
	changed sync.Cond
	left    int // negative: any number
}

func newGate() *gate {
	g := &gate{left: -1}
	g.changed.L = &g.mu
	return g
}

func (g *gate) permit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = n
	g.changed.Broadcast()
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.left == 0 {
		g.changed.Wait()
	}
	if g.left > 0 {
		g.left--
	}
}

// openServer opens the server of a directory, with what it logs beyond information.
func openServer(t *testing.T, fs vfs.FS, seed uint64) (*sqsserver.Server, *logged) {
	t.Helper()
	s, log, err := tryServer(fs, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

func tryServer(fs vfs.FS, seed uint64) (*sqsserver.Server, *logged, error) {
	log := new(logged)
	j, err := journal.Open(journal.Options{Dir: dir, FS: fs, Logger: slog.New(log)})
	if err != nil {
		return nil, log, err
	}
	s, err := sqsserver.Open(j, sqsserver.Config{Seed: seed, NoCooldown: true, Logger: slog.New(log)})
	if err != nil {
		_ = j.Close() // a damaged journal may not close well
		return nil, log, err
	}
	return s, log, nil
}

// logged keeps the warnings and errors of a log.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (*logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler             { return l }
func (l *logged) WithGroup(string) slog.Handler                  { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logged) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// driver carries out actions, each of which succeeds.
type driver struct {
	*sqsserver.Server
	t     *testing.T
	acted func() // after each action
}

func (d *driver) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	if d.acted != nil {
		d.acted()
	}
}

func (d *driver) url(queue string) string {
	d.t.Helper()
	out, err := d.GetQueueUrl(d.t.Context(), &sqsserver.GetQueueUrlInput{QueueName: queue})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.QueueUrl
}

func (*driver) arn(queue string) string { return "arn:aws:sqs:us-east-1:000000000000:" + queue }

func (d *driver) create(queue string, attributes map[string]string) {
	d.t.Helper()
	_, err := d.CreateQueue(d.t.Context(), &sqsserver.CreateQueueInput{QueueName: queue, Attributes: attributes})
	d.must(err)
}

func (d *driver) send(queue, group, body string) {
	d.t.Helper()
	in := &sqsserver.SendMessageInput{QueueUrl: d.url(queue), SendMessageEntry: sqsserver.SendMessageEntry{
		MessageBody: body,
		MessageAttributes: []sqsserver.MessageAttribute{
			{Name: "raw", DataType: "Binary.x", BinaryValue: []byte{0, 1, 0xff}},
			{Name: "weight", DataType: "Number", StringValue: "12.5"},
		},
	}}
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = group, strings.ReplaceAll(body[:min(len(body), 20)], " ", "-")
	}
	_, err := d.SendMessage(d.t.Context(), in)
	d.must(err)
}

func (d *driver) sendLater(queue, body string) {
	d.t.Helper()
	_, err := d.SendMessage(d.t.Context(), &sqsserver.SendMessageInput{QueueUrl: d.url(queue), SendMessageEntry: sqsserver.SendMessageEntry{
		MessageBody: body, DelaySeconds: sqsserver.Int(900)}})
	d.must(err)
}

func (d *driver) receive(queue string, visibility int32) sqsserver.Message {
	d.t.Helper()
	out, err := d.ReceiveMessage(d.t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: d.url(queue), VisibilityTimeout: sqsserver.Int(visibility), WaitTimeSeconds: sqsserver.Int(0)})
	d.must(err)
	if len(out.Messages) == 0 {
		d.t.Fatalf("nothing to receive from %s", queue)
	}
	return out.Messages[0]
}

func (d *driver) delete(queue string, m sqsserver.Message) {
	d.t.Helper()
	d.must(d.DeleteMessage(d.t.Context(), &sqsserver.DeleteMessageInput{QueueUrl: d.url(queue), ReceiptHandle: m.ReceiptHandle}))
}

// round leaves messages in each state: visible, in flight, delayed, dead-lettered and deleted.
func (d *driver) round(n int) {
	d.t.Helper()
	body := func(what string) string {
		return fmt.Sprintf("%d: %s %s", n, what, strings.Repeat("body ", 60*(n%2))) // every other round is beside the tables
	}
	d.send("orders", "", body("is deleted"))
	d.delete("orders", d.receive("orders", 60))
	d.send("orders", "", body("is dead-lettered"))
	d.receive("orders", 0)
	d.must(errorOfEmpty(d.ReceiveMessage(d.t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: d.url("orders"), WaitTimeSeconds: sqsserver.Int(0)})))
	d.send("orders", "", body("stays in flight"))
	d.receive("orders", 43200)
	d.sendLater("orders", body("is delayed"))
	d.send("steps.fifo", fmt.Sprint("group", n), body("is deleted"))
	d.delete("steps.fifo", d.receive("steps.fifo", 60))
	d.send("steps.fifo", fmt.Sprint("group", n), body("stays in flight"))
	d.receive("steps.fifo", 43200)
	d.send("steps.fifo", fmt.Sprint("group", n), body("waits behind it"))
	d.create(fmt.Sprint("queue", n), nil)
	d.create("filler", nil)
	d.send("filler", "", body("is purged"))
	d.must(d.DeleteQueue(d.t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: d.url(fmt.Sprint("queue", n))}))
}

func errorOfEmpty(out *sqsserver.ReceiveMessageOutput, err error) error {
	if err == nil && len(out.Messages) > 0 {
		return fmt.Errorf("received %q", out.Messages[0].Body)
	}
	return err
}

func (d *driver) tasks(queue string) []sqsserver.ListMessageMoveTasksResultEntry {
	d.t.Helper()
	out, err := d.ListMessageMoveTasks(d.t.Context(), &sqsserver.ListMessageMoveTasksInput{SourceArn: d.arn(queue), MaxResults: sqsserver.Int(10)})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.Results
}

// holdingsOf returns all that s can serve; it fails the test if s cannot.
func holdingsOf(t *testing.T, s *sqsserver.Server) holdings {
	t.Helper()
	all, err := readHoldings(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readHoldings(ctx context.Context, s *sqsserver.Server) (all holdings, err error) {
	for _, q := range s.Queues() {
		attributes, err := s.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{"All"}})
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprintf("queue %s, tags %v, attributes %v", q.ARN, q.Tags, attributes.Attributes))
		tasks, err := s.ListMessageMoveTasks(ctx, &sqsserver.ListMessageMoveTasksInput{SourceArn: q.ARN, MaxResults: sqsserver.Int(10)})
		if err != nil {
			return nil, err
		}
		for _, task := range tasks.Results {
			all = append(all, fmt.Sprintf("%s: task %+v", q.Name, task))
		}
		messages, err := s.Messages(q.Name, sqsserver.Page{})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(messages, func(a, b sqsserver.MessageInfo) int { return strings.Compare(a.ID, b.ID) })
		for _, m := range messages {
			m.Number = 0 // of the process
			all = append(all, fmt.Sprintf("%s: message %+v", q.Name, m))
		}
	}
	return all, nil
}
