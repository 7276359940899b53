package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/retry"
)

const defaultConcurrency = 10

// fields names, for each field of [reprise.Config], the setting that decides it.
var fields = map[string]string{
	"Concurrency":              "concurrency",
	"Prefetch":                 "prefetch",
	"LongPoll":                 "long-poll",
	"Rate":                     "rate",
	"Retry":                    "retry",
	"Via":                      "via",
	"RetryLane.URL":            "retry-lane",
	"RetryLane.Share.Priority": "retry-lane-priority",
	"RetryLane.Share.Weight":   "retry-lane-weight",
	"FIFO":                     "fifo",
	"InFlightQuota":            "in-flight-quota",
	"HandlerTimeout":           "timeout",
	"Lease":                    "lease",
	"StopBudget":               "stop-budget",
	"DeadLetterURL":            "dead-letter",
	"Name":                     "consumer-name",
	"SigningKeys":              "signing-key-file",
	"Outage.Off":               "outage",
	"Outage.Threshold":         "outage-threshold",
	"Outage.Key":               "outage-key",
	"Outage.Probe":             "outage-probe",
	"AfterDelete":              "payloads",
}

func (s *Settings) registerConsumer(flags *pflag.FlagSet) {
	s.via = choice.Of("auto", "visibility", "requeue")
	s.fifo = choice.Of("hold", "block", "skip")
	flags.StringVar(&s.retry, "retry", "", "retry `policy` (default \""+PolicyText(retry.Policy{})+"\")")
	flags.IntVar(&s.concurrency, "concurrency", defaultConcurrency, "how many messages are handled at once")
	flags.IntVar(&s.prefetch, "prefetch", 0, "how many messages may wait, leased, for a free place (default 10; negative: none)")
	flags.Float64Var(&s.rate, "rate", 0, "how many attempts may start per `second` (default: unlimited)")
	flags.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long one attempt may take")
	flags.DurationVar(&s.lease, "lease", time.Minute, "visibility timeout that is asked for and renewed, in whole seconds from 2s to 1h: if the program dies, its messages come again after that time")
	flags.DurationVar(&s.longPoll, "long-poll", 20*time.Second, "how long a receive waits for a message, in whole seconds up to 20s; on AWS an idle consumer takes as long to stop")
	flags.DurationVar(&s.stopBudget, "stop-budget", 25*time.Second, "how long a graceful stop may take")
	flags.Var(&s.via, "via", "how messages to be retried are given back: hidden (visibility), as copies (requeue), or as each needs it (auto)")
	flags.Var(&s.fifo, "fifo", "how a FIFO group waits after one of its messages has failed: held here (hold), given back (block), or not at all, without that message (skip)")
	flags.StringVar(&s.DeadLetter, "dead-letter", "", "`URL or name` of the queue for messages that are given up (default the target of the queue's RedrivePolicy)")
	flags.StringVar(&s.RetryLane, "retry-lane", "", "`URL or name` of a second queue for retries, so that they do not wait behind the backlog (default: none)")
	flags.IntVar(&s.laneShare.Priority, "retry-lane-priority", 0, "priority of the retry lane; see docs/priorities.md")
	flags.IntVar(&s.laneShare.Weight, "retry-lane-weight", 1, "turns of the retry lane to one of the queue's")
	flags.IntVar(&s.inFlightQuota, "in-flight-quota", 0, "how many messages of the queue SQS lets be in flight (default 120000, as on AWS; negative: not watched)")
	flags.StringVar(&s.name, "consumer-name", "", "`name` of this consumer in the stories of dead letters (default the host's name)")
}

// Config returns the configuration of a consumer, without the fields that depend on the
// queue: DeadLetterURL and RetryLane.URL. Defaults of its policy are not filled in: see
// [reprise.Config].Retry.
func (s *Settings) Config(secrets *Secrets, logger *slog.Logger) (reprise.Config, error) {
	cfg, err := s.consumer()
	if err != nil {
		return reprise.Config{}, err
	}
	if cfg.SigningKeys, err = s.signing.Keys(secrets, logger); err != nil {
		return reprise.Config{}, err
	}
	cfg.Logger = logger
	return cfg, nil
}

// Policy returns the retry policy, without its defaults. The settings have passed Check.
func (s *Settings) Policy() (p retry.Policy) {
	_ = p.UnmarshalText([]byte(s.retry)) // Check has read it
	return p
}

// consumer is Config without the fields that are read from files and the environment.
func (s *Settings) consumer() (reprise.Config, error) {
	var policy retry.Policy
	if err := policy.UnmarshalText([]byte(s.retry)); err != nil {
		return reprise.Config{}, wrong("retry", ": %w", err)
	}
	switch {
	case s.concurrency < 1:
		return reprise.Config{}, wrong("concurrency", " is %d: pass 1 or more", s.concurrency)
	case s.timeout <= 0:
		return reprise.Config{}, wrong("timeout", " is %v: pass how long one attempt may take, like 30s", s.timeout)
	case s.stopBudget <= 0:
		return reprise.Config{}, wrong("stop-budget", " is %v: pass how long a graceful stop may take, like 25s", s.stopBudget)
	case s.longPoll < time.Second || s.longPoll > 20*time.Second || s.longPoll%time.Second != 0:
		return reprise.Config{}, wrong("long-poll", " is %v: pass whole seconds from 1s to 20s", s.longPoll)
	}
	outage, err := s.outage.config()
	if err != nil {
		return reprise.Config{}, err
	}
	cfg := reprise.Config{
		Concurrency: s.concurrency, Prefetch: s.prefetch, LongPoll: s.longPoll, Rate: s.rate,
		Retry: policy, Via: reprise.Via(s.via.Index()), FIFO: reprise.FIFO(s.fifo.Index()),
		InFlightQuota: s.inFlightQuota, HandlerTimeout: s.timeout, Lease: s.lease, StopBudget: s.stopBudget,
		Name: s.name, Outage: outage,
	}
	if s.RetryLane != "" {
		cfg.RetryLane.Share = s.laneShare
	}
	if s.Pool != "" && !s.flags.Changed("concurrency") {
		cfg.Concurrency = 0 // all places of the pool
	}
	return cfg, nil
}

// checkConsumer returns the first problem that the library finds in cfg, in the words of
// the settings. It makes no call.
func (s *Settings) checkConsumer(queue string, cfg reprise.Config) error {
	sibling := func(name string) string {
		if name == "" || strings.Contains(name, "://") {
			return name
		}
		return nowhere + name
	}
	cfg.DeadLetterURL, cfg.RetryLane.URL = sibling(s.DeadLetter), sibling(s.RetryLane)
	handler := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
	_, err := reprise.New(new(sqs.Client), sibling(queue), handler, cfg)
	if err == nil {
		return nil
	}
	return inSettings(err)
}

// nowhere is the beginning of URLs of queues whose places are not known yet.
const nowhere = "https://sqs.invalid/0/"

// inWords replaces the library's own names in its errors by the words of the settings.
var inWords = strings.NewReplacer(nowhere, "", "ViaAuto", "auto", "ViaVisibility", "visibility", "ViaRequeue", "requeue")

// inSettings turns an error of the library about a field of its Config into one about the
// setting that decides the field.
func inSettings(err error) error {
	text := inWords.Replace(err.Error())
	at := strings.Index(text, "Config.")
	if at < 0 {
		return err
	}
	text, _, _ = strings.Cut(text[at:], "\n") // the first of several
	names := slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var setting string
	for _, field := range names {
		if rest, found := strings.CutPrefix(text, "Config."+field); found && setting == "" {
			setting, text = fields[field], rest
		}
		text = strings.ReplaceAll(text, "Config."+field, fields[field])
	}
	if setting == "" {
		return err
	}
	return wrong(setting, "%s", text)
}
