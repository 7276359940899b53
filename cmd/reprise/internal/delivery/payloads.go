package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
)

// payloadSettings name the place of large bodies; their messages have pointers to it.
type payloadSettings struct {
	at   string
	keep bool
}

const s3Scheme = "s3://"

func (p *payloadSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.at, "payloads", "", "`place` of bodies that senders keep in S3, s3://BUCKET/PREFIX: they are fetched before a message is delivered, and removed after it is deleted (see docs/large-payloads.md)")
	flags.BoolVar(&p.keep, "keep-payloads", false, "do not remove bodies from S3: a lifecycle rule of the bucket does")
}

// config returns the settings of the adapter.
func (p *payloadSettings) config(logger *slog.Logger) s3payload.Config {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(p.at, s3Scheme), "/")
	return s3payload.Config{Bucket: bucket, Prefix: prefix, Logger: logger}
}

// check returns the first mistake.
func (p *payloadSettings) check() error {
	if p.at == "" {
		return nil
	}
	if !strings.HasPrefix(p.at, s3Scheme) {
		return wrong("payloads", " is %q: pass s3://BUCKET/PREFIX", p.at)
	}
	if _, err := s3payload.New(nowhereS3{}, p.config(slog.New(slog.DiscardHandler))); err != nil {
		return wrong("payloads", " is %q: %w", p.at, err)
	}
	return nil
}

// nowhereS3 stands for a client while settings are checked.
type nowhereS3 struct{ s3payload.Client }

// Payloads reports whether bodies are kept in S3.
func (s *Settings) Payloads() bool { return s.payloads.at != "" }

// Fetched returns a handler that fetches the bodies that are kept in S3 and then runs
// h, and the hook to run after a message is deleted, nil if there is none.
func (s *Settings) Fetched(h reprise.Handler, client s3payload.Client, logger *slog.Logger) (reprise.Handler, func(context.Context, *reprise.Message), error) {
	payloads, err := s3payload.New(client, s.payloads.config(logger))
	if err != nil {
		return nil, nil, fmt.Errorf("--payloads: %w", err)
	}
	if s.payloads.keep {
		return payloads.Fetch(h), nil, nil
	}
	return payloads.Fetch(h), payloads.Remove, nil
}
