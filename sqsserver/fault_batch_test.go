package sqsserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Faults of received messages strike the entries of batches as they strike single
// requests: the second of two.
func TestFaultsOfBatches(t *testing.T) {
	const hold, remove = "ChangeMessageVisibilityBatch", "DeleteMessageBatch"
	tests := []struct {
		kind   sqsserver.FaultKind
		action string
		code   string        // of the struck entry; "": it succeeds
		back   time.Duration // until the struck message can be received; 0: it can at once
		other  time.Duration // the same of the other message; 0: it is gone
	}{
		{sqsserver.FaultFailEntry, hold, "InternalError", 30 * time.Second, time.Hour},
		{sqsserver.FaultStaleHandle, hold, "ReceiptHandleIsInvalid", 30 * time.Second, time.Hour},
		{sqsserver.FaultEarlyRedelivery, hold, "", time.Second, time.Hour},
		{sqsserver.FaultLoseLease, hold, "ReceiptHandleIsInvalid", 0, time.Hour},
		{sqsserver.FaultFailEntry, remove, "InternalError", 30 * time.Second, 0},
		{sqsserver.FaultStaleHandle, remove, "ReceiptHandleIsInvalid", 30 * time.Second, 0},
		{sqsserver.FaultLoseDelete, remove, "", 30 * time.Second, 0},
		{sqsserver.FaultLoseLease, remove, "ReceiptHandleIsInvalid", 0, 0},
	}
	for _, test := range tests {
		t.Run(string(test.kind)+" "+test.action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestServer(t, nil)
				b.send("other")
				b.send("struck")
				b.fault(sqsserver.Fault{Kind: test.kind, Action: test.action, Skip: 1, Limit: 1})
				held := b.receive(b.url)

				var successful []sqsserver.BatchResultEntry
				var failed []sqsserver.BatchResultErrorEntry
				if test.action == hold {
					in := &sqsserver.ChangeMessageVisibilityBatchInput{QueueUrl: b.url}
					for _, m := range held {
						in.Entries = append(in.Entries, sqsserver.ChangeMessageVisibilityBatchRequestEntry{
							Id: m.Body, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: sqsserver.Int(3600)})
					}
					out, err := b.server.ChangeMessageVisibilityBatch(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					successful, failed = out.Successful, out.Failed
				} else {
					in := &sqsserver.DeleteMessageBatchInput{QueueUrl: b.url}
					for _, m := range held {
						in.Entries = append(in.Entries, sqsserver.DeleteMessageBatchRequestEntry{Id: m.Body, ReceiptHandle: m.ReceiptHandle})
					}
					out, err := b.server.DeleteMessageBatch(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					successful, failed = out.Successful, out.Failed
				}
				switch {
				case test.code == "" && (len(successful) != 2 || len(failed) != 0):
					t.Errorf("%v succeeded and %v failed, want no failure", successful, failed)
				case test.code != "" && (len(successful) != 1 || len(failed) != 1 || failed[0].Id != "struck" || failed[0].Code != test.code):
					t.Errorf("%v succeeded and %v failed, want the struck one to fail with %s", successful, failed, test.code)
				}

				left := make(map[string]time.Duration)
				messages, err := b.server.Messages("q", sqsserver.Page{})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range messages {
					left[m.Body] = max(time.Until(m.Due), 0)
				}
				back, there := left["struck"]
				if !there || back != test.back || left["other"] != test.other {
					t.Errorf("the messages can be received in %v; want the struck one in %v, the other in %v", left, test.back, test.other)
				}
			})
		})
	}
}

// Over HTTP the refusals of faults are replies of SQS, in either protocol.
func TestFaultsThatRefuseOverHTTP(t *testing.T) {
	tests := []struct {
		kind      sqsserver.FaultKind
		status    int
		json, xml string // of the reply: the header, and a part of the body
	}{
		{sqsserver.FaultThrottle, http.StatusForbidden, "RequestThrottled;Sender", "<Type>Sender</Type><Code>RequestThrottled</Code>"},
		{sqsserver.FaultServerError, http.StatusInternalServerError, "InternalFailure;Receiver", "<Type>Receiver</Type><Code>InternalFailure</Code>"},
		{sqsserver.FaultOverLimit, http.StatusForbidden, "OverLimit;Sender", "<Type>Sender</Type><Code>OverLimit</Code>"},
	}
	for _, test := range tests {
		b := newTestServer(t, nil)
		b.fault(sqsserver.Fault{Kind: test.kind})
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", "ReceiveMessage", `{"QueueUrl":"q"}`, nil))
		if got := w.Header().Get("X-Amzn-Query-Error"); w.Code != test.status || got != test.json {
			t.Errorf("%s in JSON: %d %s, want %d %s", test.kind, w.Code, got, test.status, test.json)
		}
		w = httptest.NewRecorder()
		b.server.ServeHTTP(w, formRequest("GET", "/000000000000/q", "Action=ReceiveMessage"))
		if got := w.Body.String(); w.Code != test.status || !strings.Contains(got, test.xml) {
			t.Errorf("%s by Query: %d %s, want %d %s", test.kind, w.Code, got, test.status, test.xml)
		}
	}
}
