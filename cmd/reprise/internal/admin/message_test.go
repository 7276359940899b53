package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// withMessages is an API of a server with messages in all states, and dead letters.
func withMessages(t *testing.T) (*served, *sqsserver.Server) {
	t.Helper()
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { server.Close() })
	for _, queue := range []string{"dead", "orders"} {
		if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: queue}); err != nil {
			t.Fatal(err)
		}
	}
	send := func(queue string, delay int32, body string, attributes ...sqsserver.MessageAttribute) {
		t.Helper()
		in := &sqsserver.SendMessageInput{QueueUrl: queue}
		in.MessageBody, in.MessageAttributes = body, attributes
		if delay > 0 {
			in.DelaySeconds = sqsserver.Int(delay)
		}
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	send("orders", 0, "first")
	if out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "orders"}); err != nil || len(out.Messages) != 1 {
		t.Fatal(out, err)
	}
	send("orders", 60, "later")
	for i := range 10 {
		send("orders", 0, fmt.Sprint(i, " </script>\u202e", strings.Repeat("\u00e9", 1000)),
			sqsserver.MessageAttribute{Name: "bytes", DataType: "Binary", BinaryValue: []byte{0, 255}}, sqsserver.MessageAttribute{Name: "tenant", DataType: "String", StringValue: "acme"})
	}
	for i := range 5 {
		story := fmt.Sprintf(`{"reason":"permanent","error":"card ending in %d was refused","attempts":2,"source":"arn:aws:sqs:us-east-1:000000000000:orders","origin":"o-%d","message":"m-%d","last":"2026-01-02T03:04:05Z"}`, 4000+i, i, i)
		send("dead", 0, "{}", sqsserver.MessageAttribute{Name: reprise.StoryAttribute, DataType: "String", StringValue: story})
	}
	return serve(t, func(cfg *admin.Config) { cfg.Server, cfg.JobQueue = server, jobQueue }), server
}

// TestPagesEnd: pages have all that was in a queue at the first, although what is sent meanwhile takes the places of messages
// that have gone, and they end with that, although there is always more.
func TestPagesEnd(t *testing.T) {
	s, server := withMessages(t)
	send := func(n int, body string) {
		t.Helper()
		for range n {
			in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
			in.MessageBody = body
			if _, err := server.SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(10, "old")
	for { // what was sent before goes, and leaves its places
		out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "orders"})
		if err != nil || len(out.Messages) != 1 {
			t.Fatal(out, err)
		}
		if out.Messages[0].Body == "old" {
			break
		}
		if err := server.DeleteMessage(t.Context(), &sqsserver.DeleteMessageInput{QueueUrl: "orders", ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
	old, after, pages := 0, "", 0
	for pages = 1; pages < 20; pages++ {
		_, text := s.call("GET", admin.Path+"queues/orders/messages?limit=4&after="+after, "")
		page := decode[admin.Messages](t, text)
		for _, m := range page.Messages {
			if m.Body == "old" {
				old++
			}
		}
		if after = page.Next; after == "" {
			break
		}
		send(5, "new")
	}
	if old != 10 || pages == 20 {
		t.Errorf("%d of 10 old messages on %d pages", old, pages)
	}
}

// TestPagesGoOnBehindWhatDoesNotMatch: one request looks at so many messages at most. If few of them match, or none,
// the next page has the others: a page that is empty is not the end.
func TestPagesGoOnBehindWhatDoesNotMatch(t *testing.T) {
	s, server := serveOwn(t, nil)
	const others = 20_100
	for i := range others + 1 {
		in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
		if in.MessageBody = "other"; i == others {
			in.MessageBody = "wanted"
		}
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	looked, pages, after := 0, 0, ""
	var found []admin.Message
	for more := true; more && pages < 10; more = after != "" {
		_, text := s.call("GET", admin.Path+"queues/orders/messages?selection="+url.QueryEscape(`{"body":"wanted"}`)+"&after="+after, "")
		page := decode[admin.Messages](t, text)
		looked, pages, after, found = looked+page.Looked, pages+1, page.Next, append(found, page.Messages...)
	}
	if len(found) != 1 || found[0].Body != "wanted" || looked != others+1 || pages < 2 {
		t.Errorf("%d messages found on %d pages, for which %d of %d were looked at", len(found), pages, looked, others+1)
	}
}

// TestMessages: a queue in pages, in all states or in one, with the beginning of each body; nothing is
// received by that.
func TestMessages(t *testing.T) {
	s, server := withMessages(t)
	states := make(map[string]int)
	after, pages := "", 0
	for {
		status, text := s.call("GET", admin.Path+"queues/orders/messages?limit=5&body=101&after="+after, "")
		page := decode[admin.Messages](t, text)
		if status != 200 || len(page.Messages) > 5 {
			t.Fatalf("%d, %d messages", status, len(page.Messages))
		}
		for _, m := range page.Messages {
			states[m.State]++
			if len(m.Body) > 101 || !utf8.ValidString(m.Body) || m.BodyBytes < len(m.Body) || (m.State != "visible") == m.Due.IsZero() {
				t.Errorf("message %+v", m)
			}
		}
		pages++
		if after = page.Next; after == "" {
			break
		}
	}
	if states["visible"] != 10 || states["delayed"] != 1 || states["in flight"] != 1 || pages != 3 {
		t.Errorf("%v on %d pages", states, pages)
	}
	for state, want := range map[string]int{"visible": 10, "delayed": 1, "in flight": 1} {
		_, text := s.call("GET", admin.Path+"queues/orders/messages?state="+url.QueryEscape(state), "")
		if page := decode[admin.Messages](t, text); len(page.Messages) != want || page.Next != "" {
			t.Errorf("%s: %d messages", state, len(page.Messages))
		}
	}
	_, text := s.call("GET", admin.Path+"queues/orders/messages?state=visible&limit=1", "")
	id := decode[admin.Messages](t, text).Messages[0].ID
	_, text = s.call("GET", admin.Path+"queues/orders/messages/"+id, "")
	m := decode[admin.Message](t, text)
	if len(m.Body) != m.BodyBytes || m.BodyBytes < 2000 || m.Receives != 0 || m.Attributes["tenant"].Value != "acme" || len(m.Attributes["bytes"].Binary) != 2 {
		t.Errorf("message %+v", m)
	}
	if strings.Contains(text, "</script>") {
		t.Errorf("a body could end a script that the reply is put into: %.200s", text)
	}
	for _, info := range server.Queues() {
		if info.Name == "orders" && (info.Visible != 10 || info.InFlight != 1) {
			t.Errorf("after the looks: %+v", info)
		}
	}
}

// TestDeadAndStories: dead letters by reason and error, and the story of one by its first id.
func TestDeadAndStories(t *testing.T) {
	s, _ := withMessages(t)
	_, text := s.call("GET", admin.Path+"queues/dead/dead", "")
	dead := decode[admin.Dead](t, text)
	if len(dead.Groups) != 1 || dead.Messages != 5 || dead.Groups[0].Count != 5 || dead.Groups[0].Pattern != "card ending in <n> was refused" || dead.Groups[0].Source != "orders" {
		t.Errorf("%s", text)
	}
	_, text = s.call("GET", admin.Path+"queues/dead/messages?limit=1", "")
	if m := decode[admin.Messages](t, text).Messages[0]; m.Death == nil || m.Death.Origin != "o-0" || len(m.Attributes) != 0 {
		t.Errorf("a dead letter: %s", text)
	}
	for _, id := range []string{"o-3", "m-3"} {
		_, text = s.call("GET", admin.Path+"stories/"+id, "")
		events := decode[admin.Story](t, text).Events
		if n := len(events); n < 3 || events[n-1].Event != "is here" || events[n-1].Detail != "visible, received 0 times" || !strings.Contains(text, "card ending in 4003 was refused") {
			t.Errorf("%s: %s", id, text)
		}
	}
	_, text = s.call("GET", admin.Path+"queues/orders/messages?state=in+flight", "")
	_, text = s.call("GET", admin.Path+"stories/"+decode[admin.Messages](t, text).Messages[0].ID, "")
	if !strings.Contains(text, "in flight, received 1 time") {
		t.Errorf("the story of a message in flight: %s", text)
	}
}

// TestLookMistakes name the input and the remedy.
func TestLookMistakes(t *testing.T) {
	s, _ := withMessages(t)
	for _, test := range []struct {
		path   string
		status int
		code   string
	}{
		{"queues/absent/messages", 404, "no-such-queue"},
		{"queues/absent/messages/x", 404, "no-such-queue"},
		{"queues/absent/dead", 404, "no-such-queue"},
		{"queues/orders/messages/x", 404, "no-such-message"},
		{"queues/orders/messages/00000000-0000-0000-0000-000000000000", 404, "no-such-message"},
		{"queues/orders/messages?limit=0", 400, "bad-request"},
		{"queues/orders/messages?limit=1001", 400, "bad-request"},
		{"queues/orders/messages?body=x", 400, "bad-request"},
		{"queues/orders/messages?after=x", 400, "bad-request"},
		{"queues/orders/messages?state=gone", 400, "bad-request"},
		{"stories/x", 404, "no-such-message"},
	} {
		status, text := s.call("GET", admin.Path+test.path, "")
		if got := decode[admin.Error](t, text); status != test.status || got.Code != test.code {
			t.Errorf("%s: %d %s", test.path, status, text)
		}
	}
	without := serve(t, nil)
	for _, path := range []string{"queues/orders/messages", "queues/orders/messages/x", "queues/orders/dead", "stories/x"} {
		if status, text := without.call("GET", admin.Path+path, ""); status != 501 || !strings.Contains(text, "use reprise peek") {
			t.Errorf("%s without a server: %d %s", path, status, text)
		}
	}
}

// TestHeld: a consumer tells where a message stands that it has hidden until its retry, and of others
// that it does not know them.
func TestHeld(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	id := q.Send("order")[0]
	c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return errors.New("broken") }),
		reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 7}, Logger: slog.New(slog.DiscardHandler)})
	s := serve(t, func(cfg *admin.Config) {
		cfg.Server = q.Server()
		cfg.Consumers = func() []admin.Running {
			return []admin.Running{{URL: q.URL(), Policy: "constant(1h)", Consumer: c.Consumer}}
		}
	})
	path := admin.Path + "consumers/" + url.PathEscape(q.URL()) + "/messages/"
	for {
		status, text := s.call("GET", path+id, "")
		if status != 200 {
			continue // not yet received
		}
		h := decode[operate.Held](t, text)
		if h.Stage != "backoff" {
			continue
		}
		if h.ID != id || h.Attempt != 2 || h.MaxAttempts != 7 || h.Problem != "broken" || h.Policy != "constant(1h)" || time.Until(h.Until) < 30*time.Minute {
			t.Errorf("%s", text)
		}
		break
	}
	if status, text := s.call("GET", path+"absent", ""); status != 404 || decode[admin.Error](t, text).Code != "no-such-message" {
		t.Errorf("an unknown message: %d %s", status, text)
	}
	_, text := s.call("GET", admin.Path+"stories/"+id, "")
	story := decode[admin.Story](t, text)
	if last := story.Events[len(story.Events)-1]; last.Standing == nil || last.Standing.State != operate.StandingRetry || last.Detail != "waiting for a retry, received 1 time" || len(story.Places) != 1 {
		t.Errorf("its story: %s", text)
	}
	c.Crash() // its long poll need not end
}

// TestHeldHasItsNames: what a consumer knows of a message is shown under its own names: of one that runs, of one behind
// it in its group, and of one that waits for its retry.
func TestHeldHasItsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		ids := make(map[string]string)
		for _, m := range []struct{ group, body string }{{"a", "runs"}, {"a", "behind"}, {"b", "fails"}} {
			ids[m.body] = q.SendMessage(sqsserver.SendMessageEntry{MessageBody: m.body, MessageGroupId: m.group, MessageDeduplicationId: m.body})
		}
		goOn := make(chan struct{})
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "fails" {
				return reprise.RetryAfter(time.Hour, errors.New("not yet"))
			}
			<-goOn
			return nil
		}), reprise.Config{Outage: reprise.Outage{Key: func(m *reprise.Message) string { return "key of " + m.Body }}, Logger: slog.New(slog.DiscardHandler)})
		defer close(goOn)
		client := beside(t, q, c)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		for body, id := range ids {
			got, err := client.Held(t.Context(), q.Name(), id)
			want, known := c.Standing(id)
			if err != nil || !known {
				t.Fatalf("%s: %v, known %t", body, err, known)
			}
			sameNames(t, body, got, want, "Origin", "Group", "Outcome", "Policy")
			if got.Group != want.GroupID || got.Policy != "" || got.Origin != "" || got.Outcome != "" {
				t.Errorf("%s: %+v", body, got)
			}
		}
	})
}

// withRetryLane runs a consumer with a retry lane, on a server of its own, whose messages fail at their first attempt
// and wait for ten minutes. It returns the API, and the copies in the lane once each of the bodies has one there.
func withRetryLane(t *testing.T, attempts *atomic.Int32, bodies ...string) (s *served, c *reprisetest.Consumer, q, lane *reprisetest.Queue, copies []sqsserver.MessageInfo) {
	t.Helper()
	q = reprisetest.NewQueue(t, nil)
	lane = q.NewQueue(nil)
	q.Send(bodies...)
	c = q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		if attempts.Add(1); m.Attempt == 1 {
			return errors.New("broken")
		}
		return nil
	}), reprise.Config{
		Retry:     retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 7},
		RetryLane: reprise.RetryLane{URL: lane.URL()}, Logger: slog.New(slog.DiscardHandler), LongPoll: time.Second,
	})
	s = serve(t, func(cfg *admin.Config) {
		cfg.Server = q.Server()
		cfg.Consumers = func() []admin.Running {
			return []admin.Running{{URL: q.URL(), RetryLaneURL: lane.URL(), Policy: "constant(10m)", Consumer: c.Consumer}}
		}
	})
	await(t, "the copies", func() bool { copies = lane.Messages(); return len(copies) == len(bodies) })
	return s, c, q, lane, copies
}

// TestMessageOfARetryLane: the consumer of a queue is the one that explains the messages of its retry lane. A copy that
// waits there runs at once when it is released, before it is due, and counts as the attempt that it is.
func TestMessageOfARetryLane(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	s, c, _, lane, copies := withRetryLane(t, &attempts, "order")
	path := admin.Path + "queues/" + lane.Name() + "/messages/" + copies[0].ID
	_, text := s.call("GET", path+"?standing=true", "")
	if m := decode[admin.Message](t, text); m.State != "delayed" || m.Standing == nil || m.Standing.State != operate.StandingRetry || m.Standing.Error != "broken" || !m.WaitsAsCopy(time.Now()) {
		t.Errorf("the copy: %s", text)
	}
	if status, text := s.call("POST", path+"/release", "{}"); status != 200 {
		t.Errorf("release: %d %s", status, text)
	}
	await(t, "its second attempt", func() bool { return attempts.Load() == 2 })
	lane.WaitEmpty(10 * time.Second)
	c.Stop()
	if n := c.RetryLane().Status().Counts; n.Attempts != 1 || n.Deleted != 1 || n.Parked != 0 {
		t.Errorf("the lane's consumer counts %+v, want one attempt, which succeeds", n)
	}
	_, text = s.call("GET", admin.Path+"stats", "") // messages that end in the lane have cost what they have cost before
	if of := decode[admin.Stats](t, text).Consumers[0]; of.Cost.Messages != 1 || of.Cost.Requests != of.Calls.Total() || of.Calls.Deletes == 0 {
		t.Errorf("the statistics of the consumer: %s", text)
	}
}

// TestCopyIsNotRetried: a copy that the consumer of this process could not retry before it is due stays hidden, with the
// reason and what to do.
func TestCopyIsNotRetried(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	s, c, q, lane, copies := withRetryLane(t, &attempts, "elsewhere", "here")
	path := admin.Path + "queues/" + lane.Name() + "/messages/"
	c.Pause() // another process is to receive it
	await(t, "the end of the lane's receives", func() bool {
		return !slices.ContainsFunc(lane.Server().Queues(), func(q sqsserver.QueueInfo) bool { return q.Polls > 0 })
	})
	lane.Release(copies[0].ID)
	in := &sqsserver.ReceiveMessageInput{QueueUrl: lane.Name()}
	in.VisibilityTimeout = sqsserver.Int(600)
	await(t, "that somebody else receives it", func() bool {
		out, err := lane.Server().ReceiveMessage(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Messages) == 1
	})
	if status, text := s.call("POST", path+copies[0].ID+"/release", "{}"); status != 409 || !strings.Contains(text, "another process has received it") || !strings.Contains(text, "reprise wake "+lane.Name()+" --id "+copies[0].ID) {
		t.Errorf("release of what another process has: %d %s", status, text)
	}
	c.Resume()
	c.Stop()
	if status, text := s.call("POST", path+copies[1].ID+"/release", "{}"); status != 409 || !strings.Contains(text, "it stops") {
		t.Errorf("release without a consumer that runs: %d %s", status, text)
	}
	_, text := s.call("POST", admin.Path+"consumers/"+url.PathEscape(q.URL())+"/wake", "{}")
	done := decode[admin.Done](t, text)
	if done.Woken != 0 || done.CopiesLeft != 1 || !strings.HasPrefix(done.LeftText(), "1 copy left to be retried when due: the circuit breaker is open, the consumer stops") {
		t.Errorf("wake: %s", text)
	}
	for _, m := range lane.Messages() {
		if m.State == sqsserver.Visible {
			t.Errorf("%q is visible", m.Body)
		}
	}
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts, want the first of each", n)
	}
}

// TestWakeRetriesCopies: wake retries copies that wait with a delay, those of the ids that it is given or all, once each;
// with keys it leaves them.
func TestWakeRetriesCopies(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	s, c, q, lane, copies := withRetryLane(t, &attempts, "a", "b", "c")
	wake := func(body string, want admin.Done) {
		t.Helper()
		status, text := s.call("POST", admin.Path+"consumers/"+url.PathEscape(q.URL())+"/wake", body)
		done := decode[admin.Done](t, text)
		if status != 200 || done.Woken != want.Woken || !slices.Equal(done.NotWoken, want.NotWoken) || done.CopiesLeft != 0 || done.LeftText() != "" {
			t.Errorf("wake %s: %d %s", body, status, text)
		}
	}
	const unknown = "00000000-0000-4000-8000-000000000000"
	wake(`{"messages":["`+copies[0].ID+`","`+unknown+`"]}`, admin.Done{Woken: 1, NotWoken: []string{unknown}})
	await(t, "its second attempt", func() bool { return attempts.Load() == 4 })
	wake(`{"keys":["acme"]}`, admin.Done{})
	await(t, "that two are left", func() bool { return len(lane.Messages()) == 2 })
	wake(`{}`, admin.Done{Woken: 2})
	lane.WaitEmpty(10 * time.Second)
	wake(`{}`, admin.Done{})
	c.Stop()
	if n := attempts.Load(); n != 6 {
		t.Errorf("%d attempts, want two of each", n)
	}
}
