package sqsserver_test

// Holds off: a client without a key, which may send any request, and one with a key.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// FuzzAttackRequest: whole requests of both protocols, with a valid signature, with
// another or with none, get an answer or a well-formed error, of a size and with
// allocations that the request's size bounds.
func FuzzAttackRequest(f *testing.F) {
	for _, s := range []struct{ path, target, trace, body string }{
		{"/", "AmazonSQS.SendMessage", validTrace, `{"QueueUrl":"q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AA=="}}}`},
		{"/", "AmazonSQS.SendMessageBatch", "", `{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b"}]}`},
		{"/", "AmazonSQS.SetQueueAttributes", "x", `{"QueueUrl":"q","Attributes":{"RedriveAllowPolicy":"{}"}}`},
		{"/", "AmazonSQS.ReceiveMessage", "", `{"QueueUrl":"q","AttributeNames":["All"]}`},
		{"/?Action=SendMessage&MessageBody=x", "", traceOf(501), ""},
		{"/000000000000/q", "", "", "Action=SendMessageBatch&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=x"},
	} {
		for signing := range byte(3) {
			f.Add(s.path, s.target, s.trace, []byte(s.body), signing)
		}
	}
	f.Fuzz(func(t *testing.T, path, target, trace string, body []byte, signing byte) {
		if strings.Contains(path+string(body), "WaitTimeSeconds") {
			return // it may wait for long
		}
		config := sqsserver.Config{Seed: 1, Logger: failing(t)}
		if signing%3 > 0 {
			config.Credentials = []sqsserver.Credentials{{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: theKey.SecretAccessKey}}
		}
		server := sqsserver.New(config)
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.send("hello")
		r, err := parsedRequest("POST", path, body)
		if err != nil {
			return // no server gets that far
		}
		r.Header.Set("X-Amzn-Trace-Id", trace)
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		} else {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if signing%3 == 1 {
			sum := sha256.Sum256(body)
			if err := v4.NewSigner().SignHTTP(t.Context(), theKey, r, hex.EncodeToString(sum[:]), "sqs", "us-east-1", time.Now()); err != nil {
				return
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		size := uint64(len(path) + len(target) + len(trace) + len(body))
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+1000*size {
			t.Errorf("a request of %d bytes allocated %d", size, took)
		}
		if w.Body.Len() > 64<<10+10*int(size) {
			t.Errorf("a request of %d bytes is answered with %d", size, w.Body.Len())
		}
		if w.Code >= 500 {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if signing%3 == 2 && w.Code == 200 {
			t.Errorf("served without a signature: %s", w.Body)
		}
		checkAnswer(t, w)
	})
}

// checkAnswer checks that an answer can be read in its protocol, and an error says what it
// is.
func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Body.Len() == 0 {
		if w.Code != 200 {
			t.Errorf("status %d without a word", w.Code)
		}
		return
	}
	var inJSON struct {
		Type string `json:"__type"`
	}
	var inXML struct {
		XMLName xml.Name
		Error   struct{ Code string }
	}
	if strings.Contains(w.Header().Get("Content-Type"), "xml") {
		err := xml.Unmarshal(w.Body.Bytes(), &inXML)
		// A request without an action gets this from AWS too.
		named := inXML.Error.Code != "" || inXML.XMLName.Local == "UnknownOperationException"
		if err != nil || w.Code != 200 && !named {
			t.Errorf("status %d, %v: %s", w.Code, err, w.Body)
		}
		return
	}
	if err := json.Unmarshal(w.Body.Bytes(), &inJSON); err != nil || w.Code != 200 && inJSON.Type == "" {
		t.Errorf("status %d, %v: %s", w.Code, err, w.Body)
	}
}
