package sqsserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The conformance suite on a server whose bodies are only in its journal, and on one that is
// restarted before each request.
func TestConformanceWithJournal(t *testing.T) {
	for _, c := range allCases(t) {
		if !c.fits("typed") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{Seed: 1, BodyCache: -1})
				c.run(t, typedTransport{k.Server})
			})
		})
		t.Run(c.name+"/restarting", func(t *testing.T) {
			for prefix, why := range notKept {
				if strings.HasPrefix(c.name, prefix) {
					t.Skip(why)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{Seed: 1})
				c.run(t, &restartingTransport{k})
			})
		})
	}
}

// notKept has the cases, by the beginning of their names, that a restarted server does not
// pass, and why.
var notKept = map[string]string{
	"attempts/": "the attempts of receives are not kept",
	"fifo/a group that was served goes behind the others": "whose turn it is among groups is not kept",
	"receive/what was returned goes behind what is there": "the order among visible messages is not kept",
	"movetasks/": "the pause of a move task begins anew",
}

// restartingTransport is a transport into a server that was started a moment ago.
type restartingTransport struct{ k *journalServer }

func (d *restartingTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	d.k = d.k.restart()
	return typedTransport{d.k.Server}.call(ctx, action, input)
}
