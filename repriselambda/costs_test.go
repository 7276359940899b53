package repriselambda_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Prices in USD for a million, or a million GB-seconds, in us-east-1. They are from
// secondary sources of 2026 and unverified, as the page says.
const (
	sqsRequests      = 0.40
	lambdaRequests   = 0.20
	gigabyteSeconds  = 13.3334 // of arm64
	stateTransitions = 25.00

	handlerGigabytes = 0.125
	handlerSeconds   = 0.05 // beside waiting for a function
)

// design is a way to retry, by what a failed run takes on the average.
type design struct {
	name             string
	sqs, invocations float64
	seconds          float64 // that the handler takes, in all its invocations
	transitions      float64
}

// TestCostsOfThePage works out the table of docs/lambda.md.
func TestCostsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/lambda.md")
	if err != nil {
		t.Fatal(err)
	}
	prices := fmt.Sprintf("$%.2f a million SQS requests, $%.2f a million Lambda requests, $%.4f a million GB-seconds of arm64, $%.2f a million state",
		sqsRequests, lambdaRequests, gigabyteSeconds, stateTransitions)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), prices) {
		t.Errorf("the page does not say %s", prices)
	}
	for _, d := range []design{
		{name: "envelope, each failure alone", sqs: 5, invocations: 2, seconds: 2 * handlerSeconds},
		{name: "envelope, ten to a batch", sqs: 1.4, invocations: 0.2, seconds: 0.2 * 2 * handlerSeconds},
		{name: "direct, a function of 1 s", sqs: 6, invocations: 2, seconds: 2*handlerSeconds + 1},
		{name: "direct, a function of 60 s", sqs: 6, invocations: 2, seconds: 2*handlerSeconds + 60},
		{name: "Step Functions, a task with Retry", transitions: 1},
		{name: "Step Functions, states for the waits", transitions: 3},
	} {
		if row := d.row(); !strings.Contains(string(page), row) {
			t.Errorf("the page has not the row\n%s", row)
		}
	}
}

// row is what the page has of d.
func (d design) row() string {
	gigabytes := d.seconds * handlerGigabytes
	cells := []string{
		d.name,
		millions(d.sqs),
		millions(d.invocations),
		millions(gigabytes),
		millions(d.transitions),
		fmt.Sprintf("**$%.2f**", d.sqs*sqsRequests+d.invocations*lambdaRequests+gigabytes*gigabyteSeconds+d.transitions*stateTransitions),
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// millions is a cell with so many millions of something.
func millions(n float64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.4g M", n)
}
