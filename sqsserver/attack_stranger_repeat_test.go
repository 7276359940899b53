package sqsserver_test

// Holds off: a client that may connect and send any bytes, without a key or on a server
// that asks for none. It has the server take much more memory than it has sent.

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackRequestsThatMultiply: names, lists and repetitions in a request take a few times
// their length in memory, most of it for the buffers that the request is read into, and a
// reply does not repeat long texts.
func TestAttackRequestsThatMultiply(t *testing.T) {
	const body = 8<<20 - 1000
	stamp := time.Now().UTC().Format("20060102T150405Z")
	list := func(text string) string { return strings.Repeat(text, body/len(text)) }
	for _, test := range []struct {
		name, action, body string
		keys               bool
		change             map[string]string
		status             int
		most               uint64 // bytes allocated
	}{
		{"a large header signed again and again", "ListQueues", "{}", true, map[string]string{
			"A":             strings.Repeat("x", 30_000),
			"Authorization": "AWS4-HMAC-SHA256 Credential=key/" + stamp[:8] + "/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target" + strings.Repeat(";a", 15_000) + ", Signature=00",
			"X-Amz-Date":    stamp,
		}, 400, 2 << 20},
		{"attributes", "SendMessage", `{"QueueUrl":"q","MessageBody":"m","MessageAttributes":{"":{}` + list(`,"":{}`) + `}}`, false, nil, 400, 8 * body},
		{"names of attributes", "ReceiveMessage", `{"QueueUrl":"q","MessageAttributeNames":[""` + list(`,""`) + `]}`, false, nil, 400, 8 * body},
		{"tags", "CreateQueue", `{"QueueName":"r","tags":{"":""` + list(`,"a":"b"`) + `}}`, false, nil, 400, 8 * body},
		{"attributes of a queue", "SetQueueAttributes", `{"QueueUrl":"q","Attributes":{"":""` + list(`,"a":"b"`) + `}}`, false, nil, 400, 8 * body},
		{"a Host of 60,000 letters", "ListQueues", "{}", false, map[string]string{"Host": strings.Repeat("a", 60_000) + ".localhost"}, 400, 2 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := sqsserver.Config{Seed: 1, Logger: withoutOutput()}
			if test.keys {
				cfg.Credentials = []sqsserver.Credentials{{AccessKeyID: "key", SecretAccessKey: "secret"}}
			}
			server := sqsserver.New(cfg)
			defer server.Close()
			r := request("POST", test.action, test.body, test.change)
			if host := test.change["Host"]; host != "" {
				r.Host = host
			}
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			server.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; w.Code != test.status || took > test.most || w.Body.Len() > 5000 {
				t.Errorf("status %d, %d bytes of memory for %d of body, and %d of answer: %.300s", w.Code, took, len(test.body), w.Body.Len(), w.Body)
			}
		})
	}
}
