//go:build unix

package main_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestDashboardFirstPaint: a browser that was never here needs at most 100 KB for each page, with all that it loads
// later and however large a message is, and asks no other host for anything, which newTab checks.
func TestDashboardFirstPaint(t *testing.T) {
	t.Parallel()
	target := newOrderTarget(t)
	target.down.Store(true)
	_, endpoint := upWithDashboard(t, target.URL)
	sendBatches(t, endpoint, "orders", 300, orderEntry)
	sendBatches(t, endpoint, "orders-dead", 60, deadOrderEntry)
	noise := make([]byte, 45<<10) // 60 KiB in base64, which gzip makes no smaller than the bytes
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	b := newTab(t, endpoint)
	pages := map[string]string{
		"Overview": "/", "Queue": "/ui/queues/orders", "Dead letters": "/ui/dead", "Letters": "/ui/dead/orders-dead", "Workers": "/ui/workers", "Timeline": "/ui/timeline",
		"Playground": "/ui/playground?queue=orders&breaker=compare", "Local": "/ui/local", "error": "/ui/absent",
	}
	b.expect("404 (Not Found)")
	for name, body := range map[string]string{
		"Message": *orderEntry(1).MessageBody, "Message of 60 KiB": `{"noise":"` + base64.StdEncoding.EncodeToString(noise) + `"}`, "Message of 1 MiB": strings.Repeat("0123456789abcdef", 1<<16),
		"Message, an image": base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), noise...)),
	} {
		sent, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "orders-dead"), MessageBody: aws.String(body)})
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = "/ui/queues/orders-dead/messages/" + *sent.MessageId
	}
	pages["Sign in"] = "/ui/sign-in"
	for name, path := range pages {
		b.checkWeight(name, path)
	}
}

// checkWeight opens a page as a browser that was never here, and fails the test if it is too large.
func (b *tab) checkWeight(name, path string) {
	b.t.Helper()
	call(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	b.open("/ui/sign-in") // so that no stream of the page before sends anything
	b.mu.Lock()
	b.received = 0
	b.mu.Unlock()
	b.open(path)
	b.awaitParts()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.t.Logf("%-20s %6.0f bytes", name, b.received)
	if b.received < 10_000 || b.received > 100_000 {
		b.t.Errorf("%s: %.0f bytes, want at most 100,000", name, b.received)
	}
}
