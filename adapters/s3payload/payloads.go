// Package s3payload keeps large payloads in Amazon S3: SQS accepts messages of at most 1 MiB, so
// larger bodies go to a bucket, and the message is a pointer to the object. The format is that of
// AWS's extended client libraries for Java and Python: this package and those libraries read each
// other's messages.
//
//	payloads, err := s3payload.New(s3.NewFromConfig(cfg), s3payload.Config{Bucket: "orders-payloads"})
//	...
//	sent, err := payloads.Send(ctx, sender, orders...) // instead of sender.Send
//	...
//	consumer, err := reprise.New(client, queueURL, payloads.Fetch(handler), reprise.Config{
//		AfterDelete: payloads.Remove, // or leave it out, and let a lifecycle rule remove objects
//	})
//
// The message in the queue stays the pointer: the pointer is retried, requeued, dead-lettered and
// redriven, and the object stays where it is.
package s3payload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Client is the part of the AWS SDK's *s3.Client that a [Payloads] calls. Wrap one to set further
// options: encryption by a key of your own, tags, an expected owner of the bucket.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
}

// Location is a place of payloads.
type Location struct {
	// Bucket is a bucket's name.
	Bucket string
	// Prefix is the beginning of the keys of its payloads: a folder, with or without a slash at its end. Without one also
	// keys are meant that consist of it and a UUID, as libraries write them, such as orders-UUID below orders-; never those
	// of a folder whose name only begins with it. Default: none; every key.
	Prefix string
}

// Config is where payloads are kept, and which bodies are. Only Bucket is required; [New] copies
// the Config.
type Config struct {
	// Bucket is where payloads are written to, under keys that begin with Prefix: of
	// letters, digits and ./_- only, at most 988 characters, not beginning with a
	// dot or a slash and without two dots in a row. The rest of a key is a random
	// UUID. Default of Prefix: none.
	Bucket, Prefix string

	// Allow names further locations of payloads. Anybody who may send can forge a pointer: a
	// pointer to an object neither under Bucket and Prefix nor in one of these is refused. Default:
	// none.
	Allow []Location

	// Threshold is the size in bytes, of body and attributes together as SQS counts
	// them, beyond which a body is kept in S3: up to SQS's limit of 1 MiB. Negative:
	// every body is. Default: 256 KiB, as in AWS's libraries; it is also what queues
	// took until 2025, and may still be set to take.
	Threshold int

	// MaxSize is how large a payload may be, in bytes, to be sent or fetched. A message
	// whose payload is larger is dead-lettered. Each running handler can have one payload in
	// memory. Default: 64 MiB, at most 1 GiB.
	MaxSize int

	// Timeout limits one call of the Client, its retries and the transfer included.
	// Default: 30 s.
	Timeout time.Duration

	// Logger gets, at most twice a minute, a line that objects could not be removed. Default:
	// slog.Default().
	Logger *slog.Logger
}

const (
	defaultThreshold = 256 << 10
	defaultMaxSize   = 64 << 20
	defaultTimeout   = 30 * time.Second

	maxMessage = 1 << 20 // what SQS takes
	largestMax = 1 << 30 // of MaxSize
	maxKey     = 1024    // bytes of a key that S3 takes
	uuidLength = 36
)

// Payloads keeps the payloads of messages in S3. It may be used by many goroutines,
// and for several queues.
type Payloads struct {
	client Client
	cfg    Config

	fetched, offloaded, removed, notRemoved atomic.Int64

	mu     sync.Mutex
	saidAt time.Time // when a failed removal was last logged
	unsaid int       // failures since then
}

// New returns a Payloads that reaches S3 by client. It makes no call; all problems of
// cfg are reported in one error.
func New(client Client, cfg Config) (*Payloads, error) {
	cfg = cfg.withDefaults()
	problems := cfg.validate()
	if client == nil {
		problems = append(problems, errors.New("the S3 client is nil: pass s3.NewFromConfig(cfg) of the AWS SDK"))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("keeping payloads in S3: %w", errors.Join(problems...))
	}
	return &Payloads{client: client, cfg: cfg}, nil
}

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() Config {
	switch {
	case c.Threshold == 0:
		c.Threshold = defaultThreshold
	case c.Threshold < 0:
		c.Threshold = -1 // no message is so small
	}
	if c.MaxSize == 0 {
		c.MaxSize = defaultMaxSize
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Allow = append([]Location{{c.Bucket, c.Prefix}}, c.Allow...)
	return c
}

// validate returns every problem of a Config whose defaults are filled in.
func (c Config) validate() (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Bucket == "" {
		bad("Config.Bucket is empty: name the bucket that payloads are written to")
	}
	if problem := badPrefix(c.Prefix); problem != "" {
		bad("Config.Prefix is %q: %s", c.Prefix, problem)
	}
	for i, l := range c.Allow[1:] {
		if l.Bucket == "" {
			bad("Config.Allow[%d].Bucket is empty: name a bucket", i)
		}
	}
	if c.Threshold > maxMessage {
		bad("Config.Threshold is %d: set 1 to %d bytes, 0 for %d, or a negative number to keep every body in S3", c.Threshold, maxMessage, defaultThreshold)
	}
	if c.MaxSize < 0 || c.MaxSize > largestMax {
		bad("Config.MaxSize is %d: set 1 to %d bytes, or 0 for %d", c.MaxSize, largestMax, defaultMaxSize)
	}
	if c.Timeout < 0 {
		bad("Config.Timeout is %v: set a positive duration, or 0 for %v", c.Timeout, defaultTimeout)
	}
	return problems
}

// badPrefix returns the problem of a prefix of keys to write, or "". The rules are those of AWS's
// library for Java, so that it can use the same prefix.
func badPrefix(prefix string) string {
	invalid := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("./_-", c))
	}
	switch {
	case strings.ContainsFunc(prefix, invalid):
		return "use letters, digits and ./_- only"
	case strings.HasPrefix(prefix, ".") || strings.HasPrefix(prefix, "/"):
		return "begin it with a letter, a digit, _ or -"
	case strings.Contains(prefix, ".."):
		return "use no two dots in a row"
	case len(prefix) > maxKey-uuidLength:
		return fmt.Sprintf("S3's keys have at most %d bytes, %d of which are needed: use at most %d", maxKey, uuidLength, maxKey-uuidLength)
	}
	return ""
}

// Stats counts the operations of a [Payloads].
type Stats struct {
	// Fetched is how many payloads were fetched for handlers, Offloaded how many were written,
	// Removed how many were deleted.
	Fetched, Offloaded, Removed int64
	// NotRemoved is how many payloads should have been deleted but could not be: the bucket's
	// lifecycle rule removes them.
	NotRemoved int64
}

// Stats returns the counts so far.
func (p *Payloads) Stats() Stats {
	return Stats{
		Fetched:    p.fetched.Load(),
		Offloaded:  p.offloaded.Load(),
		Removed:    p.removed.Load(),
		NotRemoved: p.notRemoved.Load(),
	}
}
