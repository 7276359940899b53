package sqsserver_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestBodiesInEveryForm: a body is received as it was sent, before and after a restart, in
// every combination of forms: JSON with any escapes, the Query protocol or a method call. Its
// digest, its size and its content-based deduplication are those of the decoded text.
func TestBodiesInEveryForm(t *testing.T) {
	for _, body := range []struct{ name, json, plain string }{
		{"plain", `plain`, "plain"},
		{"JSON in JSON", `{\"a\":\"b\\nc\"}`, `{"a":"b\nc"}`},
		{"white space", `\t\r\n\u0009`, "\t\r\n\t"},
		{"escapes that none needs", `\/\u0061\u00e9\u20ac\ud83d\ude00`, "/aé€😀"},
		{"beyond ASCII", `é€😀\"`, `é€😀"`},
		{"begins and ends with escapes", `\"\\\"`, `"\"`},
		{"at the limit of size", strings.Repeat(`\"`, 1024), strings.Repeat(`"`, 1024)},
	} {
		t.Run(body.name, func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
			k.create("q", map[string]string{"MaximumMessageSize": "1024", "VisibilityTimeout": "0"})
			k.create("q.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
			in := func(queue, rest string) string { return `{"QueueUrl":"` + k.url(queue) + `"` + rest + `}` }

			k.post(t, "SendMessage", in("q", `,"MessageBody":"`+body.json+`"`), nil)
			k.form(t, url.Values{"Action": {"SendMessage"}, "MessageBody": {body.plain}}, nil)
			k.send("q", body.plain)
			for _, again := range []string{body.json, quote(t, body.plain)} { // the second is a duplicate
				k.post(t, "SendMessage", in("q.fifo", `,"MessageGroupId":"g","MessageBody":"`+again+`"`), nil)
			}

			for range 2 {
				type message struct{ Body, MD5OfBody string }
				var inJSON struct{ Messages []message }
				k.post(t, "ReceiveMessage", in("q", `,"MaxNumberOfMessages":10`), &inJSON)
				var inXML struct {
					Messages []message `xml:"ReceiveMessageResult>Message"`
				}
				k.form(t, url.Values{"Action": {"ReceiveMessage"}, "MaxNumberOfMessages": {"10"}}, &inXML)
				got := append(inJSON.Messages, inXML.Messages...)
				direct, err := k.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: k.url("q"), MaxNumberOfMessages: sqsserver.Int(10)})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range direct.Messages {
					got = append(got, message{m.Body, m.MD5OfBody.String()})
				}
				sum := md5.Sum([]byte(body.plain))
				for _, m := range got {
					if want := (message{body.plain, hex.EncodeToString(sum[:])}); m != want {
						t.Errorf("received %+v, want %+v", m, want)
					}
				}
				seen, err := k.Messages("q", sqsserver.Page{Limit: 10})
				if err != nil || len(got) != 9 || len(seen) != 3 {
					t.Fatalf("received %d, seen %d, %v: want three messages three times", len(got), len(seen), err)
				}
				for _, m := range seen {
					if m.Body != body.plain {
						t.Errorf("seen %q, want %q", m.Body, body.plain)
					}
				}
				if once, err := k.Messages("q.fifo", sqsserver.Page{Limit: 10}); err != nil || len(once) != 1 {
					t.Errorf("%d messages of one content, %v: want one", len(once), err)
				}
				k = k.restart()
			}
		})
	}
}

// TestUnneededEscapesAreNotKept: what needs no escape in JSON is kept as it is. boto3
// writes all that is not ASCII with six bytes a character.
func TestUnneededEscapesAreNotKept(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
	k.create("q", nil)
	const n = 10_000
	k.post(t, "SendMessage", `{"QueueUrl":"`+k.url("q")+`","MessageBody":"`+strings.Repeat(`\u0436`, n)+`"}`, nil)
	w := httptest.NewRecorder()
	k.ServeHTTP(w, request("POST", "ReceiveMessage", `{"QueueUrl":"`+k.url("q")+`"}`, nil))
	if got := w.Body.Len(); got > 2*n+1000 {
		t.Errorf("a body of %d bytes is returned in %d", 2*n, got)
	}
}

// quote returns what stands between the quotes of text in JSON.
func quote(t *testing.T, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted[1 : len(quoted)-1])
}

// post makes a call in JSON.
func (k *journalServer) post(t *testing.T, action, body string, out any) {
	t.Helper()
	k.exchange(t, request("POST", action, body, nil), json.Unmarshal, out)
}

// form makes a call of the Query protocol on queue q.
func (k *journalServer) form(t *testing.T, parameters url.Values, out any) {
	t.Helper()
	parameters.Set("QueueUrl", k.url("q"))
	k.exchange(t, formRequest("POST", "/", parameters.Encode()), xml.Unmarshal, out)
}

func (k *journalServer) exchange(t *testing.T, r *http.Request, decode func([]byte, any) error, out any) {
	t.Helper()
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if out == nil {
		return
	}
	if err := decode(w.Body.Bytes(), out); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
}
