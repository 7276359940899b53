package daemon

import (
	"path"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/telemetry"
)

// Watching is how a [Daemon] or a [Worker] is watched, besides /health and /metrics.
type Watching struct {
	// Exporter sends metrics and traces. Default: nothing is sent.
	Exporter *telemetry.Exporter
	// RequestPrice is what a million requests cost, in dollars. Default: the list price.
	RequestPrice float64
	// PprofAddr is the host:port of loopback on which profiles are served. Default: none are.
	PprofAddr string
}

var (
	costDesc = prometheus.NewDesc("reprise_request_cost_dollars_total",
		"Estimated cost of the consumer's requests to SQS, at --request-price or the list price of "+telemetry.PricesOf+".", []string{"messaging_destination_name"}, nil)
	costPerMillionDesc = prometheus.NewDesc("reprise_cost_dollars_per_million_messages",
		"The same for a million messages, at the rate since the consumer began.", []string{"messaging_destination_name"}, nil)
)

// cost estimates the cost of the consumer's requests.
func (c *consumer) cost() telemetry.Cost {
	s := c.Status()
	return telemetry.Estimate(path.Base(c.of.QueueURL), c.price, s.Calls.Total(), s.Counts.Deleted+s.Counts.DeadLettered)
}

// collectCosts gives the costs of all consumers. Two of the same name are one series.
func (cs *consumers) collectCosts(out chan<- prometheus.Metric) {
	sums := make(map[string]telemetry.Cost)
	for _, c := range cs.all() {
		name := path.Base(c.of.QueueURL)
		cost, sum := c.cost(), sums[name]
		sums[name] = telemetry.Estimate(name, cs.watching.RequestPrice, sum.Requests+cost.Requests, sum.Messages+cost.Messages)
	}
	for name, cost := range sums {
		out <- counter(costDesc, cost.Dollars, name)
		if cost.Messages > 0 {
			out <- gauge(costPerMillionDesc, cost.PerMillion, name)
		}
	}
}

// logCost logs the cost of a consumer's requests when it has stopped.
func (c *consumer) logCost() {
	cost, logger := c.cost(), c.of.Config.Logger
	if cost.Messages == 0 || logger == nil {
		return
	}
	logger.Info("estimated cost of requests to SQS", "queue", path.Base(c.of.QueueURL), "requests", cost.Requests, "messages", cost.Messages,
		"dollars", cost.Dollars, "dollars_per_million_messages", cost.PerMillion, "price_per_million_requests", cost.Price, "price_of", cost.PriceOf)
}

// startExporter exports the metrics of registry and the consumers, and pushes the step that
// exports the rest.
func (cs *consumers) startExporter(registry prometheus.Gatherer, steps *stopStack) {
	exporter := cs.watching.Exporter
	exporter.Start(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return append(prometheus.Gatherers{registry}, cs.gatherers()...).Gather()
	}))
	if exporter != nil {
		steps.push("the telemetry", exporter.Stop)
	}
}
