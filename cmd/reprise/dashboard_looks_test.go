//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// picturesVariable names a folder for pictures of each page in each state, for somebody to look at.
const picturesVariable = "REPRISE_PICTURES"

// longName is as long as the name of a queue can be.
const longName = "payments-reconciliation-of-marketplace-sellers-in-eu-central-1-for-production-v2"

// TestDashboardLooks opens each page in each state that an operator meets: for people with a phone or a large screen,
// in both color schemes, no text is cut off, nothing is wider than the screen, every control can be hit, and
// axe-core and the browser find nothing. `REPRISE_PICTURES=FOLDER go test -run DashboardLooks .` keeps a picture of each.
func TestDashboardLooks(t *testing.T) {
	t.Parallel()
	chromium(t)
	t.Run("nothing", func(t *testing.T) { // a server without queues
		t.Parallel()
		_, endpoint := serve(t)
		b := newTab(t, endpoint)
		b.expect("404 (Not Found)")
		b.lookAt("nothing", map[string]string{"overview": "/", "dead": "/ui/dead", "workers": "/ui/workers", "timeline": "/ui/timeline", "local": "/ui/local", "error": "/ui/queues/absent", "nopage": "/ui/absent"})
	})
	t.Run("idle", func(t *testing.T) { // queues with nothing in them
		t.Parallel()
		target := newControlled(t)
		_, endpoint := upWithDashboard(t, target.URL)
		b := newTab(t, endpoint)
		b.lookAt("idle", map[string]string{"overview": "/", "queue": "/ui/queues/orders", "dead": "/ui/dead", "letters": "/ui/dead/orders-dead", "workers": "/ui/workers", "timeline": "/ui/timeline", "local": "/ui/local", "playground": "/ui/playground"})
	})
	t.Run("traffic", func(t *testing.T) {
		t.Parallel()
		target := newOrderTarget(t)
		_, endpoint := upWithDashboard(t, target.URL)
		if _, err := client(endpoint).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("mails.fifo"), Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var sender sync.WaitGroup
		defer sender.Wait()
		defer close(stop)
		sender.Go(func() {
			for i := 0; ; i += 10 {
				sendBatches(t, endpoint, "orders", 10, func(j int) types.SendMessageBatchRequestEntry { return orderEntry(i + j) })
				select {
				case <-stop:
					return
				case <-time.After(250 * time.Millisecond):
				}
			}
		})
		sendBatches(t, endpoint, "orders", 20, func(i int) types.SendMessageBatchRequestEntry {
			e := orderEntry(i)
			e.DelaySeconds = 800
			return e
		})
		sendBatches(t, endpoint, "mails.fifo", 5, func(i int) types.SendMessageBatchRequestEntry {
			e := orderEntry(i)
			e.MessageGroupId, e.MessageDeduplicationId = aws.String("customer-42"), e.Id
			return e
		})
		b := newTab(t, endpoint)
		b.open("/ui/queues/orders?state=delayed") // which others are not for long
		b.await("a message that waits", "document.querySelector('#list table a')")
		message := eval[string](b, "document.querySelector('#list table a').getAttribute('href')")
		b.lookAt("traffic", map[string]string{"overview": "/", "queue": "/ui/queues/orders", "message": message, "dead": "/ui/dead", "workers": "/ui/workers", "timeline": "/ui/timeline", "local": "/ui/local"})
	})
	t.Run("outage", func(t *testing.T) { // thousands wait, the breaker is open, letters of many kinds, another queue without a consumer
		t.Parallel()
		target := newOrderTarget(t)
		_, endpoint := upWithDashboard(t, target.URL)
		sendBatches(t, endpoint, "orders-dead", 300, deadOrderEntry)
		target.down.Store(true)
		sendBatches(t, endpoint, "orders", 4000, orderEntry)
		b := newTab(t, endpoint)
		b.open("/")
		b.awaitText("the breaker is open: outage since ")
		if *update { // the pictures of the README
			b.await("rates", "/for (1[2-9]|[2-5].)s/.test(document.body.innerText)")
			for _, scheme := range []string{"light", "dark"} {
				b.look(1440, scheme)
				b.picture("../../docs/dashboard-outage-1440-" + scheme + ".png")
			}
		}
		if _, err := client(endpoint).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(longName), Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":"1"}`,
		}}); err != nil {
			t.Fatal(err)
		}
		sendBatches(t, endpoint, longName, 1000, orderEntry)
		b.open("/ui/dead/orders-dead")
		b.await("samples of letters", "document.querySelector('.sample')")
		letter := eval[string](b, "document.querySelector('.sample').getAttribute('href')")
		b.open("/ui/queues/orders?state=in+flight")
		b.await("a message that waits", "document.querySelector('#list table a')")
		message := eval[string](b, "document.querySelector('#list table a').getAttribute('href')")
		b.lookAt("outage", map[string]string{
			"overview": "/", "queue": "/ui/queues/orders", "long": "/ui/queues/" + longName, "message": message, "letter": letter, "dead": "/ui/dead", "letters": "/ui/dead/orders-dead",
			"workers": "/ui/workers", "timeline": "/ui/timeline", "local": "/ui/local", "playground": "/ui/playground?queue=orders&breaker=compare&messages=200",
		})
	})
	t.Run("sign-in", func(t *testing.T) {
		t.Parallel()
		p := startIn(t, environment("TOKEN=0123456789abcdef0123456789abcdef"), "serve", "--memory", "--addr", "127.0.0.1:0", "--admin-token", "env:TOKEN")
		b := newTab(t, p.await("SQS endpoint"))
		b.expect("401 (Unauthorized)")
		b.lookAt("sign-in", map[string]string{"form": "/"})
	})
}

// lookAt opens pages, by their names, as people with different screens see them.
func (b *tab) lookAt(state string, pages map[string]string) {
	b.t.Helper()
	folder := os.Getenv(picturesVariable)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			if folder == "" && (scheme == "light") != (width == 1440) { // what depends on both, only a person sees
				continue
			}
			b.look(width, scheme)
			for name, path := range pages {
				b.open(path)
				b.awaitParts()
				what := fmt.Sprintf("%s-%s-%d-%s", state, name, width, scheme)
				b.checkLook(what)
				if folder != "" {
					b.pictureOfAll(filepath.Join(folder, what+".png"))
				}
			}
		}
	}
}
