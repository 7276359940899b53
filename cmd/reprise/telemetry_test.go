//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestMetricsOfTheConsumer: the consumer's metrics have the names and values of the page, and the
// dashboard and the alert rules query only existing ones.
func TestMetricsOfTheConsumer(t *testing.T) {
	t.Parallel()
	families := scrapeConsumer(t)
	t.Run("values", func(t *testing.T) {
		for _, want := range []struct {
			metric, label, value string
			is                   float64
		}{
			{"reprise_attempts_total", "reprise_outcome", "delete", 3},
			{"reprise_attempts_total", "reprise_outcome", "retry", 3},
			{"reprise_attempts_total", "reprise_outcome", "dead-letter", 2},
			{"reprise_retries_total", "reprise_reason", "policy", 2},
			{"reprise_retries_total", "reprise_reason", "retry-after", 1},
			{"reprise_retry_delay_seconds", "reprise_reason", "policy", 2},
			{"reprise_exhausted_total", "reprise_reason", "attempts", 1},
			{"reprise_exhausted_total", "reprise_reason", "age", 0},
			{"reprise_dlq_sent_total", "reprise_reason", "permanent", 1},
			{"reprise_dlq_sent_total", "reprise_reason", "attempts", 1},
			{"reprise_dlq_sent_total", "reprise_reason", "age", 0},
			{"reprise_settled_total", "reprise_outcome", "dead-letter", 2},
			{"reprise_expiring_total", "", "", 0},
			{"reprise_visibility_extensions_total", "", "", 0},
			{"reprise_inflight", "reprise_state", "processing", 0},
			{"reprise_circuit_state", "reprise_state", "open", 0},
			{"reprise_consumer_state", "reprise_state", "ok", 1},
			{"messaging_process_duration_seconds", "error_type", "permanent", 1},
			{"messaging_client_consumed_messages_total", "", "", 8},
		} {
			if is, ok := reading(families[want.metric], want.label, want.value); !ok || is != want.is {
				t.Errorf("%s{%s=%q} is %v (there: %v), want %v", want.metric, want.label, want.value, is, ok, want.is)
			}
		}
		if n, _ := reading(families["messaging_client_operation_duration_seconds"], "messaging_operation_name", "DeleteMessageBatch"); n == 0 {
			t.Error("no request that deletes was counted")
		}
	})
	t.Run("page", func(t *testing.T) { checkPage(t, families) })
	t.Run("dashboard", func(t *testing.T) { checkDashboard(t, families) })
	t.Run("alerts", func(t *testing.T) { checkAlerts(t, families) })
}

// scrapeConsumer lets the program deliver messages that succeed, fail and are given
// up, and returns its metrics.
func scrapeConsumer(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		first := r.Header.Get("X-Reprise-Attempt") == "1"
		switch {
		case string(body) == "bad":
			w.WriteHeader(http.StatusUnprocessableEntity)
		case string(body) == "busy" && first:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case string(body) == "flaky" && first, string(body) == "hopeless":
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(srv.Close)
	_, endpoint := up(t, "--queue", "orders", "--url", srv.URL, "--retry", "constant(1s) jitter=none attempts=2")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "good", "bad", "busy", "flaky", "hopeless"); got.code != 0 {
		t.Fatalf("send failed: %s", got.stderr)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		families := scrape(t, endpoint)
		deleted, _ := reading(families["reprise_settled_total"], "reprise_outcome", "delete")
		dead, _ := reading(families["reprise_settled_total"], "reprise_outcome", "dead-letter")
		runs, _ := reading(families["reprise_attempts_total"], "", "")                     // the last may be told of after its settlement
		running, _ := reading(families["reprise_inflight"], "reprise_state", "processing") // and be let go after it
		if deleted == 3 && dead == 2 && runs == 8 && running == 0 {
			return families
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v messages were deleted and %v dead-lettered in %v runs, want 3 and 2 in 8", deleted, dead, runs)
		}
	}
}

// scrape reads a page of metrics as Prometheus would: it refuses a page on which a
// metric stands twice.
func scrape(t *testing.T, endpoint string) map[string]*dto.MetricFamily {
	t.Helper()
	_, page := fetch(t, http.DefaultClient, endpoint+"/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("the metrics cannot be read: %v\n%s", err, page)
	}
	return families
}

// reading sums the metrics of a family with a label's value: the count of
// histograms. It reports whether there are any.
func reading(family *dto.MetricFamily, label, value string) (sum float64, found bool) {
	for _, m := range family.GetMetric() {
		if label != "" && !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
			continue
		}
		found = true
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum, found
}

// checkPage compares the page's table of metrics with the existing ones.
func checkPage(t *testing.T, families map[string]*dto.MetricFamily) {
	text, err := os.ReadFile(filepath.Join(root, "docs/telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = true
	}
	for name := range documented {
		if families[name] == nil && name != "messaging_client_sent_messages_total" { // the program sends nothing itself
			t.Errorf("the page tells of %s, which the program does not have", name)
		}
	}
	for name, family := range families {
		_, ofConsumer := reading(family, "messaging_destination_name", "orders")
		if ofConsumer && !documented[name] {
			t.Errorf("the page does not tell of %s", name)
		}
	}
}

// dashboard is the part of a Grafana dashboard that says what is asked for.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func checkDashboard(t *testing.T, families map[string]*dto.MetricFamily) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/reprise.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	ids, titles := make(map[int]bool), make(map[string]bool)
	taken := make(map[[2]int]string)
	asked := make(map[string]bool)
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("panel %d, %q: its id or title stands twice, or it has none", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the grid", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[place]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[place] = p.Title
			}
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q has %d queries", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			checkQuery(t, families, target.Expr)
			maps.Insert(asked, maps.All(metricsOf(target.Expr)))
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, label[1]) {
					t.Errorf("panel %q shows the label %s, which %s drops", p.Title, label[1], target.Expr)
				}
			}
		}
	}
	for name, family := range families {
		if _, ofConsumer := reading(family, "messaging_destination_name", "orders"); ofConsumer && !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	if len(d.Templating.List) != 2 {
		t.Fatalf("%d variables, want the data source and the queue", len(d.Templating.List))
	}
	query, _ := d.Templating.List[1].Query.(map[string]any)
	if got := query["query"]; got != "label_values(reprise_attempts_total, messaging_destination_name)" {
		t.Errorf("the queues are asked for by %v", got)
	}
}

func checkAlerts(t *testing.T, families map[string]*dto.MetricFamily) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/reprise.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			checked++
			checkQuery(t, families, rule.Expr)
			if rule.Alert == "" || rule.Annotations["summary"] == "" {
				t.Errorf("the rule %+v has no name or says nothing", rule)
			}
		}
	}
	if checked == 0 {
		t.Error("the file has no rules")
	}
}

var (
	strayLabels = regexp.MustCompile(`\{[^}]*\}|\b(by|without|on|ignoring)\s*\([^)]*\)|\[[^\]]*\]|"[^"]*"`)
	identifier  = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	selector    = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher     = regexp.MustCompile(`(\w+)(=~|!=|!~|=)"([^"]*)"`)
)

// metricsOf are the metrics that a PromQL query names: histograms without the end
// of their series' names.
func metricsOf(query string) map[string]bool {
	names := make(map[string]bool)
	for _, word := range identifier.FindAllString(strayLabels.ReplaceAllString(query, ""), -1) {
		if !strings.HasSuffix(word, "(") && strings.Contains(word, "_") {
			names[family(word)] = true
		}
	}
	return names
}

func family(series string) string {
	for _, end := range []string{"_bucket", "_count", "_sum"} {
		if name, ok := strings.CutSuffix(series, end); ok {
			return name
		}
	}
	return series
}

// checkQuery checks that the metrics and labels in a query exist.
func checkQuery(t *testing.T, families map[string]*dto.MetricFamily, query string) {
	t.Helper()
	names := metricsOf(query)
	if len(names) == 0 || strings.Count(query, "(") != strings.Count(query, ")") || strings.Count(query, "{") != strings.Count(query, "}") {
		t.Errorf("%q is no query of a metric", query)
	}
	for name := range names {
		if families[name] == nil {
			t.Errorf("%s: the program does not have %s", query, name)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			has := slices.ContainsFunc(families[family(s[1])].GetMetric(), func(metric *dto.Metric) bool {
				return slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == m[1] })
			})
			if !has && m[1] != "error_type" { // which only failures have
				t.Errorf("%s: %s has no label %s", query, s[1], m[1])
			}
		}
	}
}
