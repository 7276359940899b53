package delivery

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/idempotency"
)

// idempotencySettings decide whether finished work is remembered, so that a message that
// comes again is deleted and not delivered again.
type idempotencySettings struct {
	store     string
	key       string
	retention time.Duration
}

const defaultRetention = 14 * 24 * time.Hour // the longest time that SQS keeps a message

func (i *idempotencySettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&i.store, "idempotency", "", "`store` that remembers which messages are done, so that none is delivered again: memory, of this process, or dynamodb:TABLE (default: none)")
	flags.StringVar(&i.key, "idempotency-key", "origin", "`part` of a message that names the work: origin (the message itself), body, deduplication-id, attribute:NAME or json:/POINTER")
	flags.DurationVar(&i.retention, "idempotency-retention", defaultRetention, "how long work that is done is remembered")
}

// table returns the table of DynamoDB that is the store, empty if it is another.
func (i *idempotencySettings) table() string {
	table, _ := strings.CutPrefix(i.store, "dynamodb:")
	if table == i.store {
		return ""
	}
	return table
}

// check returns the first mistake.
func (i *idempotencySettings) check() error {
	if i.store != "" && i.store != "memory" && i.table() == "" {
		return wrong("idempotency", " is %q: pass memory, or dynamodb: and the name of a table", i.store)
	}
	cfg, err := i.config("any", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if _, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), cfg); err != nil {
		return wrong("idempotency-retention", " is %v: %w", i.retention, err)
	}
	return nil
}

// config returns the settings of the middleware. The queue's name begins every key, so that
// queues can share a store.
func (i *idempotencySettings) config(queue string, logger *slog.Logger) (idempotency.Config, error) {
	cfg := idempotency.Config{Prefix: queue + ":", Retention: i.retention, Logger: logger}
	switch kind, name, named := strings.Cut(i.key, ":"); {
	case i.key == "origin":
	case i.key == "body":
		cfg.Key = idempotency.ByBody
	case i.key == "deduplication-id":
		cfg.Key = idempotency.ByDeduplicationID
	case kind == "attribute" && name != "":
		cfg.Key, cfg.Digest = idempotency.ByAttribute(name), idempotency.BodyDigest
	case kind == "json" && named && strings.HasPrefix(name, "/"):
		cfg.Key = idempotency.ByJSON(name)
	default:
		return cfg, wrong("idempotency-key", " is %q, which names no part of a message: pass origin, body, deduplication-id, attribute:NAME or json:/POINTER", i.key)
	}
	return cfg, nil
}

// Stores remember finished work. Those in memory outlive a change of a queue's settings.
type Stores struct {
	// DynamoDB makes a client. It is called once.
	DynamoDB func() (dynamostore.Client, error)

	client dynamostore.Client
	memory *idempotency.Memory
}

// Once returns a handler that runs h once for each piece of work, if that is set, else h.
func (s *Settings) Once(h reprise.Handler, queue string, stores *Stores, logger *slog.Logger) (reprise.Handler, error) {
	if s.idempotency.store == "" {
		return h, nil
	}
	cfg, err := s.idempotency.config(queue, logger)
	if err != nil {
		return nil, err
	}
	store, err := stores.store(s.idempotency.table())
	if err != nil {
		return nil, err
	}
	once, err := idempotency.New(store, cfg)
	if err != nil {
		return nil, wrong("idempotency", ": %w", err)
	}
	return once(h), nil
}

// store returns the store in a table of DynamoDB, or in memory.
func (s *Stores) store(table string) (idempotency.Store, error) {
	if table == "" {
		if s.memory == nil {
			s.memory = idempotency.NewMemory(idempotency.MemoryConfig{})
		}
		return s.memory, nil
	}
	if s.client == nil {
		client, err := s.DynamoDB()
		if err != nil {
			return nil, fmt.Errorf("--idempotency: %w", err)
		}
		s.client = client
	}
	return dynamostore.New(s.client, dynamostore.Config{Table: table})
}
