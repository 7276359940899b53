package dashboard_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// bury sends a dead letter with a story.
func (s *served) bury(err string) {
	s.t.Helper()
	at := s.URL + account + "orders-dead"
	story := `{"reason":"permanent","error":"` + err + `","attempts":2,"source":"arn:aws:sqs:us-east-1:000000000000:orders","origin":"o","message":"m","last":"2026-01-02T03:04:05Z"}`
	_, failed := s.client.SendMessage(s.t.Context(), &sqs.SendMessageInput{
		QueueUrl: &at, MessageBody: aws.String("{}"),
		MessageAttributes: map[string]types.MessageAttributeValue{reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: &story}},
	})
	if failed != nil {
		s.t.Fatal(failed)
	}
}

func (s *served) inQueue(queue string) int {
	s.t.Helper()
	all, err := s.sqs.Messages(queue, sqsserver.Page{})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

// TestDeadLetters: groups, a selection of one of them, its count, and what is done to exactly those.
func TestDeadLetters(t *testing.T) {
	s := serve(t, nil)
	for _, err := range []string{"card 4001 was refused (code 51)", "card 4002 was refused (code 51)", "no such customer: a+b"} {
		s.bury(err)
	}
	if got := s.do("GET", "/ui/dead", nil); !strings.Contains(got.text, `href="/ui/dead/orders-dead"`) {
		t.Errorf("the queue is not listed: %s", got.text)
	}
	groups := s.do("GET", "/ui/dead/orders-dead/groups", nil).text
	links := regexp.MustCompile(`href="([^"]*)">Select these`).FindAllStringSubmatch(groups, -1)
	if len(links) != 2 || !strings.Contains(groups, "3 letters, in 2 groups") {
		t.Fatalf("%s", groups)
	}
	selected, err := url.Parse(html.UnescapeString(links[0][1]))
	if err != nil {
		t.Fatal(err)
	}
	page := s.do("GET", selected.RequestURI(), nil)
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input [^>]*name="([a-z]+)"[^>]*value="([^"]*)"`).FindAllStringSubmatch(page.text, -1) {
		if field[1] != "action" && field[1] != "all" {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
	}
	if form.Get("reason") != "permanent" || form.Get("source") != "orders" || form.Get("error") == "" {
		t.Fatalf("the form has %v", form)
	}
	start := func(action, do string, more url.Values) string {
		t.Helper()
		asked := url.Values{"action": {action}, "do": {do}}
		for name, values := range more {
			asked[name] = values
		}
		got := s.do("POST", "/ui/dead/orders-dead/start", asked, append(s.browser(), "Hx-Request", "true")...)
		if got.StatusCode != 200 {
			t.Errorf("%s %s: %d", action, do, got.StatusCode)
		}
		return html.UnescapeString(got.text)
	}
	if text := start("redrive", "count", form); !strings.Contains(text, "2 letters of 3 match; 2 would be redriven") {
		t.Errorf("the count: %s", text)
	}
	if text := start("delete", "count", url.Values{}); !strings.Contains(text, "Nothing says which letters are meant") {
		t.Errorf("without a selection: %s", text)
	}
	if text := start("delete", "count", url.Values{"all": {"1"}, "reason": {"age"}}); !strings.Contains(text, "choose one of them") {
		t.Errorf("with fields and all: %s", text)
	}
	if text := start("redrive", "start", form); !strings.Contains(text, "has begun to redrive") {
		t.Errorf("the redrive: %s", text)
	}
	for deadline := time.Now().Add(time.Minute); strings.Contains(s.do("GET", "/ui/dead", nil).text, ">running "); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the redrive does not end")
		}
	}
	jobs := html.UnescapeString(s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text)
	for _, want := range []string{"redrive <span", "orders-dead: reason permanent, from orders, error matches card", `data-name="done">2<`, "count what it would redrive", `data-name="done">–<`, `id="after-job-`} {
		if !strings.Contains(jobs, want) {
			t.Errorf("the jobs of the queue lack %q: %s", want, jobs)
		}
	}
	if other := s.do("GET", "/ui/dead/orders/queue-jobs", nil).text; strings.Contains(other, "job-") {
		t.Errorf("jobs of another queue: %s", other)
	}
	if s.inQueue("orders") != 2 || s.inQueue("orders-dead") != 1 {
		t.Fatalf("the queues have %d and %d", s.inQueue("orders"), s.inQueue("orders-dead"))
	}
	if text := start("export", "start", url.Values{"all": {"1"}}); !strings.Contains(text, "has begun to export") {
		t.Errorf("the export: %s", text)
	}
	download := regexp.MustCompile(`href="(/ui/jobs/[^"]*/messages)" download`)
	var link []string
	for deadline := time.Now().Add(10 * time.Second); link == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("there is no export: %s", s.do("GET", "/ui/dead", nil).text)
		}
		link = download.FindStringSubmatch(s.do("GET", "/ui/dead", nil).text)
	}
	file := s.do("GET", link[1], nil)
	if strings.Count(file.text, "\n") != 1 || !strings.Contains(file.text, "no such customer") || !strings.Contains(file.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file: %v %s", file.Header, file.text)
	}
}

// onLetters sends the form about dead letters, and returns what the page says then.
func (s *served) onLetters(action string, form url.Values) string {
	s.t.Helper()
	got := s.do("POST", "/ui/dead/orders-dead/"+action, form, append(s.browser(), "Hx-Request", "true")...)
	if got.StatusCode != 200 {
		s.t.Errorf("%s %v: %d", action, form, got.StatusCode)
	}
	return html.UnescapeString(got.text)
}

// offered returns the job that a button of the queue's page carries out, and the label of that; empty: there is none.
func (s *served) offered() (job, label string) {
	s.t.Helper()
	found := regexp.MustCompile(`carry-out"[^>]*><input type="hidden" name="job" value="([^"]*)"><button[^>]*>([^<]*)<`).FindStringSubmatch(s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text)
	if found == nil {
		return "", ""
	}
	return found[1], found[2]
}

// ended waits until no job runs.
func (s *served) ended() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); strings.Contains(s.do("GET", "/ui/dead", nil).text, ">running "); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the job does not end")
		}
	}
}

// TestCarryOut: a count has a button that does what was counted, to as many letters. Nothing is deleted without it.
func TestCarryOut(t *testing.T) {
	s := serve(t, nil)
	for range 3 {
		s.bury("refused")
	}
	all := url.Values{"all": {"1"}, "action": {"delete"}, "do": {"start"}}
	if text := s.onLetters("start", all); !strings.Contains(text, "Nothing was deleted: click Count first.") || s.inQueue("orders-dead") != 3 {
		t.Fatalf("without a count: %s", text)
	}
	if job, _ := s.offered(); job != "" {
		t.Fatalf("%s is offered, and nothing was counted", job)
	}
	all.Set("do", "count")
	if text := s.onLetters("start", all); !strings.Contains(text, "3 letters of 3 match; 3 would be deleted.") {
		t.Fatalf("the count: %s", text)
	}
	job, label := s.offered()
	if label != "Delete 3 letters" {
		t.Fatalf("the button is %q", label)
	}
	for other, want := range map[string]string{"": "the form names no job", "job-absent": "there is no job"} {
		if text := s.onLetters("carry-out", url.Values{"job": {other}}); !strings.Contains(text, want) {
			t.Errorf("%q: %s", other, text)
		}
	}
	if got := s.do("POST", "/ui/dead/orders/carry-out", url.Values{"job": {job}}, append(s.browser(), "Hx-Request", "true")...); !strings.Contains(got.text, "has counted letters of another queue") {
		t.Errorf("of another queue: %s", got.text)
	}
	s.bury("came after the count")
	if text := s.onLetters("carry-out", url.Values{"job": {job}}); !strings.Contains(text, "has begun to delete") {
		t.Fatalf("%s", text)
	}
	s.ended()
	if n := s.inQueue("orders-dead"); n != 1 {
		t.Errorf("%d letters are left, want the one that was not counted", n)
	}
	if text := s.onLetters("carry-out", url.Values{"job": {job}}); !strings.Contains(text, "was done already: count again") {
		t.Errorf("carried out twice: %s", text)
	}
	if text := s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text; strings.Contains(text, job+`"><button`) {
		t.Errorf("what was carried out is offered again: %s", text)
	}
}

// TestEditLetters: letters are edited while they are redriven. The count has an example, and changes nothing.
func TestEditLetters(t *testing.T) {
	s := serve(t, nil)
	for _, err := range []string{"unknown currency SEK", "unknown currency SEK", "no such customer"} {
		s.bury(err)
	}
	form := url.Values{
		"error": {"currency"}, "action": {"redrive"}, "do": {"count"},
		"find": {`\{`}, "replace": {`{"currency":"EUR"`}, "set-name": {"checked"}, "set-value": {"<b>yes</b>"}, "remove": {"absent"},
	}
	if text := s.onLetters("start", form); !strings.Contains(text, "2 letters of 3 match; 2 would be redriven, 2 of them edited.") {
		t.Fatalf("the count: %s", text)
	}
	jobs := s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text
	for _, want := range []string{"2 edited, such as<pre", "- {}", `&#43;   &#34;currency&#34;: &#34;EUR&#34;`, "&#43; String &lt;b&gt;yes&lt;/b&gt;", "attribute absent is removed"} {
		if !strings.Contains(jobs, want) {
			t.Errorf("the count lacks %q: %s", want, jobs)
		}
	}
	if s.inQueue("orders") != 0 || s.inQueue("orders-dead") != 3 {
		t.Fatal("the count has redriven something")
	}
	job, label := s.offered()
	if label != "Redrive 2 letters" {
		t.Fatalf("the button is %q", label)
	}
	s.onLetters("carry-out", url.Values{"job": {job}})
	s.ended()
	all, err := s.sqs.Messages("orders", sqsserver.Page{})
	if err != nil || len(all) != 2 || s.inQueue("orders-dead") != 1 {
		t.Fatalf("%v, %d letters are redriven and %d left: %s", err, len(all), s.inQueue("orders-dead"), s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text)
	}
	for i := range all {
		m := &all[i]
		if m.Body != `{"currency":"EUR"}` || len(m.Attributes) != 1 || m.Attributes[0].Name != "checked" || m.Attributes[0].StringValue != "<b>yes</b>" {
			t.Errorf("redriven: %s %+v", m.Body, m.Attributes)
		}
	}
	form.Set("action", "export")
	if text := s.onLetters("start", form); !strings.Contains(text, "1 letter") && !strings.Contains(text, "0 letters of 1 match") {
		t.Errorf("an export, which edits nothing: %s", text)
	}
	form.Set("action", "redrive")
	form.Set("find", "(")
	if text := s.onLetters("start", form); !strings.Contains(text, "find cannot be used") {
		t.Errorf("a mistake: %s", text)
	}
}

// TestUnfitLetters: letters that cannot be edited so are counted with the reason, and stay.
func TestUnfitLetters(t *testing.T) {
	s := serve(t, nil)
	s.bury("refused")
	form := url.Values{"all": {"1"}, "action": {"redrive"}, "find": {`.+`}} // nothing is left of the body
	form.Set("do", "count")
	if text := s.onLetters("start", form); !strings.Contains(text, "1 letter would be left: letters that cannot be edited so: the new body is empty") {
		t.Errorf("the count: %s", text)
	}
	if job, _ := s.offered(); job != "" {
		t.Errorf("a button offers to redrive none")
	}
	form.Set("do", "start")
	s.onLetters("start", form)
	s.ended()
	if jobs := s.do("GET", "/ui/dead/orders-dead/queue-jobs", nil).text; !strings.Contains(jobs, "1 cannot be edited so: the new body is empty") || s.inQueue("orders-dead") != 1 {
		t.Errorf("%s", jobs)
	}
}

// TestSelectGroup: the pattern of each group matches the errors that it stands for.
func TestSelectGroup(t *testing.T) {
	s := serve(t, nil)
	for _, text := range []string{
		"dial tcp 10.0.0.1:443: connect: refused", "id 7f6d2f6e-7a1e-4d5b-9b3e-1f2a3b4c5d6e at 2026-01-02T03:04:05Z", "a.b*c+(d)[e]{f}^$| 12.5", "<n> is a text & so is <b>",
		"two  spaces 1", "",
	} {
		s.bury(text)
	}
	links := regexp.MustCompile(`href="([^"]*)">Select these`).FindAllStringSubmatch(s.do("GET", "/ui/dead/orders-dead/groups", nil).text, -1)
	if len(links) != 6 {
		t.Fatalf("%d groups", len(links))
	}
	for _, link := range links {
		selected, err := url.Parse(html.UnescapeString(link[1]))
		if err != nil {
			t.Fatal(err)
		}
		form := selected.Query()
		form.Set("action", "export")
		form.Set("do", "count")
		got := s.do("POST", "/ui/dead/orders-dead/start", form, append(s.browser(), "Hx-Request", "true")...)
		want := "1 letter of 6"
		if form.Get("error") == "" {
			want = "6 letters of 6" // there is no pattern for no error
		}
		if !strings.Contains(got.text, want) {
			t.Errorf("%v: %s", form, got.text)
		}
	}
}

// TestSelectionOfALink: the form of a page that a link leads to has every field of the selection that the link names,
// and means the same letters when it is sent: without one of them it would mean more.
func TestSelectionOfALink(t *testing.T) {
	s := serve(t, nil)
	link := url.Values{
		"reason": {"permanent"}, "source": {"orders"}, "error": {"re<f>used"}, "body": {"x+"}, "ids": {"id-1 id-2"}, "where": {"customer.id=42"}, "older": {"2h"}, "newer": {"48h"},
	}
	page := s.do("GET", "/ui/dead/orders-dead?"+link.Encode(), nil).text
	form := url.Values{"action": {"delete"}, "do": {"count"}}
	for _, field := range regexp.MustCompile(`<input id="[a-z0-9-]+" name="([a-z]+)"[^>]*?value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		form.Add(field[1], html.UnescapeString(field[2]))
	}
	for name, values := range link {
		if form.Get(name) != values[0] {
			t.Errorf("the form has %q as %s, want %q", form.Get(name), name, values[0])
		}
	}
	s.onLetters("start", form)
	var begun struct {
		Jobs []admin.Job `json:"jobs"`
	}
	jobs := s.do("GET", "/admin/v1/jobs", nil).text
	if err := json.Unmarshal([]byte(jobs), &begun); err != nil || len(begun.Jobs) != 1 {
		t.Fatalf("%v: %s", err, jobs)
	}
	want := operate.Criteria{
		Reasons: []string{"permanent"}, Source: "orders", Error: "re<f>used", Body: "x+", IDs: []string{"id-1", "id-2"}, Where: []string{"customer.id=42"}, OlderThan: "2h", NewerThan: "48h",
	}
	if got := begun.Jobs[0].With; !reflect.DeepEqual(got, want) {
		t.Errorf("the job selects %+v, want %+v", got, want)
	}
}

// TestSelectionOfManyConditions: each of several conditions holds, whether they come as fields or as lines of one.
func TestSelectionOfManyConditions(t *testing.T) {
	s := serve(t, nil)
	page := s.do("GET", "/ui/dead/orders-dead?"+url.Values{"where": {"a=1\nb=2", "c=3"}}.Encode(), nil).text
	for _, want := range []string{`value="a=1"`, `value="b=2"`, `value="c=3"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s:\n%s", want, page)
		}
	}
}

// TestLettersUpToALimit: a job that may act on some letters acts on no more.
func TestLettersUpToALimit(t *testing.T) {
	s := serve(t, nil)
	for range 3 {
		s.bury("refused")
	}
	if text := s.onLetters("start", url.Values{"all": {"1"}, "action": {"redrive"}, "do": {"start"}, "limit": {"2"}}); !strings.Contains(text, "has begun to redrive") {
		t.Fatal(text)
	}
	if s.ended(); s.inQueue("orders") != 2 || s.inQueue("orders-dead") != 1 {
		t.Errorf("%d letters are redriven and %d left, want 2 and 1", s.inQueue("orders"), s.inQueue("orders-dead"))
	}
}

// TestNoLetters: the form about dead letters does nothing to messages of a queue that is no dead-letter queue, which
// are alive: neither by itself nor by a count that a program has made of them.
func TestNoLetters(t *testing.T) {
	s := serve(t, nil)
	s.send("orders", "alive")
	onOrders := func(action string, form url.Values) string {
		t.Helper()
		return html.UnescapeString(s.do("POST", "/ui/dead/orders/"+action, form, append(s.browser(), "Hx-Request", "true")...).text)
	}
	if text := onOrders("start", url.Values{"all": {"1"}, "action": {"delete"}, "do": {"count"}}); !strings.Contains(text, "0 would be deleted") {
		t.Errorf("the count: %s", text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/admin/v1/jobs", strings.NewReader(`{"queue":"orders","action":"delete","all":true,"dry_run":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	counted, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer counted.Body.Close()
	var job admin.Job
	if err := json.NewDecoder(counted.Body).Decode(&job); err != nil || job.ID == "" {
		t.Fatalf("%v: %+v", err, job)
	}
	s.ended()
	text := onOrders("carry-out", url.Values{"job": {job.ID}})
	if s.ended(); s.inQueue("orders") != 1 {
		t.Errorf("a message that is alive was deleted: %s", text)
	}
}

// TestCarryOutAsCounted: what is carried out is what was counted: to the same queue, at the same rate, and no letter that came after the
// count, although it matches and others that were looked at do not.
func TestCarryOutAsCounted(t *testing.T) {
	s := serve(t, nil)
	for _, err := range []string{"refused", "refused", "no such customer"} {
		s.bury(err)
	}
	created, err := s.client.CreateQueue(s.t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("parked")})
	if err != nil {
		t.Fatal(err)
	}
	carryOut := func(form url.Values, want string) {
		t.Helper()
		form.Set("do", "count")
		if text := s.onLetters("start", form); !strings.Contains(text, want) {
			t.Fatalf("the count: %s", text)
		}
		s.bury("refused as well, after the count")
		job, _ := s.offered()
		if text := s.onLetters("carry-out", url.Values{"job": {job}}); !strings.Contains(text, "has begun to") {
			t.Fatalf("%s", text)
		}
		s.ended()
	}
	carryOut(url.Values{"error": {"refused"}, "action": {"redrive"}, "to": {*created.QueueUrl}, "rate": {"700"}}, "2 letters of 3 match; 2 would be redriven")
	if jobs := s.do("GET", "/admin/v1/jobs", nil).text; strings.Count(jobs, `"rate":700`) != 2 {
		t.Errorf("the count and what it led to have not both the rate: %s", jobs)
	}
	if s.inQueue("parked") != 2 || s.inQueue("orders") != 0 || s.inQueue("orders-dead") != 2 {
		t.Errorf("%d letters went to the queue that was counted, %d to their source, and %d are left", s.inQueue("parked"), s.inQueue("orders"), s.inQueue("orders-dead"))
	}
	carryOut(url.Values{"error": {"refused"}, "action": {"delete"}}, "1 letter of 2 match; 1 would be deleted")
	if n := s.inQueue("orders-dead"); n != 2 {
		t.Errorf("%d letters are left, want the one that does not match and the one that was not counted", n)
	}
}
