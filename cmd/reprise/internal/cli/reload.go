package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

// consumption makes a command consume the queues of its flags and its file, also after the
// file has changed.
type consumption struct {
	app    *app
	flags  *consumeFlags
	cmd    *cobra.Command
	fresh  func() *cobra.Command // makes the command anew, to check a file
	given  []*pflag.Flag
	logger *slog.Logger
	region string // of functions that are named without one
	events *admin.Events
	// locate fills in where the queues are. It may create them.
	locate func(queues []*consumed, file configfile.Config) error
	// consume replaces the queues that are consumed.
	consume func([]daemon.Consume) error

	pools   map[string]*reprise.Pool
	current []daemon.Consume
	// loaded are the contents of the files that the settings came from, seen those that were
	// there when watch last looked.
	loaded, seen contents
	// hangUp has a SIGHUP that came since the file was read first.
	hangUp chan os.Signal
}

// contents are digests of the contents of files, by their names.
type contents map[string][sha256.Size]byte

// note reads a file. One that cannot be read counts as empty: it may be about to be
// replaced.
func (c contents) note(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		text = nil
	}
	c[file] = sha256.Sum256(text)
}

// load reads the file, if there is one, and sets the flags of cmd that it has keys for.
func (c *consumption) load(cmd *cobra.Command) (file configfile.Config, err error) {
	if c.flags.config == "" {
		return file, cmd.ValidateFlagGroups()
	}
	if c.hangUp == nil { // a SIGHUP before the program watches would end it
		c.hangUp = make(chan os.Signal, 1)
		signal.Notify(c.hangUp, syscall.SIGHUP)
	}
	c.loaded = make(contents)
	c.loaded.note(c.flags.config) // before it is read: a change in between is seen later
	if file, err = parseConfig(c.flags.config); err == nil {
		err = applyConfig(cmd, file, c.given)
	}
	if err != nil {
		return file, usage(fmt.Errorf("--config: %w", err))
	}
	return file, nil
}

// read returns the queues that the file has, with all that can be made before they are
// located.
func (c *consumption) read(file configfile.Config) ([]*consumed, error) {
	queues, err := c.flags.queues(c.given, file)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		for _, name := range q.Files() {
			if c.loaded != nil {
				c.loaded.note(name)
			}
		}
		if err := q.prepare(c.app, c.logger); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// apply makes the process consume the queues.
func (c *consumption) apply(queues []*consumed, file configfile.Config) error {
	if err := c.locate(queues, file); err != nil {
		return err
	}
	for _, q := range queues {
		if err := q.checkToQueue(); err != nil {
			return err
		}
		if err := q.connect(c.app, c.region, c.logger); err != nil {
			return err
		}
	}
	if err := rehearse(queues, file.Pools); err != nil {
		return err
	}
	before := c.sizes()
	if err := c.share(file.Pools); err != nil {
		return errors.Join(err, c.share(before))
	}
	var all []daemon.Consume
	for _, q := range queues {
		consume := q.consumer(c.pools[q.Pool])
		consume.Config.Observer = reprise.Observers(c.events.Observer(consume.QueueURL), consume.Config.Observer)
		all = append(all, consume)
	}
	c.current = all
	err := c.consume(all)
	if err != nil && !errors.Is(err, reprise.ErrDrainTimeout) { // after that the settings are in effect
		err = errors.Join(err, c.share(before)) // consumers that go on do so in pools of the size of before
	}
	return err
}

// rehearse makes the consumers of the queues, in pools of their own, and drops them: a mistake that is in no queue alone,
// such as two with one retry lane, is found before a consumer that runs is drained for the one that cannot be made.
func rehearse(queues []*consumed, pools []configfile.Pool) error {
	all := make(map[string]*reprise.Pool)
	for _, p := range pools {
		var err error
		if all[p.Name], err = reprise.NewPool(reprise.PoolConfig{Concurrency: p.Concurrency}); err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
	}
	for _, q := range queues {
		if err := daemon.CheckConsume(q.consumer(all[q.Pool])); err != nil {
			return usage(q.at(err))
		}
	}
	return nil
}

// share makes the pools of the file, and changes the size of those that exist.
func (c *consumption) share(pools []configfile.Pool) error {
	if c.pools == nil {
		c.pools = make(map[string]*reprise.Pool)
	}
	for _, p := range pools {
		var err error
		pool := c.pools[p.Name]
		if pool != nil {
			err = pool.SetConcurrency(p.Concurrency)
		} else {
			pool, err = reprise.NewPool(reprise.PoolConfig{Concurrency: p.Concurrency})
		}
		if err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		c.pools[p.Name] = pool
	}
	return nil
}

// sizes returns the pools that there are, with their sizes.
func (c *consumption) sizes() (pools []configfile.Pool) {
	for name, pool := range c.pools {
		pools = append(pools, configfile.Pool{Name: name, Concurrency: pool.Status().Concurrency})
	}
	return pools
}

// reload reads the file again and consumes its queues. If it has a mistake, or a queue
// cannot be found, nothing changes.
func (c *consumption) reload() {
	before := c.current
	fresh := c.fresh()
	file, err := c.load(fresh)
	var queues []*consumed
	if err == nil {
		queues, err = c.read(file)
	}
	if err != nil {
		c.logger.Error("the configuration has a mistake and was not reloaded: the settings before stay in effect", "error", err)
		c.events.Reloaded(0, 0, err)
		return
	}
	c.warnOfRest(fresh)
	err = c.apply(queues, file)
	if errors.Is(err, reprise.ErrDrainTimeout) { // the settings are in effect
		c.logger.Warn("consumers with the settings before have not settled all messages: these come again when their leases end", "error", err)
		err = nil
	}
	if err != nil {
		c.logger.Error("the configuration was not reloaded as a whole: correct it, or send SIGHUP to try again", "error", err)
		c.events.Reloaded(0, 0, err)
		return
	}
	unchanged := 0
	for _, q := range c.current {
		if slices.ContainsFunc(before, func(old daemon.Consume) bool { return old.QueueURL == q.QueueURL && old.Settings == q.Settings }) {
			unchanged++
		}
	}
	c.events.Reloaded(len(c.current), unchanged, nil)
	c.logger.Info("configuration reloaded", "queues", len(c.current), "unchanged", unchanged)
}

// warnOfRest warns of settings of the whole program that have changed. They take effect at
// the next start.
func (c *consumption) warnOfRest(fresh *cobra.Command) {
	_, consume := configFlags()
	fresh.Flags().VisitAll(func(flag *pflag.Flag) {
		now := c.cmd.Flags().Lookup(flag.Name)
		if !isConfigKey(flag) || consume.Lookup(flag.Name) != nil || slices.Contains(c.given, now) || flag.Value.String() == now.Value.String() {
			return
		}
		c.logger.Warn("a setting of the whole program has changed and takes effect at the next start", "setting", flag.Name)
	})
}

// reloadEvery is how often the files are looked at.
const reloadEvery = 2 * time.Second

// watch reloads the file, if there is one, when it or another file of the settings has
// changed, and at each SIGHUP, until the program stops. A file that is being written is read
// when it has stayed the same for reloadEvery.
func (c *consumption) watch() {
	if c.flags.config == "" {
		return
	}
	defer signal.Stop(c.hangUp)
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.app.ctx.Done():
			return
		case <-c.app.drain:
			return
		case <-c.hangUp:
			c.reload()
		case <-ticker.C:
			if c.changed() {
				c.reload()
			}
		}
	}
}

// changed reports whether a file differs from what was loaded, and has stayed the same since
// the call before.
func (c *consumption) changed() bool {
	now := make(contents)
	for name := range c.loaded {
		now.note(name)
	}
	settled := maps.Equal(now, c.seen)
	c.seen = now
	return settled && !maps.Equal(now, c.loaded)
}
