package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestChangesAreReadWhenTheyAreOver: files are read again when they have changed and are the same at two looks in a
// row: at the first an editor, or who rotates a secret, may be in the middle of writing.
func TestChangesAreReadWhenTheyAreOver(t *testing.T) {
	dir := t.TempDir()
	config, secret := filepath.Join(dir, "reprise.yaml"), filepath.Join(dir, "token")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config, "a")
	write(secret, "a")
	c := &consumption{loaded: make(contents)}
	c.loaded.note(config)
	c.loaded.note(secret)
	look := func(when string, want bool) {
		t.Helper()
		if got := c.changed(); got != want {
			t.Errorf("%s: changed %t, want %t", when, got, want)
		}
	}
	look("at first", false)
	look("again", false)
	write(secret, "b")
	look("a secret is being written", false)
	write(secret, "bc")
	look("and goes on", false)
	look("it is complete", true)
	look("it was not loaded", true)
	c.loaded.note(secret)
	look("it was loaded", false)
	write(config, "b")
	look("the file changes", false)
	write(config, "a")
	look("and is as before", false)
	look("as it was loaded", false)
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	look("it is away, to be replaced", false)
	write(config, "c")
	look("it is replaced", false)
	look("and complete", true)
}

// TestPoolsAreResized: a reload gives a pool its new size, keeps the pool, and leaves others as they are.
func TestPoolsAreResized(t *testing.T) {
	c := new(consumption)
	if err := c.share([]configfile.Pool{{Name: "a", Concurrency: 2}, {Name: "b", Concurrency: 3}}); err != nil {
		t.Fatal(err)
	}
	a, b := c.pools["a"], c.pools["b"]
	if err := c.share([]configfile.Pool{{Name: "a", Concurrency: 5}, {Name: "c", Concurrency: 7}}); err != nil {
		t.Fatal(err)
	}
	if c.pools["a"] != a || c.pools["b"] != b || a.Status().Concurrency != 5 || b.Status().Concurrency != 3 || c.pools["c"].Status().Concurrency != 7 {
		t.Errorf("a has %d places, b %d and c %d; want 5, 3 and 7 in the pools of before", c.pools["a"].Status().Concurrency, b.Status().Concurrency, c.pools["c"].Status().Concurrency)
	}
	if err := c.share([]configfile.Pool{{Name: "a", Concurrency: -1}}); err == nil {
		t.Error("a pool with -1 places is no error")
	}
}

// TestRotationWhileQueuesAreFound: a secret is read before the queues are found, which takes a while. If it is rotated
// meanwhile, the consumer has the old one: the next reload has to make it anew, and so must not take it for one that has
// the new one already.
func TestRotationWhileQueuesAreFound(t *testing.T) {
	dir := t.TempDir()
	config, secret := filepath.Join(dir, "reprise.yaml"), filepath.Join(dir, "token")
	for name, text := range map[string]string{
		config: "queues:\n  - name: orders\n    consume: {url: http://127.0.0.1:1, bearer-token: 'file:" + secret + "'}\n",
		secret: "old",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{}
	c := &consumption{app: a, flags: &consumeFlags{config: config}, logger: slog.New(slog.DiscardHandler)}
	read := func() *consumed {
		t.Helper()
		file, err := parseConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		queues, err := c.read(file)
		if err != nil {
			t.Fatal(err)
		}
		return queues[0]
	}
	with, again := read(), read()
	if with.consumer(nil).Settings != again.consumer(nil).Settings {
		t.Error("a reload that changes nothing makes the consumer anew")
	}
	if err := os.WriteFile(secret, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if with.consumer(nil).Settings == read().consumer(nil).Settings {
		t.Error("a consumer that has read the old secret counts as one with the new one, and so keeps the old one for good")
	}
}

// TestReloadThatCutsMessagesOff: settings take effect although a consumer that they replace cannot settle all messages
// within its stop budget. The log says what has happened, and does not ask for a correction of the file.
func TestReloadThatCutsMessagesOff(t *testing.T) {
	config := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := os.WriteFile(config, []byte("queues:\n  - name: orders\n    consume: {url: 'http://127.0.0.1:1'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	q := reprisetest.NewQueue(t, nil)
	queues := 0
	c := &consumption{
		app: new(app), flags: &consumeFlags{config: config}, cmd: new(app).run(), fresh: new(app).run,
		logger: slog.New(slog.NewTextHandler(&log, nil)), events: new(admin.Events),
		locate: func(found []*consumed, _ configfile.Config) error {
			found[0].located = located{client: q.Client(), url: q.URL()}
			return nil
		},
		consume: func(all []daemon.Consume) error {
			queues = len(all)
			return fmt.Errorf("stopping: %w", reprise.ErrDrainTimeout)
		},
	}
	c.reload()
	if queues != 1 || !strings.Contains(log.String(), `msg="configuration reloaded"`) || !strings.Contains(log.String(), "stop budget") || strings.Contains(log.String(), "correct it") {
		t.Errorf("%d queues are consumed, and the log says:\n%s", queues, log.String())
	}
}

// TestReloadThatFailsKeepsThePools: if a reload cannot be carried out, the consumers that go on have as many places in
// their pools as before; if it takes effect, and only cuts off messages of before, they have the new number.
func TestReloadThatFailsKeepsThePools(t *testing.T) {
	config := filepath.Join(t.TempDir(), "reprise.yaml")
	write := func(size int) {
		t.Helper()
		text := fmt.Sprintf("pools:\n  workers: {concurrency: %d}\nqueues:\n  - name: orders\n    consume: {url: 'http://127.0.0.1:1', pool: workers}\n", size)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q := reprisetest.NewQueue(t, nil)
	var ends error // of the exchange of consumers
	during := 0
	c := &consumption{
		app: new(app), flags: &consumeFlags{config: config}, cmd: new(app).run(), fresh: new(app).run,
		logger: slog.New(slog.DiscardHandler), events: new(admin.Events),
		locate: func(found []*consumed, _ configfile.Config) error {
			found[0].located = located{client: q.Client(), url: q.URL()}
			return nil
		},
	}
	c.consume = func([]daemon.Consume) error {
		during = c.pools["workers"].Status().Concurrency
		return ends
	}
	for _, step := range []struct {
		size int
		ends error
		want int
	}{
		{3, nil, 3}, {5, errors.New("a consumer cannot be made"), 3}, {5, fmt.Errorf("stopping: %w", reprise.ErrDrainTimeout), 5}, {2, nil, 2},
	} {
		write(step.size)
		ends = step.ends
		c.reload()
		if got := c.pools["workers"].Status().Concurrency; got != step.want || during != step.size {
			t.Errorf("after a reload with %d places that ended with %v there are %d, and new consumers were made with %d; want %d and %d",
				step.size, step.ends, got, during, step.want, step.size)
		}
	}
}

// TestEachQueueIsConsumedAsItSays: of several queues each has its own client, target, pool, share, dead-letter queue
// and retry lane, and those without a pool have none.
func TestEachQueueIsConsumedAsItSays(t *testing.T) {
	config := filepath.Join(t.TempDir(), "reprise.yaml")
	const text = `
pools:
  few: {concurrency: 2}
  many: {concurrency: 9}
queues:
  - name: a
    consume: {url: 'http://a.invalid/work', pool: few, priority: 3}
  - name: b
    consume: {url: 'http://b.invalid/work', pool: many, weight: 7}
  - name: c
    consume: {url: 'http://c.invalid/work'}
  - name: d
    consume: {url: 'http://d.invalid/work', pool: few}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	q := reprisetest.NewQueue(t, nil)
	places := make(map[string]located)
	var running []daemon.Consume
	c := &consumption{
		app: new(app), flags: &consumeFlags{config: config}, cmd: new(app).run(), fresh: new(app).run,
		logger: slog.New(slog.DiscardHandler), events: new(admin.Events),
		locate: func(found []*consumed, _ configfile.Config) error {
			for _, of := range found {
				of.located = located{client: q.Client(), url: q.NewQueue(nil).URL(), deadLetter: q.NewQueue(nil).URL(), retryLane: q.NewQueue(nil).URL()}
				places[of.name] = of.located
			}
			return nil
		},
		consume: func(all []daemon.Consume) error {
			running = all
			return nil
		},
	}
	c.reload()
	if len(running) != 4 {
		t.Fatalf("%d queues are consumed, want 4", len(running))
	}
	for i, want := range []struct {
		name, pool string
		share      reprise.Share
	}{
		{"a", "few", reprise.Share{Priority: 3, Weight: 1}}, {"b", "many", reprise.Share{Weight: 7}}, {"c", "", reprise.Share{Weight: 1}}, {"d", "few", reprise.Share{Weight: 1}},
	} {
		got, at := running[i], places[want.name]
		if got.QueueURL != at.url || got.Client != reprise.Client(at.client) || got.Config.DeadLetterURL != at.deadLetter || got.Config.RetryLane.URL != at.retryLane {
			t.Errorf("%s is consumed at %s, its dead letters go to %s and its retries to %s; want %+v", want.name, got.QueueURL, got.Config.DeadLetterURL, got.Config.RetryLane.URL, at)
		}
		if got.Target != "http://"+want.name+".invalid/…" || got.Share != want.share || got.Pool != c.pools[want.pool] {
			t.Errorf("%s goes to %s with the share %+v of the pool %p; want %+v of %v", want.name, got.Target, got.Share, got.Pool, want, c.pools)
		}
	}
}
