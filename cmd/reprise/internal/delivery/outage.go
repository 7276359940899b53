package delivery

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
	"github.com/reprise-sqs/reprise/idempotency"
)

// outageSettings decide [reprise.Outage]. Its field Unavailable is left alone: which
// failures mean an outage is a matter of the target's verdicts.
type outageSettings struct {
	state     choice.Value
	threshold int
	key       string
	probe     string
}

func (o *outageSettings) register(flags *pflag.FlagSet) {
	o.state = choice.Of("on", "off")
	flags.Var(&o.state, "outage", "whether messages are held while the target is down")
	flags.IntVar(&o.threshold, "outage-threshold", 0, "how many different messages must have failed before they are held (default 20)")
	flags.StringVar(&o.key, "outage-key", "", "`part` of a message that names its dependency, so that an outage of one dependency holds only its own messages: attribute:NAME, json:/POINTER or group")
	flags.StringVar(&o.probe, "outage-probe", "", "`URL` that answers 2xx to GET when the target works again; with --outage-key it gets ?key=... (default: a message is tried)")
}

func (o *outageSettings) config() (reprise.Outage, error) {
	outage := reprise.Outage{Off: o.state.String() == "off", Threshold: o.threshold}
	var err error
	if o.key != "" {
		if outage.Key, err = partOf(o.key); err != nil {
			return outage, wrong("outage-key", " %w", err)
		}
	}
	if o.probe != "" {
		if outage.Probe, err = probe(o.probe); err != nil {
			return outage, wrong("outage-probe", " %w", err)
		}
	}
	return outage, nil
}

// partOf returns a function that finds the part of a message that text names. A message
// without it has the empty key.
func partOf(text string) (func(*reprise.Message) string, error) {
	kind, name, named := strings.Cut(text, ":")
	var find idempotency.KeyFunc
	switch {
	case kind == "group" && !named:
		return func(m *reprise.Message) string { return m.GroupID }, nil
	case kind == "attribute" && name != "":
		find = idempotency.ByAttribute(name)
	case kind == "json" && strings.HasPrefix(name, "/"):
		find = idempotency.ByJSON(name)
	default:
		return nil, fmt.Errorf("%q names no part of a message: pass attribute:NAME, json:/POINTER or group", text)
	}
	return func(m *reprise.Message) string {
		key, err := find(m)
		if err != nil {
			return ""
		}
		return key
	}, nil
}

// probe returns a probe that gets the URL text.
func probe(text string) (func(ctx context.Context, key string) error, error) {
	target, err := url.Parse(text)
	if err != nil || (target.Scheme != "http" && target.Scheme != "https") || target.Hostname() == "" {
		return nil, fmt.Errorf("%q is not a URL: pass one like http://localhost:8080/health", text)
	}
	client := httpclient.Default()
	return func(ctx context.Context, key string) error {
		at := *target
		if key != "" {
			query := at.Query()
			query.Set("key", key)
			at.RawQuery = query.Encode()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
		if err != nil {
			return fmt.Errorf("probing the target: %w", forward.WithoutURL(err))
		}
		resp, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("probing the target: %w", forward.WithoutURL(err))
		}
		defer resp.Body.Close()
		_, _ = io.CopyN(io.Discard, resp.Body, maxProbeAnswer) // so that the connection can be used again
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return fmt.Errorf("probing the target: it answered %s", resp.Status)
		}
		return nil
	}, nil
}

// maxProbeAnswer is how much of the answer to a probe is read.
const maxProbeAnswer = 64 << 10
