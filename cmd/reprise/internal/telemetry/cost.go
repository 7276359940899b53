package telemetry

import (
	"fmt"
	"strings"
)

// The list prices in dollars of a million requests, of us-east-1, beyond the free million of each
// month. Other regions may have others. They come from secondary sources.
const (
	PricesOf      = "us-east-1, November 2026"
	StandardPrice = 0.40
	FIFOPrice     = 0.50
)

// Cost is an estimate of the cost of a consumer's requests.
type Cost struct {
	Requests int64   `json:"requests"`
	Messages int64   `json:"messages"`            // that were deleted or dead-lettered
	Price    float64 `json:"dollars_per_million"` // requests
	PriceOf  string  `json:"price_of"`
	Dollars  float64 `json:"dollars"`
	// PerMillion is what a million messages cost at this rate; 0 before the first.
	PerMillion float64 `json:"dollars_per_million_messages,omitempty"`
}

// Estimate returns the cost of requests, and for each of messages, which they have settled. AWS
// counts each begun 64 KiB of a request as one, and repetitions within the SDK, which are not
// known here. price is of a million requests; 0: the list price of the kind of queue, which its
// name tells.
func Estimate(queue string, price float64, requests, messages int64) Cost {
	c := Cost{Requests: requests, Messages: messages, Price: price, PriceOf: "--request-price"}
	if price == 0 {
		c.Price, c.PriceOf = StandardPrice, "list price of "+PricesOf
		if strings.HasSuffix(queue, ".fifo") {
			c.Price = FIFOPrice
		}
	}
	c.Dollars = float64(requests) * c.Price / 1e6
	if messages > 0 {
		c.PerMillion = c.Dollars / float64(messages) * 1e6
	}
	return c
}

// maxPrice is far above any price, so that costs are finite.
const maxPrice = 1e9

// CheckPrice returns an error if a price is negative, or none at all.
func CheckPrice(price float64) error {
	if price >= 0 && price <= maxPrice {
		return nil
	}
	return fmt.Errorf("--request-price is %v: pass the dollars of a million requests, such as 0.40; 0: the list price of %s", price, PricesOf)
}
