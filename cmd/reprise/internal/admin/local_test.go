package admin_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// serveOwn serves an API of a process with a server of its own, which has the queues orders and ordered.fifo.
func serveOwn(t *testing.T, change func(*admin.Config)) (*served, *sqsserver.Server) {
	t.Helper()
	server := sqsserver.New(sqsserver.Config{})
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	client := awsclient.Local(at.URL, "us-east-1")
	for name, attributes := range map[string]map[string]string{"orders": nil, "ordered.fifo": {"FifoQueue": "true"}} {
		if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, func(cfg *admin.Config) {
		cfg.Server, cfg.CanAdvance = server, true
		cfg.JobQueue = func(_ context.Context, queue string) (admin.JobQueue, error) {
			var found []string
			for _, q := range server.Queues() {
				if q.Name == queue {
					found = append(found, at.URL+"/000000000000/"+q.Name)
				}
			}
			url, err := admin.OneQueue(queue, found)
			return admin.JobQueue{URL: url, Client: client}, err
		}
		if change != nil {
			change(cfg)
		}
	}), server
}

// TestSend sends messages to a standard and to a FIFO queue, and what SQS does not take is the sender's mistake.
func TestSend(t *testing.T) {
	s, server := serveOwn(t, nil)
	whole := `{"body":"{\"secret\":1}","attributes":{"kind":{"type":"String","value":"test"},"raw":{"type":"Binary","binary":"AAE="}},"delay_seconds":60}`
	status, text := s.call("POST", "/admin/v1/queues/orders/messages", whole)
	if id := decode[admin.Sent](t, text).ID; status != 200 || id == "" {
		t.Fatalf("%d %s", status, text)
	}
	page, err := server.Messages("orders", sqsserver.Page{})
	if err != nil || len(page) != 1 || page[0].Body != `{"secret":1}` || page[0].State != sqsserver.Delayed {
		t.Fatalf("the queue has %+v, %v", page, err)
	}
	wantAttributes := []sqsserver.MessageAttribute{{Name: "kind", DataType: "String", StringValue: "test"}, {Name: "raw", DataType: "Binary", BinaryValue: []byte{0, 1}}}
	if diff := cmp.Diff(wantAttributes, page[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	for _, deduplication := range []string{"1", "2"} { // two of one group are two messages
		if status, text := s.call("POST", "/admin/v1/queues/ordered.fifo/messages", `{"body":"x","group":"a","deduplication":"`+deduplication+`"}`); status != 200 {
			t.Errorf("to a FIFO queue: %d %s", status, text)
		}
	}
	page, err = server.Messages("ordered.fifo", sqsserver.Page{})
	if err != nil || len(page) != 2 || page[0].Group != "a" || page[0].Deduplication != "1" || page[1].Group != "a" || page[1].Deduplication != "2" {
		t.Errorf("the FIFO queue has %+v, %v", page, err)
	}
	if log := s.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "action=send") || !strings.Contains(log, `\"bytes\":12`) {
		t.Errorf("the log has %s", log)
	}
	for _, c := range []struct {
		queue, body string
		status      int
		about       string
	}{
		{"orders", `{}`, 400, "body is missing"},
		{"orders", `{"body":"x","delay_seconds":901}`, 400, "900"},
		{"ordered.fifo", `{"body":"x"}`, 400, "MessageGroupId"},
		{"absent", `{"body":"x"}`, 404, "no-such-queue"},
		{"orders", `{"body":"x","text":"y"}`, 400, "unknown field"},
	} {
		if status, text := s.call("POST", "/admin/v1/queues/"+c.queue+"/messages", c.body); status != c.status || !strings.Contains(text, c.about) {
			t.Errorf("%s to %s: %d %s, want %d about %q", c.body, c.queue, status, text, c.status, c.about)
		}
	}
}

// TestPurge counts what a queue had, and says when it is too early for another.
func TestPurge(t *testing.T) {
	s, server := serveOwn(t, nil)
	for range 3 {
		s.call("POST", "/admin/v1/queues/orders/messages", `{"body":"x"}`)
	}
	s.call("POST", "/admin/v1/queues/orders/messages", `{"body":"x","delay_seconds":60}`)
	status, text := s.call("POST", "/admin/v1/queues/orders/purge", `{}`)
	if had := decode[admin.Purged](t, text); status != 200 || had.Visible != 3 || had.Delayed != 1 {
		t.Errorf("%d %s", status, text)
	}
	if page, err := server.Messages("orders", sqsserver.Page{}); err != nil || len(page) != 0 {
		t.Errorf("the queue has %+v, %v", page, err)
	}
	if status, text := s.call("POST", "/admin/v1/queues/orders/purge", `{}`); status != 409 || !strings.Contains(text, "in a minute") {
		t.Errorf("again: %d %s", status, text)
	}
	if !strings.Contains(s.log.String(), "action=purge") {
		t.Errorf("the log has %s", s.log)
	}
}

// TestOwnServer sets faults, which strike, and moves the time on, which ends a delay.
func TestOwnServer(t *testing.T) {
	s, server := serveOwn(t, nil)
	status, text := s.call("GET", "/admin/v1/server", "")
	if now := decode[admin.OwnServer](t, text); status != 200 || !now.CanAdvance || len(now.Faults) != 0 {
		t.Errorf("%d %s", status, text)
	}
	s.call("POST", "/admin/v1/queues/orders/messages", `{"body":"x","delay_seconds":900}`)
	before := server.Now()
	status, text = s.call("POST", "/admin/v1/server/clock", `{"by":"1h"}`)
	if now := decode[admin.OwnServer](t, text).Now; status != 200 || now.Sub(before) < time.Hour {
		t.Errorf("%d %s, from %v", status, text, before)
	}
	if page, err := server.Messages("orders", sqsserver.Page{}); err != nil || len(page) != 1 || page[0].State != sqsserver.Visible {
		t.Errorf("the queue has %+v, %v", page, err)
	}
	status, text = s.call("PUT", "/admin/v1/server/faults/orders", `{"faults":[{"kind":"throttle","action":"PurgeQueue"},{"kind":"slow-reply","delay":"2s","probability":0.5}]}`)
	if status != 200 || !strings.Contains(text, `"kind":"slow-reply","probability":0.5,"delay":"2s","chances":0,"strikes":0`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := s.call("POST", "/admin/v1/queues/orders/purge", `{}`); status != 502 && status != 400 {
		t.Errorf("a purge that a fault strikes: %d %s", status, text)
	}
	if of := server.AllFaults()["orders"]; len(of) != 2 || of[0].Strikes == 0 {
		t.Errorf("the faults are %+v", of)
	}
	if status, text := s.call("PUT", "/admin/v1/server/faults/orders", `{"faults":[]}`); status != 200 || len(server.AllFaults()) != 0 {
		t.Errorf("%d %s: the faults are %+v", status, text, server.AllFaults())
	}
	if status, _ := s.call("PUT", "/admin/v1/server/faults/*", `{"faults":[{"kind":"throttle"}]}`); status != 200 || len(server.AllFaults()["*"]) != 1 {
		t.Errorf("%d: the faults are %+v", status, server.AllFaults())
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		about              string
	}{
		{"PUT", "server/faults/absent", `{"faults":[{"kind":"throttle"}]}`, 404, "no-such-queue"},
		{"PUT", "server/faults/orders", `{"faults":[{"kind":"fire"}]}`, 400, "fire"},
		{"PUT", "server/faults/orders", `{}`, 400, "faults is missing"},
		{"POST", "server/clock", `{"by":"soon"}`, 400, "90s"},
		{"POST", "server/clock", `{"by":"-1h"}`, 400, "cannot go back"},
	} {
		if status, text := s.call(c.method, "/admin/v1/"+c.path, c.body); status != c.status || !strings.Contains(text, c.about) {
			t.Errorf("%s %s: %d %s, want %d about %q", c.path, c.body, status, text, c.status, c.about)
		}
	}
	for _, action := range []string{"action=faults", "action=advance"} {
		if !strings.Contains(s.log.String(), action) {
			t.Errorf("the log lacks %s: %s", action, s.log)
		}
	}

	alone := serve(t, nil)
	if status, text := alone.call("GET", "/admin/v1/server", ""); status != 501 || !strings.Contains(text, "no-server") {
		t.Errorf("a process without queues: %d %s", status, text)
	}
	idle, _ := serveOwn(t, func(cfg *admin.Config) { cfg.ReadOnly = true })
	for method, path := range map[string]string{"PUT": "server/faults/orders", "POST": "server/clock"} {
		if status, text := idle.call(method, "/admin/v1/"+path, `{}`); status != 403 || !strings.Contains(text, "read-only") {
			t.Errorf("%s in read-only mode: %d %s", path, status, text)
		}
	}
}
