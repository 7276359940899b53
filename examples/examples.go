// Package examples holds real-looking input: webhooks of a shop, a payment
// provider, a code host, a build service, a courier, a chat and a calendar, as
// they would lie in a queue.
package examples

import (
	_ "embed"
	"strings"
)

//go:embed webhooks.jsonl
var webhooks string

// Webhooks returns the messages of webhooks.jsonl, one body each.
func Webhooks() []string {
	return strings.Split(strings.TrimSuffix(webhooks, "\n"), "\n")
}
