//go:build unix

package main_test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is an OpenTelemetry collector that keeps what it gets.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	metrics  map[string]*metricspb.Metric // the latest of each name
	spans    []*tracespb.Span
	resource map[string]string
	headers  http.Header
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{metrics: make(map[string]*metricspb.Metric), resource: make(map[string]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var in collectmetrics.ExportMetricsServiceRequest
		c.read(t, w, r, &in)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.headers = r.Header
		for _, of := range in.GetResourceMetrics() {
			c.about(of.GetResource().GetAttributes())
			for _, scope := range of.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					c.metrics[m.GetName()] = m
				}
			}
		}
	})
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var in collecttraces.ExportTraceServiceRequest
		c.read(t, w, r, &in)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range in.GetResourceSpans() {
			c.about(of.GetResource().GetAttributes())
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) read(t *testing.T, w http.ResponseWriter, r *http.Request, into proto.Message) {
	t.Helper()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			t.Error(err)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	if err == nil {
		err = proto.Unmarshal(text, into)
	}
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) about(attributes []*commonpb.KeyValue) {
	for _, a := range attributes {
		c.resource[a.GetKey()] = a.GetValue().GetStringValue()
	}
}

// sum is what a metric's points with a label add up to.
func (c *collector) sum(name, label, value string) (sum float64, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.metrics[name]
	for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
		if slices.ContainsFunc(p.GetAttributes(), func(a *commonpb.KeyValue) bool {
			return a.GetKey() == label && a.GetValue().GetStringValue() == value
		}) {
			found = true
			sum += p.GetAsDouble() + float64(p.GetAsInt())
		}
	}
	return sum, found
}

// TestOTLP: up, run and serve send what /metrics shows, and traces of attempts, to a collector,
// the last of it when they stop.
func TestOTLP(t *testing.T) {
	t.Parallel()
	traced := make(chan string, 100) // the traceparent of each post
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "bad" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			traced <- r.Header.Get("Traceparent")
		}
	}))
	t.Cleanup(target.Close)

	t.Run("serve and run", func(t *testing.T) {
		t.Parallel()
		ofServer, ofRun := newCollector(t), newCollector(t)
		variables := environment("OTEL_EXPORTER_OTLP_ENDPOINT="+ofServer.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=secret",
			"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_METRIC_EXPORT_INTERVAL=100")
		server := startIn(t, variables, "serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders")
		endpoint := server.await("SQS endpoint")
		if got, want := server.await("OTLP          "), ofServer.URL+", metrics and traces"; got != want {
			t.Errorf("serve says that it sends to %q, want %q", got, want)
		}
		runner := start(t, "run", "--queue", "orders", "--endpoint", endpoint, "--url", target.URL, "--admin-addr", "none",
			"--otlp-endpoint", ofRun.URL+"/", "--otlp-interval", "1h")
		runner.await("OTLP          ")
		if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "good", "good"); got.code != 0 {
			t.Fatalf("send failed: %s", got.stderr)
		}
		awaitTrue(t, "the collector to hear of two deletes from the server", func() bool {
			n, _ := ofServer.sum("reprise_messages_total", "action", "DeleteMessageBatch")
			return n == 2
		})
		runner.stop()
		if n, found := ofRun.sum("reprise_attempts_total", "reprise_outcome", "delete"); n != 2 {
			t.Errorf("the collector of run was told of %v attempts (at all: %v), want 2 at its stop", n, found)
		}
		checkSpans(t, ofRun, "delete", "delete")
		server.stop()
		ofServer.mu.Lock()
		defer ofServer.mu.Unlock()
		if got := ofServer.headers.Get("Api-Key"); got != "secret" {
			t.Errorf("the header of OTEL_EXPORTER_OTLP_HEADERS is %q", got)
		}
		if got := ofServer.resource; got["service.name"] != "reprise" || got["deployment.environment.name"] != "test" {
			t.Errorf("the resource is %v", got)
		}
	})
	t.Run("up", func(t *testing.T) {
		t.Parallel()
		c := newCollector(t)
		p := startIn(t, environment("OTEL_SERVICE_NAME=shop"), "up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--url", target.URL,
			"--otlp-endpoint", c.URL, "--otlp-interval", "1h", "--no-metrics")
		endpoint := p.await("SQS endpoint")
		if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "good", "bad"); got.code != 0 {
			t.Fatalf("send failed: %s", got.stderr)
		}
		p.await("dead-letter")
		awaitTrue(t, "both to be settled", func() bool {
			var h struct {
				Consumer struct{ Deleted, DeadLettered int }
			}
			_, text := fetch(t, http.DefaultClient, endpoint+"/health")
			_ = json.Unmarshal([]byte(strings.ReplaceAll(text, "dead_lettered", "DeadLettered")), &h)
			return h.Consumer.Deleted == 1 && h.Consumer.DeadLettered == 1
		})
		p.stop()
		for _, want := range []struct{ metric, label, value string }{
			{"reprise_attempts_total", "reprise_outcome", "delete"}, {"reprise_dlq_sent_total", "reprise_reason", "permanent"},
		} {
			if n, _ := c.sum(want.metric, want.label, want.value); n != 1 {
				t.Errorf("%s{%s=%q} is %v at the collector, want 1", want.metric, want.label, want.value, n)
			}
		}
		checkSpans(t, c, "dead-letter", "delete")
		// The post of the dead letter continues its attempt's span.
		parent := strings.Split(<-traced, "-")
		if len(parent) != 4 || !slices.ContainsFunc(c.spans, func(s *tracespb.Span) bool {
			return hex.EncodeToString(s.GetTraceId()) == parent[1] && hex.EncodeToString(s.GetSpanId()) == parent[2] && s.GetName() == "process orders"
		}) {
			t.Errorf("the target got the traceparent %q, which is no attempt's", parent)
		}
		if got := c.resource["service.name"]; got != "shop" {
			t.Errorf("service.name is %q, want that of OTEL_SERVICE_NAME", got)
		}
	})
	t.Run("a collector that is down", func(t *testing.T) {
		t.Parallel()
		down := httptest.NewServer(http.NotFoundHandler())
		down.Close()
		p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--otlp-endpoint", down.URL)
		p.await("OTLP          ")
		p.stop() // with code 0
		if !strings.Contains(p.output(), "could not be sent by OTLP") {
			t.Errorf("nothing is said of a collector that is down:\n%s", p.output())
		}
	})
}

// checkSpans compares the outcomes of attempts with those of the spans.
func checkSpans(t *testing.T, c *collector, outcomes ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for _, s := range c.spans {
		if s.GetName() != "process orders" {
			continue
		}
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "reprise.outcome" {
				got = append(got, a.GetValue().GetStringValue())
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, outcomes) {
		t.Errorf("the spans of attempts have outcomes %q, want %q; there are %d spans", got, outcomes, len(c.spans))
	}
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// TestOTLPMistakes: what cannot work is refused at the start, with the remedy; what asks for
// nothing sends nothing.
func TestOTLPMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variables, flags []string
		want             string
	}{
		{nil, []string{"--otlp-endpoint", "127.0.0.1:4318"}, "give the URL of a collector, such as http://127.0.0.1:4318"},
		{nil, []string{"--otlp-endpoint", "http://me:secret@"}, "--otlp-endpoint is \"http://\""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"}, nil, "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4318\""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, nil, "reprise speaks http/protobuf, which collectors have on port 4318"},
		{nil, []string{"--otlp-endpoint", "http://c:4318", "--otlp-traces", "2"}, "--otlp-traces is 2: pass a share from 0 to 1"},
		{nil, []string{"--otlp-endpoint", "http://c:4318", "--otlp-interval", "-1s"}, "--otlp-interval is -1s"},
		{nil, []string{"--request-price", "-1"}, "--request-price is -1: pass the dollars"},
	} {
		p := startIn(t, environment(c.variables...), append([]string{"serve", "--memory", "--addr", "127.0.0.1:0"}, c.flags...)...)
		if code, output := p.wait(); code != 2 || !strings.Contains(output, c.want) || strings.Contains(output, "secret@") {
			t.Errorf("serve %q with %q: code %d, want 2 and %q:\n%s", c.flags, c.variables, code, c.want, output)
		}
	}
	for _, variables := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_METRICS_EXPORTER=none", "OTEL_TRACES_EXPORTER=none"},
		{"OTEL_SERVICE_NAME=shop"},
	} {
		p := startIn(t, environment(variables...), "serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders")
		p.await("queue         ")
		p.stop()
		if strings.Contains(p.output(), "OTLP") {
			t.Errorf("with %q serve sends something:\n%s", variables, p.output())
		}
	}
}

// TestProbes: /livez, /readyz with reasons and /scale, of a server, and of run while its queue
// works and while it does not.
func TestProbes(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "slow" {
			<-release
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(target.Close)
	t.Cleanup(func() { close(release) })
	server, endpoint := serve(t, "--queue", "orders", "--queue", "others")
	answers := func(url string, code int, want string) {
		t.Helper()
		if got, text := fetch(t, http.DefaultClient, url); got != code || strings.TrimSpace(text) != want {
			t.Errorf("GET %s: %d %s, want %d %s", url, got, text, code, want)
		}
	}
	answers(endpoint+"/livez", 200, `{"live":true}`)
	answers(endpoint+"/readyz", 200, `{"ready":true}`)
	answers(endpoint+"/scale", 404, `{"error":"ask for one of this process's queues (2), as in /scale?queue=NAME: reprise queues lists them"}`)
	if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "slow", "slow", "fails", "fails", "fails"); got.code != 0 {
		t.Fatalf("send failed: %s", got.stderr)
	}
	answers(endpoint+"/scale?queue=orders", 200, `{"queue":"orders","visible":5,"processing":0,"backoff":0}`)

	runner := start(t, "run", "--queue", "orders", "--endpoint", endpoint, "--url", target.URL, "--admin-addr", "127.0.0.1:0",
		"--concurrency", "5", "--retry", "constant(1h) jitter=none attempts=3", "--long-poll", "1s")
	admin, _, _ := strings.Cut(runner.await("admin         "), "/health")
	answers(admin+"/livez", 200, `{"live":true}`)
	// SQS counts all five as in flight. Three of them wait for a retry: they are nothing to do.
	awaitTrue(t, "three messages in backoff and two in work", func() bool {
		_, text := fetch(t, http.DefaultClient, admin+"/scale")
		return strings.TrimSpace(text) == `{"visible":0,"processing":2,"backoff":3}`
	})
	checkKEDA(t, admin)
	answers(admin+"/readyz", 200, `{"ready":true}`)
	answers(admin+"/scale?queue=nobody", 404, `{"error":"ask for one of this process's queues (1), as in /scale?queue=NAME: reprise queues lists them"}`)
	server.stop()
	awaitTrue(t, "run to be live but not ready", func() bool {
		code, text := fetch(t, http.DefaultClient, admin+"/readyz")
		var r struct {
			Ready   bool
			Reasons []struct{ Part, Status, Problem string }
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return code == 503 && !r.Ready && len(r.Reasons) == 1 && r.Reasons[0].Part == "orders" && r.Reasons[0].Status == "failing" && r.Reasons[0].Problem != ""
	})
	answers(admin+"/livez", 200, `{"live":true}`)
}

// checkKEDA asks what the triggers of docs/deploy.md ask.
func checkKEDA(t *testing.T, admin string) {
	t.Helper()
	checked := 0
	for _, b := range blocks(t, "docs/deploy.md") {
		var of struct {
			Triggers []struct {
				Type     string
				Metadata map[string]string
			}
		}
		if b.info != "yaml" || yaml.Unmarshal([]byte(b.text), &of) != nil {
			continue
		}
		for _, trigger := range of.Triggers {
			at, err := url.Parse(trigger.Metadata["url"])
			if err != nil {
				t.Fatal(err)
			}
			_, text := fetch(t, http.DefaultClient, admin+at.RequestURI())
			var answer map[string]any
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			if _, number := answer[trigger.Metadata["valueLocation"]].(float64); !number || trigger.Type != "metrics-api" || at.Port() != "9325" {
				t.Errorf("the trigger %v finds no number in %s", trigger, text)
			}
			checked++
		}
	}
	if checked != 2 {
		t.Errorf("%d triggers were checked, want 2", checked)
	}
}

// TestCosts: the estimates are the requests that the metrics count times the price.
func TestCosts(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(target.Close)
	for _, c := range []struct {
		queue string
		price float64
		flags []string
		of    string
	}{
		{"orders", 0.40, nil, "list price of us-east-1, November 2026"},
		{"orders.fifo", 0.50, nil, "list price of us-east-1, November 2026"},
		{"orders", 2.5, []string{"--request-price", "2.5"}, "--request-price"},
	} {
		t.Run(c.queue+strings.Join(c.flags, ""), func(t *testing.T) {
			t.Parallel()
			p, endpoint := up(t, append([]string{"--queue", c.queue, "--url", target.URL}, c.flags...)...)
			args := []string{"send", "--endpoint", endpoint, c.queue, "one", "two", "three"}
			if strings.HasSuffix(c.queue, ".fifo") {
				args = append(args, "--group", "g")
			}
			if got := reprise(t, "", args...); got.code != 0 {
				t.Fatalf("send failed: %s", got.stderr)
			}
			awaitTrue(t, "the cost of three messages", func() bool {
				families := scrape(t, endpoint)
				requests, _ := reading(families["messaging_client_operation_duration_seconds"], "", "")
				deleted, _ := reading(families["reprise_settled_total"], "reprise_outcome", "delete")
				cost, _ := reading(families["reprise_request_cost_dollars_total"], "messaging_destination_name", c.queue)
				million, _ := reading(families["reprise_cost_dollars_per_million_messages"], "messaging_destination_name", c.queue)
				polling := 1.0 // it has begun and is not yet in the histogram
				return deleted == 3 && requests > 0 && near(cost, (requests+polling)*c.price/1e6) && near(million, cost/3*1e6)
			})
			p.stop()
			if !strings.Contains(p.output(), "estimated cost of requests to SQS") || !strings.Contains(p.output(), c.of) {
				t.Errorf("the log does not say the cost, or not by which price:\n%s", p.output())
			}
		})
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// TestProfiles: --pprof-addr serves profiles to this machine, and refuses other addresses.
func TestProfiles(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--pprof-addr", "127.0.0.1:0")
	url := p.await("profiles      ")
	for _, page := range []string{"heap?debug=1", "goroutine?debug=1", "cmdline"} {
		if code, text := fetch(t, http.DefaultClient, url+page); code != 200 || text == "" {
			t.Errorf("GET %s%s: %d", url, page, code)
		}
	}
	// A web page whose name has been pointed at this machine.
	req, err := http.NewRequest(http.MethodGet, url+"heap", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a stranger's page gets status %d of the profiles, want 403", resp.StatusCode)
	}
	p.stop()

	got := reprise(t, "", "serve", "--memory", "--addr", "127.0.0.1:0", "--pprof-addr", "0.0.0.0:0")
	if got.code == 0 || !strings.Contains(got.stderr, "can be reached from other machines, and profiles show what is in memory") {
		t.Errorf("--pprof-addr 0.0.0.0:0 = %+v, want an error", got)
	}
	_, endpoint := serve(t)
	if code, _ := fetch(t, http.DefaultClient, endpoint+"/debug/pprof/heap"); code == 200 {
		t.Error("without --pprof-addr there are profiles")
	}
}
