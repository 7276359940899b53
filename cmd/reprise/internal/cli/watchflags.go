package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/telemetry"
)

// watchFlags are the flags of every long-running command on what watches it.
type watchFlags struct {
	endpoint string
	interval time.Duration
	traces   float64
	price    float64
	pprof    string

	cmd *cobra.Command
}

const aboutWatching = `GET /livez and /readyz answer probes, /scale tells autoscalers how much work there
is. OTEL_EXPORTER_OTLP_ENDPOINT or --otlp-endpoint sends the metrics of /metrics, and
traces of attempts, to an OpenTelemetry collector; the other standard variables
OTEL_* work too: see docs/telemetry.md.`

func (f *watchFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.endpoint, "otlp-endpoint", "", "`URL` of a collector for metrics and traces, by OTLP over HTTP, such as http://127.0.0.1:4318 (default OTEL_EXPORTER_OTLP_ENDPOINT; none: nothing is sent)")
	flags.DurationVar(&f.interval, "otlp-interval", 0, "time between two exports of metrics (default OTEL_METRIC_EXPORT_INTERVAL, else 1m)")
	flags.Float64Var(&f.traces, "otlp-traces", 1, "`share` of the traces that begin here to send, from 0 to 1; a sender's decision about a message wins (default OTEL_TRACES_SAMPLER, else 1)")
	flags.Float64Var(&f.price, "request-price", 0, "`dollars` that a million requests to SQS cost, for the estimates (default the list price of "+telemetry.PricesOf+": 0.4, FIFO 0.5)")
	flags.StringVar(&f.pprof, "pprof-addr", "", "loopback `host:port` for Go's profiles, /debug/pprof/ (default: they are not served)")
}

// options returns what the flags set.
func (f *watchFlags) options(a *app, logger *slog.Logger) (daemon.Watching, error) {
	if err := telemetry.CheckPrice(f.price); err != nil {
		return daemon.Watching{}, usage(err)
	}
	cfg := telemetry.Config{Endpoint: f.endpoint, Interval: f.interval, Version: version(), Logger: logger}
	if f.cmd.Flags().Changed("otlp-traces") {
		cfg.Traces = &f.traces
	}
	exporter, err := telemetry.New(a.ctx, cfg)
	if err != nil {
		return daemon.Watching{}, usage(err)
	}
	return daemon.Watching{Exporter: exporter, RequestPrice: f.price, PprofAddr: f.pprof}, nil
}

// announce prints where metrics and traces are sent, and where profiles are served, if anywhere.
func (f *watchFlags) announce(a *app, watching daemon.Watching, profiles string) {
	if watching.Exporter != nil {
		fmt.Fprintf(a.stdout, "OTLP          %s\n", watching.Exporter.Place())
	}
	if profiles != "" {
		fmt.Fprintf(a.stdout, "profiles      %s\n", profiles)
	}
}
