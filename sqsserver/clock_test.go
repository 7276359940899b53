package sqsserver_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

func (b *testServer) advance(d time.Duration) {
	b.Helper()
	if err := b.server.Advance(d); err != nil {
		b.Fatal(err)
	}
}

// Hidden messages become visible, and old ones expire, without waiting.
func TestAdvance(t *testing.T) {
	b := newTestServer(t, map[string]string{"VisibilityTimeout": "43200", "MessageRetentionPeriod": "86400"})
	b.send("x", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(900) })
	if n := len(b.receive(b.url)); n != 0 {
		t.Fatalf("received %d delayed messages", n)
	}
	b.advance(15 * time.Minute)
	if n := len(b.receive(b.url)); n != 1 {
		t.Fatalf("after its delay received %d messages", n)
	}
	b.advance(12*time.Hour - time.Second)
	if n := len(b.receive(b.url)); n != 0 {
		t.Fatalf("received %d messages in flight", n)
	}
	b.advance(time.Second)
	again := b.receive(b.url)
	if len(again) != 1 || again[0].Attributes.ApproximateReceiveCount != 2 {
		t.Fatalf("after its visibility timeout received %v", again)
	}
	if sent := time.UnixMilli(again[0].Attributes.SentTimestamp); b.server.Now().Sub(sent) < 12*time.Hour {
		t.Errorf("the message was sent %v ago, by the server's time", b.server.Now().Sub(sent))
	}
	b.advance(12 * time.Hour)
	if left, err := b.server.Messages("q", sqsserver.Page{}); err != nil || len(left) != 0 {
		t.Errorf("after its retention the queue has %v, %v", left, err)
	}
}

// A move task is paced by the machine's time, so its 36 hours are of that too: one that runs while the time is
// advanced goes on.
func TestAdvanceDoesNotEndMoveTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dead := newRedriveBench(t, 20)
		b.move(sqsserver.Int(10))
		time.Sleep(time.Second)
		b.advance(37 * time.Hour)
		time.Sleep(time.Minute)
		out, err := b.server.ListMessageMoveTasks(t.Context(), &sqsserver.ListMessageMoveTasksInput{SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead"})
		if err != nil || len(out.Results) != 1 || out.Results[0].Status != "COMPLETED" || b.visible(dead) != "" && b.visible(dead) != "0" {
			t.Errorf("the task is %+v, %v, and %s messages are left; want all moved", out, err, b.visible(dead))
		}
	})
}

// A long poll ends when its time is over on the server's clock, with what became
// visible meanwhile. The machine's clock does not move.
func TestAdvanceEndsLongPolls(t *testing.T) {
	for _, test := range []struct {
		name    string
		hidden  time.Duration
		steps   []time.Duration
		want    int
		waiting bool
	}{
		{"nothing comes", 0, []time.Duration{20 * time.Second}, 0, false},
		{"in two steps", 0, []time.Duration{12 * time.Second, 8 * time.Second}, 0, false},
		{"not yet", 0, []time.Duration{19 * time.Second}, 0, true},
		{"a message becomes visible", 10 * time.Second, []time.Duration{10 * time.Second}, 1, false},
		{"and the time is over too", 10 * time.Second, []time.Duration{time.Hour}, 1, false},
		{"it is not visible yet", 10 * time.Second, []time.Duration{9 * time.Second}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestServer(t, nil)
				if test.hidden > 0 {
					b.send("x", func(in *sqsserver.SendMessageInput) {
						in.DelaySeconds = sqsserver.Int(int32(test.hidden.Seconds()))
					})
				}
				type end struct {
					messages int
					took     time.Duration
				}
				ended := make(chan end, 1)
				go func() {
					messages, took, err := b.poll(t.Context())
					if err != nil {
						t.Error(err)
					}
					ended <- end{len(messages), took}
				}()
				synctest.Wait()
				for _, step := range test.steps {
					b.advance(step)
				}
				synctest.Wait()
				select {
				case got := <-ended:
					if got != (end{test.want, 0}) || test.waiting {
						t.Errorf("the poll returned %d messages after %v of waiting; want %d after none, or waiting: %v", got.messages, got.took, test.want, test.waiting)
					}
				default:
					if !test.waiting {
						t.Error("the poll still waits")
					}
					<-ended
				}
			})
		})
	}
}

// With a scale everything that is timed goes faster alike.
func TestTimeScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sqsserver.New(sqsserver.Config{TimeScale: 60})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", map[string]string{"VisibilityTimeout": "30"})
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 0 || took.Round(time.Millisecond) != 333*time.Millisecond {
			t.Errorf("an empty poll of 20s returned %v, %v after %v", messages, err, took)
		}
		b.send("x")
		b.receive(b.url)
		start := b.server.Now()
		messages, _, err := b.poll(t.Context())
		if err != nil || len(messages) != 0 {
			t.Errorf("the first poll returned %v, %v", messages, err)
		}
		messages, _, err = b.poll(t.Context())
		if passed := b.server.Now().Sub(start).Round(time.Second); err != nil || len(messages) != 1 || passed != 30*time.Second {
			t.Errorf("the message came again as %v, %v after %v on the server's clock, want 30s", messages, err, passed)
		}
		b.advance(time.Hour)
		if passed := b.server.Now().Sub(start).Round(time.Second); passed != time.Hour+30*time.Second {
			t.Errorf("%v passed, want 1h0m30s", passed)
		}
		time.Sleep(time.Second)
		if passed := b.server.Now().Sub(start).Round(time.Second); passed != time.Hour+90*time.Second {
			t.Errorf("%v passed with a second after the advance, want 1h1m30s", passed)
		}
	})
}

// Replies have the server's time, by which consumers reckon ages.
func TestDateOfReplies(t *testing.T) {
	b := newTestServer(t, nil)
	date := func() string {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", "ListQueues", `{}`, nil))
		return w.Header().Get("Date")
	}
	if got := date(); got != "" {
		t.Errorf("the Date is %q, want net/http's own", got)
	}
	b.advance(1000 * time.Hour)
	at, err := time.Parse(time.RFC1123, date())
	if ahead := time.Until(at); err != nil || ahead < 999*time.Hour || ahead > 1001*time.Hour {
		t.Errorf("the Date is %v ahead, %v; want 1000h", ahead, err)
	}
}

// TestDateOfALongPoll: the Date is the time of the reply, not that of the request 20 s before.
func TestDateOfALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		b.advance(1000 * time.Hour)
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", "ReceiveMessage", `{"QueueUrl":"`+b.url+`","WaitTimeSeconds":20}`, nil))
		at, err := time.Parse(time.RFC1123, w.Header().Get("Date"))
		if late := b.server.Now().Sub(at); err != nil || w.Code != 200 || late < 0 || late > time.Second {
			t.Errorf("the Date of a reply with status %d is %v old, %v; want less than a second", w.Code, late, err)
		}
	})
}

func TestAdvanceRefuses(t *testing.T) {
	if err := newServer(t).Advance(-1); err == nil || !strings.Contains(err.Error(), "positive") {
		t.Errorf("Advance(-1) = %v", err)
	}
	config := sqsserver.Config{TimeScale: 2}
	if _, err := sqsserver.Open(newMemoryJournal(), config); err == nil || !strings.Contains(err.Error(), "journal") {
		t.Errorf("Open with a journal and a TimeScale = %v", err)
	}
	config.TimeScale = 0
	server, err := sqsserver.Open(newMemoryJournal(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.Advance(time.Hour); err == nil || !strings.Contains(err.Error(), "journal") {
		t.Errorf("Advance with a journal = %v", err)
	}
}
