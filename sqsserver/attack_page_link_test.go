package sqsserver_test

// Holds off: whoever gets a developer to open a link, in a chat, a mail or a document: the browser then says that no page has
// made the request.

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackPageLinkThatChanges: a GET that a browser makes for a link or an image changes nothing; programs, which send no such
// headers, and scripts of pages that may call, change something by GET as before.
func TestAttackPageLinkThatChanges(t *testing.T) {
	type header = map[string][]string
	link := header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}, "User-Agent": {"Mozilla/5.0"}}
	for _, test := range []struct {
		name, method string
		header       header
		changes      bool
	}{
		{"a link", "GET", link, false},
		{"a link, asked about", "HEAD", link, false},
		{"a link of a browser that tells no mode", "GET", header{"Sec-Fetch-Site": {"none"}}, false},
		{"two modes", "GET", header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"cors", "navigate"}}, false},
		{"an image in a page of this machine", "GET", header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"no-cors"}}, false},
		{"a script in a page of this machine", "GET", header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"cors"}, "Origin": {"http://localhost:3000"}}, true},
		{"a script of this address", "GET", header{"Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-Mode": {"same-origin"}}, true},
		{"an SDK", "GET", header{"User-Agent": {"Boto3/1.0"}}, true},
		{"an SDK, by POST", "POST", header{"User-Agent": {"Boto3/1.0"}}, true},
	} {
		for _, action := range []string{
			"PurgeQueue", "SendMessage&MessageBody=y", "ReceiveMessage", "DeleteQueue", "SetQueueAttributes&Attribute.1.Name=DelaySeconds&Attribute.1.Value=9",
			"TagQueue&Tag.1.Key=a&Tag.1.Value=b",
		} {
			server := sqsserver.New(sqsserver.Config{Logger: withoutOutput()})
			ask := func(method, query string, h header) (int, string) {
				w := httptest.NewRecorder()
				server.ServeHTTP(w, arriving(method, "/000000000000/q?"+query, loopback, h))
				text, _ := io.ReadAll(w.Result().Body)
				return w.Code, string(text)
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, arriving("POST", "/?Action=CreateQueue&QueueName=q", loopback, nil))
			code, text := ask(test.method, "Action="+action, test.header)
			if want := map[bool]int{true: 200, false: 403}[test.changes]; code != want || !test.changes && test.method == "GET" && !strings.Contains(text, "send it by POST") {
				t.Errorf("%s: %s answers %d %s, want %d", test.name, action, code, text, want)
			}
			if code, text := ask("GET", "Action=GetQueueAttributes&AttributeName.1=All", link); !strings.HasPrefix(action, "DeleteQueue") && code != 200 {
				t.Errorf("%s: the address bar cannot read: %d %s", test.name, code, text)
			}
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
