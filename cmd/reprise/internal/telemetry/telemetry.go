// Package telemetry sends the metrics of /metrics, and traces, to an OpenTelemetry collector by
// OTLP, and estimates the cost of requests to SQS.
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"
)

// Config configures an [Exporter]. The environment variables OTEL_* set the fields that it
// leaves out.
type Config struct {
	// Endpoint is the URL of a collector, without the paths of the signals. Default: that of
	// OTEL_EXPORTER_OTLP_ENDPOINT; without either nothing is sent.
	Endpoint string
	// Interval is the time between two exports of metrics. Default: OTEL_METRIC_EXPORT_INTERVAL,
	// else a minute.
	Interval time.Duration
	// Traces is the share of traces that begin here and are sent, from 0 to 1. A message whose
	// sender has decided is traced as the sender says. Default (nil): OTEL_TRACES_SAMPLER, else
	// all.
	Traces *float64
	// Version is that of the program.
	Version string
	// Logger gets problems of exports. It is required.
	Logger *slog.Logger
}

// The variables that say where to send, and what. The exporters read the others themselves:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	protocolVariable = "OTEL_EXPORTER_OTLP_PROTOCOL"
	protocol         = "http/protobuf"
)

// stopBudget bounds how long the last export may take: a stop must not wait for a collector
// that is down.
const stopBudget = 3 * time.Second

// signal is metrics or traces.
type signal struct {
	name     string // as the variables have it
	path     string
	variable string // of its own endpoint
}

var (
	metrics = signal{"METRICS", "/v1/metrics", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}
	traces  = signal{"TRACES", "/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
)

// Exporter sends metrics and traces by OTLP over HTTP. A nil one sends nothing.
type Exporter struct {
	cfg      Config
	resource *resource.Resource
	metrics  sdkmetric.Exporter // nil: none are sent
	meters   *sdkmetric.MeterProvider
	tracers  *sdktrace.TracerProvider // nil: none are sent
}

// New returns an exporter, nil if neither cfg nor the environment asks for one. It connects to
// nothing yet.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	if cfg.Traces != nil && (*cfg.Traces < 0 || *cfg.Traces > 1) {
		return nil, fmt.Errorf("--otlp-traces is %v: pass a share from 0 to 1", *cfg.Traces)
	}
	if cfg.Interval < 0 {
		return nil, fmt.Errorf("--otlp-interval is %v: pass a duration such as 30s", cfg.Interval)
	}
	withMetrics, err := cfg.sends(metrics)
	if err != nil {
		return nil, err
	}
	withTraces, err := cfg.sends(traces)
	if err != nil {
		return nil, err
	}
	if cfg.Traces != nil && *cfg.Traces == 0 {
		withTraces = false
	}
	if !withMetrics && !withTraces {
		return nil, nil //nolint:nilnil // a nil Exporter sends nothing
	}
	otel.SetErrorHandler(&fewErrors{log: cfg.Logger})
	e := &Exporter{cfg: cfg}
	// Later sources override earlier ones: the environment is the last.
	e.resource, err = resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "reprise"), attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", rand.Text())),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if withMetrics {
		if e.metrics, err = otlpmetrichttp.New(ctx, cfg.metricOptions()...); err != nil {
			return nil, fmt.Errorf("sending metrics by OTLP: %w", err)
		}
	}
	if withTraces {
		exporter, err := otlptracehttp.New(ctx, cfg.traceOptions()...)
		if err != nil {
			return nil, fmt.Errorf("sending traces by OTLP: %w", err)
		}
		options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(exporter), sdktrace.WithResource(e.resource)}
		if cfg.Traces != nil {
			options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*cfg.Traces))))
		}
		e.tracers = sdktrace.NewTracerProvider(options...)
	}
	return e, nil
}

// sends reports whether a signal is to be sent.
func (c Config) sends(s signal) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	kind := os.Getenv("OTEL_" + s.name + "_EXPORTER")
	switch kind {
	case "", "otlp":
	case "none", "prometheus": // /metrics is there anyway
		return false, nil
	default:
		c.Logger.Warn("this exporter is not known: reprise sends by otlp or, with none, not at all", "variable", "OTEL_"+s.name+"_EXPORTER", "value", kind)
		return false, nil
	}
	for _, from := range []struct{ name, value string }{
		{"--otlp-endpoint", c.Endpoint}, {s.variable, os.Getenv(s.variable)}, {endpointVariable, os.Getenv(endpointVariable)},
	} {
		if from.value == "" {
			continue
		}
		if u, err := url.Parse(from.value); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return false, fmt.Errorf("%s is %q: give the URL of a collector, such as http://127.0.0.1:4318", from.name, withoutUser(from.value))
		}
		return true, checkProtocol(s)
	}
	return kind == "otlp", checkProtocol(s)
}

// checkProtocol refuses protocols that the exporters do not speak.
func checkProtocol(s signal) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + s.name + "_PROTOCOL", protocolVariable} {
		switch value := os.Getenv(name); value {
		case protocol:
			return nil
		case "":
		default:
			return fmt.Errorf("%s is %q: reprise speaks %s, which collectors have on port 4318: set it to that, and the endpoint to that port", name, value, protocol)
		}
	}
	return nil
}

// withoutUser hides a password in a text that should be a URL.
func withoutUser(text string) string {
	if scheme, rest, found := strings.Cut(text, "://"); found {
		if _, host, found := strings.Cut(rest, "@"); found {
			return scheme + "://" + host
		}
	}
	return text
}

func (c Config) metricOptions() (options []otlpmetrichttp.Option) {
	if c.Endpoint != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(strings.TrimRight(c.Endpoint, "/")+metrics.path))
	}
	return options
}

func (c Config) traceOptions() (options []otlptracehttp.Option) {
	if c.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(strings.TrimRight(c.Endpoint, "/")+traces.path))
	}
	return options
}

// Tracers returns the provider that makes the spans; of a nil Exporter, or one without traces,
// it makes none.
func (e *Exporter) Tracers() trace.TracerProvider {
	if e == nil || e.tracers == nil {
		return notrace.NewTracerProvider()
	}
	return e.tracers
}

// Inject adds the trace context of ctx, if it has one, to the headers of a request (W3C's
// traceparent and tracestate).
func Inject(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Start sends the metrics that from gathers, from now on.
func (e *Exporter) Start(from prometheus.Gatherer) {
	if e == nil || e.metrics == nil {
		return
	}
	options := []sdkmetric.PeriodicReaderOption{sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from)))}
	if e.cfg.Interval > 0 {
		options = append(options, sdkmetric.WithInterval(e.cfg.Interval))
	}
	e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e.metrics, options...)), sdkmetric.WithResource(e.resource))
}

// Stop sends the remaining metrics and traces. It returns no error for a collector that cannot
// be reached: that is logged.
func (e *Exporter) Stop(ctx context.Context) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopBudget)
	defer cancel()
	var stops sync.WaitGroup
	errs := make([]error, 2)
	if e.meters != nil {
		stops.Go(func() { errs[0] = e.meters.Shutdown(ctx) })
	}
	if e.tracers != nil {
		stops.Go(func() { errs[1] = e.tracers.Shutdown(ctx) })
	}
	stops.Wait()
	if err := errors.Join(errs...); err != nil {
		e.cfg.Logger.Warn("the last metrics and traces could not be sent by OTLP", "error", err)
	}
	return nil
}

// Place returns where metrics and traces go, for the lines that a command prints when it starts.
func (e *Exporter) Place() string {
	var what []string
	if e.metrics != nil {
		what = append(what, "metrics")
	}
	if e.tracers != nil {
		what = append(what, "traces")
	}
	place := cmp.Or(e.cfg.Endpoint, os.Getenv(endpointVariable), os.Getenv(metrics.variable), os.Getenv(traces.variable), "http://localhost:4318")
	return withoutUser(place) + ", " + strings.Join(what, " and ")
}

// logErrorsEvery bounds how often problems of exports are logged: a collector that is down
// fails each of them.
const logErrorsEvery = time.Minute

// fewErrors logs what OpenTelemetry reports.
type fewErrors struct {
	log     *slog.Logger
	mu      sync.Mutex
	logged  time.Time
	leftOut int
}

// Handle logs err, at most once in logErrorsEvery.
func (f *fewErrors) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.logged) < logErrorsEvery {
		f.leftOut++
		return
	}
	f.log.Warn("metrics or traces could not be sent by OTLP", "error", err, "left_out", f.leftOut)
	f.logged, f.leftOut = time.Now(), 0
}
