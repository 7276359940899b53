// Package delivery has the settings of one queue: how its messages are consumed, and where
// they are delivered. Each setting is a flag of reprise run and reprise up.
package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
)

// Settings are the settings of one queue. [Settings.Register] fills in the defaults.
type Settings struct {
	// DeadLetter, RetryLane and ToQueue are queues, by name or URL; empty if they are not set.
	DeadLetter, RetryLane, ToQueue string

	concurrency, prefetch int
	longPoll              time.Duration
	rate                  float64
	retry                 string
	via                   choice.Value
	laneShare             reprise.Share
	fifo                  choice.Value
	inFlightQuota         int
	timeout               time.Duration
	lease                 time.Duration
	stopBudget            time.Duration
	name                  string
	outage                outageSettings
	idempotency           idempotencySettings
	payloads              payloadSettings
	signing               Signing

	url, exec, worker, lambda string
	transform                 string
	payload                   choice.Value
	permanentErrors           []string

	http     httpSettings
	statuses verdictSettings
	exits    verdictSettings

	// Pool is the name of the pool that has the places of the handlers, Share when the queue
	// has its turn there; empty: it has places of its own.
	Pool  string
	Share reprise.Share

	flags  *pflag.FlagSet  // knows which settings were given
	shared map[string]bool // those given for all queues alike
}

// Register adds the settings to flags.
func (s *Settings) Register(flags *pflag.FlagSet) {
	s.flags = flags
	s.registerTarget(flags)
	s.registerConsumer(flags)
	s.outage.register(flags)
	s.idempotency.register(flags)
	s.payloads.register(flags)
	s.signing.Register(flags)
}

// RegisterShare adds the settings of a queue among several to flags.
func (s *Settings) RegisterShare(flags *pflag.FlagSet) {
	flags.StringVar(&s.Pool, "pool", "", "`name` of the pool that has the places of its messages (default: places of its own)")
	flags.IntVar(&s.Share.Priority, "priority", 0, "its messages start before those of a lower priority in the pool")
	flags.IntVar(&s.Share.Weight, "weight", 1, "its part of the starts in the pool, among queues of the same priority, from 1 to 1000")
}

// Override prepares the settings for values of a source that wins over those before it: if
// it names a target, that replaces an earlier one.
func (s *Settings) Override(names []string) {
	isTarget := func(name string) bool { return slices.Contains(kinds, kind(name)) }
	if slices.ContainsFunc(names, isTarget) {
		for _, k := range kinds {
			flag := s.flags.Lookup(string(k))
			_ = flag.Value.Set(flag.DefValue) // a text takes any value
			flag.Changed = false
		}
	}
	for _, name := range names {
		delete(s.shared, name)
	}
}

// ShareAll notes that the values so far were given for all queues alike. A value that has no
// effect for a queue's kind of target is then not a mistake.
func (s *Settings) ShareAll() {
	s.shared = make(map[string]bool)
	s.flags.VisitAll(func(flag *pflag.Flag) { s.shared[flag.Name] = flag.Changed })
}

// Values returns the settings in the order of their names, defaults included, but for those
// that are empty or have no effect. It has no secrets. The settings have passed Check.
func (s *Settings) Values() (values []Value) {
	target, err := s.kind()
	s.flags.VisitAll(func(flag *pflag.Flag) {
		empty := flag.DefValue == "" || flag.DefValue == "[]" || flag.DefValue == "0"
		if err != nil || s.noEffect(flag.Name, target) != "" || empty && flag.Value.String() == flag.DefValue {
			return
		}
		if flag.Name == "concurrency" && s.Pool != "" && !flag.Changed {
			return // it is the pool's
		}
		values = append(values, Value{flag.Name, flag.Value})
	})
	return values
}

// Files returns the names of the files that the settings name, whose content decides what
// the settings mean.
func (s *Settings) Files() (names []string) {
	if s.signing.file != "" {
		names = append(names, s.signing.file)
	}
	return append(names, s.http.files()...)
}

// Content returns a digest of what is in Files. It has to be taken before [Settings.Config] and [Settings.Target] read them:
// a file that changes in between then differs from it.
func (s *Settings) Content() string {
	all := sha256.New()
	for _, name := range s.Files() {
		text, err := os.ReadFile(name)
		fmt.Fprintf(all, "%q %v\n", text, err)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// Fingerprint returns a text that is the same for the same settings, with cfg made of them and of files with this Content.
func (s *Settings) Fingerprint(cfg reprise.Config, content string) string {
	all := sha256.New()
	s.flags.VisitAll(func(flag *pflag.Flag) { fmt.Fprintf(all, "%s %q %t\n", flag.Name, flag.Value, flag.Changed) })
	fmt.Fprintf(all, "%q %q %s\n", cfg.DeadLetterURL, cfg.RetryLane.URL, content)
	return hex.EncodeToString(all.Sum(nil))
}

// Value is a setting with its value.
type Value struct {
	Name  string
	Value pflag.Value
}

// Error is a mistake in one setting.
type Error struct {
	// Name is that of the setting: of a flag, without its dashes.
	Name string
	// Problem continues a sentence that begins with the name.
	Problem error
}

// wrong returns an error about the setting, whose problem is described by format.
func wrong(setting, format string, args ...any) *Error {
	return &Error{setting, fmt.Errorf(format, args...)}
}

// Error names the setting as a flag.
func (e *Error) Error() string { return "--" + e.Name + e.Problem.Error() }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Problem }

// Check reports the first mistake in the settings that can be found without a call and
// without a look at the files and commands that they name. It is an [*Error].
func (s *Settings) Check(queue string) error {
	if err := s.checkTarget(); err != nil {
		return err
	}
	if err := s.idempotency.check(); err != nil {
		return err
	}
	if err := s.payloads.check(); err != nil {
		return err
	}
	cfg, err := s.consumer()
	if err != nil {
		return err
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	return s.checkConsumer(queue, cfg)
}
