package sqsserver_test

// Holds off: a client without a key, which may connect and send any bytes. It chooses
// the text of the credential, which a server without keys does not verify, and which becomes
// a part of the names of queues, of metrics and of texts for operators.

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackRegionOfACredential: a region, and the rest of a credential, is a name, with
// keys and without, in the header and in the URL; else the request is refused.
func TestAttackRegionOfACredential(t *testing.T) {
	for _, c := range []struct {
		name, credential string
		sound            bool
	}{
		{"a region", "any/20261123/eu-west-1/sqs/aws4_request", true},
		{"the longest region", "any/20261123/" + strings.Repeat("a", 64) + "/sqs/aws4_request", true},
		{"no region", "any", true},
		{"a key with a punctuation", "me@local.+=-/20261123/local/sqs/aws4_request", true},
		{"5,000 letters", "any/20261123/" + strings.Repeat("a", 5000) + "/sqs/aws4_request", false},
		{"no UTF-8", "any/20261123/eu\xff/sqs/aws4_request", false},
		{"NUL", "any/20261123/eu\x00/sqs/aws4_request", false},
		{"ESC", "any/20261123/eu\x1b[2J/sqs/aws4_request", false},
		{"C1", "any/20261123/eu\u009b2J/sqs/aws4_request", false},
		{"a new line", "any/20261123/eu\n/sqs/aws4_request", false},
		{"a colon, which divides an ARN", "any/20261123/eu:1/sqs/aws4_request", false},
		{"capitals", "any/20261123/EU/sqs/aws4_request", false},
		{"ESC in the key", "any\x1b/20261123/eu/sqs/aws4_request", false},
		{"a long key", strings.Repeat("a", 129) + "/20261123/eu/sqs/aws4_request", false},
		{"ESC in the date", "any/2026\x1b/eu/sqs/aws4_request", false},
		{"ESC in the service", "any/20261123/eu/sqs\x1b/aws4_request", false},
		{"ESC in the terminator", "any/20261123/eu/sqs/aws4_request\x1b", false},
	} {
		for _, query := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				var seen []sqsserver.Request
				for _, keys := range [][]sqsserver.Credentials{nil, {{AccessKeyID: "any", SecretAccessKey: "secret"}}} {
					server := sqsserver.New(sqsserver.Config{Seed: 1, Logger: withoutOutput(), Credentials: keys,
						OnRequest: func(r sqsserver.Request) { seen = append(seen, r) }})
					defer server.Close()
					r := request("POST", "CreateQueue", `{"QueueName":"q"}`, nil)
					if query {
						r = httptest.NewRequest("GET", "/?Action=CreateQueue&QueueName=q", nil)
					}
					r.Header["Authorization"] = []string{"AWS4-HMAC-SHA256 Credential=" + c.credential + ", SignedHeaders=host;x-amz-date, Signature=00"}
					r.Header["X-Amz-Date"] = []string{time.Now().UTC().Format("20060102T150405Z")}
					w := httptest.NewRecorder()
					server.ServeHTTP(w, r)
					text := w.Body.String()
					if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\u009b") || len(text) > 2000 {
						t.Errorf("the answer is not text of a bounded size: %.500q", text)
					}
					switch {
					case c.sound && keys == nil && w.Code != 200:
						t.Errorf("refused: %s", text)
					case !c.sound && (w.Code != 400 || !strings.Contains(text, "IncompleteSignature")):
						t.Errorf("%d %.500s", w.Code, text)
					case !c.sound && len(server.Queues()) > 0:
						t.Errorf("there is %+v", server.Queues())
					}
				}
				for _, r := range seen {
					if !c.sound && (r.Region != "us-east-1" || r.AccessKey != "") {
						t.Errorf("reported region %.100q, key %.100q", r.Region, r.AccessKey)
					}
				}
			})
		}
	}
}

// TestAttackRegionInAnOldJournal: a journal from before regions were checked opens.
func TestAttackRegionInAnOldJournal(t *testing.T) {
	journal := newMemoryJournal()
	const region = "eu\x1b[31m\xff\x00\n"
	old := openJournalServer(t, journal, sqsserver.Config{Region: region})
	if _, err := old.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
		t.Fatal(err)
	}
	old.Close()
	now := openJournalServer(t, journal.reopened(), sqsserver.Config{})
	if queues := now.Queues(); len(queues) != 1 || queues[0].Region != region {
		t.Errorf("there are %+v", queues)
	}
}
