package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestLinkToTheFormOfALetter: the page of a letter leads to the form about dead letters of its very queue, also if the
// queue has to be named by its URL.
func TestLinkToTheFormOfALetter(t *testing.T) {
	const queue = "https://sqs.eu-west-1.amazonaws.com/1/orders-dead"
	m := &messageView{Queue: queue}
	m.Message.ID = "a&b"
	link, err := url.Parse(m.SelectURL())
	if err != nil || link.EscapedPath() != deadURL(queue) || link.Query().Get("ids") != "a&b" || link.Fragment != "select" {
		t.Errorf("the link is %s, %v", m.SelectURL(), err)
	}
}

// TestWhatAHiddenMessageIsOffered: only one that the consumer of this process has hidden until its retry is offered to
// be retried now, if that can be, and none is said to come when a lease ends that is renewed.
func TestWhatAHiddenMessageIsOffered(t *testing.T) {
	now := time.Unix(1000, 0)
	due := now.Add(time.Hour)
	for name, test := range map[string]struct {
		standing        operate.Standing
		consumed, fifo  bool
		retry, expected bool
		no              string
	}{
		"waits for a retry":                {operate.Standing{State: operate.StandingRetry, Until: due}, true, false, true, true, ""},
		"waits for one of another process": {operate.Standing{State: operate.StandingRetry, Until: due}, false, false, false, true, ""},
		"of a FIFO queue":                  {operate.Standing{State: operate.StandingRetry, Until: due}, true, true, true, true, "FIFO"},
		"due soon":                         {operate.Standing{State: operate.StandingRetry, Until: now.Add(15 * time.Second)}, true, false, true, true, "15 seconds"},
		"due a little later":               {operate.Standing{State: operate.StandingRetry, Until: now.Add(16 * time.Second)}, true, false, true, true, ""},
		"worked on":                        {operate.Standing{State: operate.StandingWorking, Until: due}, true, false, false, false, ""},
		"being settled":                    {operate.Standing{State: operate.StandingSettling, Until: due}, true, false, false, false, ""},
		"held back":                        {operate.Standing{State: operate.StandingHeld, Until: due}, true, false, false, false, ""},
		"delayed":                          {operate.Standing{State: operate.StandingDelayed, Until: due}, true, false, false, true, ""},
		"in flight":                        {operate.Standing{State: operate.StandingInFlight, Until: due}, true, false, false, true, ""},
	} {
		m := &messageView{Now: now, Consumed: test.consumed, FIFO: test.fifo}
		m.Message.State, m.Message.Standing = "in flight", &test.standing
		if m.Retry() != test.retry || m.Expected().IsZero() == test.expected {
			t.Errorf("%s: offered to be retried %v, expected %v", name, m.Retry(), m.Expected())
		}
		if m.Retry() && (m.NoRetry() == "") != (test.no == "") || !strings.Contains(m.NoRetry(), test.no) && m.Retry() {
			t.Errorf("%s: it cannot be retried now because %q, want %q", name, m.NoRetry(), test.no)
		}
	}
}
