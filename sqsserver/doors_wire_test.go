package sqsserver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// text returns the text of a scalar, and whether it is one.
func (d *door) text(value any) (text string, ok bool) {
	latest := func(of []string, i int) string {
		if len(of) <= i {
			return "none"
		}
		return of[len(of)-1-i]
	}
	switch value := value.(type) {
	case handleOf:
		return latest(d.handles, int(value)), true
	case taskOf:
		return latest(d.tasks, int(value)), true
	case string:
		return value, true
	case int:
		return strconv.Itoa(value), true
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64), true
	case bool:
		return strconv.FormatBool(value), true
	}
	return "", false
}

// json returns a value as JSON.
func (d *door) json(value any) string {
	switch value := value.(type) {
	case object:
		var members []string
		for _, m := range value {
			members = append(members, d.json(m.name)+":"+d.json(m.value))
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		var elements []string
		for _, element := range value {
			elements = append(elements, d.json(element))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case handleOf, taskOf:
		text, _ := d.text(value)
		return d.json(text)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (d *door) inJSON(op operation) (*http.Request, error) {
	return d.signed(d.json(op.input), http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS." + op.action}})
}

func (d *door) inForm(op operation) (*http.Request, error) {
	return d.signed(d.form(op), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

func (d *door) inFormForJSON(op operation) (*http.Request, error) {
	return d.signed(d.form(op), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}})
}

func (d *door) signed(body string, header http.Header) (*http.Request, error) {
	r := httptest.NewRequest(http.MethodPost, "http://sqs.us-east-1.localhost/", strings.NewReader(body))
	r.Header = header
	sum := sha256.Sum256([]byte(body))
	return r, v4.NewSigner().SignHTTP(r.Context(), theKey, r, hex.EncodeToString(sum[:]), "sqs", "us-east-1", time.Now())
}

func (d *door) inURL(op operation) (*http.Request, error) {
	r := httptest.NewRequest(http.MethodGet, "http://sqs.us-east-1.localhost/", nil)
	r.URL.RawQuery = d.form(op) + "&X-Amz-Expires=60"
	sum := sha256.Sum256(nil)
	signed, _, err := v4.NewSigner().PresignHTTP(r.Context(), theKey, r, hex.EncodeToString(sum[:]), "sqs", "us-east-1", time.Now())
	if err != nil {
		return nil, err
	}
	r.URL, err = url.Parse(signed)
	return r, err
}

// form returns an operation as the parameters of a form.
func (d *door) form(op operation) string { return strings.Join(d.formOf(op).parameters, "&") }

func (d *door) formOf(op operation) *form {
	f := &form{door: d, action: op.action, gaps: op.gaps}
	f.add("Action", op.action)
	f.add("Version", "2012-11-05")
	f.object("", op.input)
	return f
}

type form struct {
	door       *door
	action     string
	gaps       int
	parameters []string
	lost       bool // an element has no members, and so no parameters
}

func (f *form) add(name, value string) {
	f.parameters = append(f.parameters, strings.ReplaceAll(url.QueryEscape(name)+"="+url.QueryEscape(value), "+", "%20"))
}

// number returns the number of the element i of a list.
func (f *form) number(i int) int { return 1 + i*f.gaps }

func (f *form) object(prefix string, o object) {
	for _, m := range o {
		f.value(prefix, m.name, m.value)
	}
}

func (f *form) value(prefix, name string, value any) {
	if text, ok := f.door.text(value); ok {
		f.add(prefix+name, text)
		return
	}
	switch value := value.(type) {
	case object:
		pair, isMap := pairs[name]
		if !isMap {
			f.object(prefix+name+".", value)
			return
		}
		for i, m := range value {
			element := fmt.Sprintf("%s%s.%d.", prefix, pair[0], f.number(i))
			f.add(element+pair[1], m.name)
			f.value(element, pair[2], m.value)
		}
	case []any:
		of := lists[name]
		if name == "MessageSystemAttributeNames" {
			of = "MessageSystemAttributeName" // lists has the older name, which stands for both
		}
		for i, element := range value {
			if entry, ok := element.(object); ok {
				before := len(f.parameters)
				f.object(fmt.Sprintf("%s%sRequestEntry.%d.", prefix, f.action, f.number(i)), entry)
				f.lost = f.lost || len(f.parameters) == before
			} else {
				f.value(prefix, fmt.Sprintf("%s.%d", of, f.number(i)), element)
			}
		}
	}
}

func readJSON(_ string, w *httptest.ResponseRecorder) (r reply, err error) {
	if w.Body.Len() == 0 {
		return reply{}, nil
	}
	if err := json.Unmarshal(w.Body.Bytes(), &r.members); err != nil || w.Code == http.StatusOK {
		return r, err
	}
	r.code, _, _ = strings.Cut(w.Header().Get("X-Amzn-Query-Error"), ";")
	r.message, _ = r.members.(map[string]any)["message"].(string)
	r.members = nil
	return r, nil
}

func readXML(action string, w *httptest.ResponseRecorder) (r reply, err error) {
	var root node
	if err := xml.Unmarshal(w.Body.Bytes(), &root); err != nil {
		return reply{}, err
	}
	if w.Code != http.StatusOK {
		return withError(root.child("Error").text("Code"), root.child("Error").text("Message")), nil
	}
	text, err := json.Marshal(root.child(action + "Result").toJSON(action))
	if err != nil {
		return reply{}, err
	}
	return r, json.Unmarshal(text, &r.members)
}

func readQueryJSON(action string, w *httptest.ResponseRecorder) (r reply, err error) {
	if w.Code != http.StatusOK {
		var problem struct {
			Error struct{ Code, Message string }
		}
		err := json.Unmarshal(w.Body.Bytes(), &problem)
		return withError(problem.Error.Code, problem.Error.Message), err
	}
	var root map[string]map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &root); err != nil {
		return reply{}, err
	}
	members, _ := mapped(root[action+"Response"][action+"Result"]).(map[string]any)
	for queryName, name := range map[string]string{"messages": "Messages", "queueUrls": "QueueUrls"} {
		if value := members[queryName]; value != nil && action != "ListDeadLetterSourceQueues" {
			members[name] = value
			delete(members, queryName)
		}
	}
	r.members = members
	return r, nil
}

func withError(code, message string) reply {
	// The one text that differs between the protocols.
	message = strings.ReplaceAll(message, "The specified queue does not exist for this wsdl version.", "The specified queue does not exist.")
	return reply{code: code, message: message}
}

// inXML replaces the characters that XML cannot have as the server does.
var inXML = func() *strings.Replacer {
	pairs := []string{"\ufffe", "\ufffd", "\uffff", "\ufffd"}
	for c := range rune(' ') {
		if c != '\t' && c != '\n' && c != '\r' {
			pairs = append(pairs, string(c), "\ufffd")
		}
	}
	return strings.NewReplacer(pairs...)
}()

// withoutEmpty leaves out what only some protocols write: members without a value, and nil instead of no members.
// In all of them texts have the characters that XML permits.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		left := make(map[string]any)
		for name, member := range value {
			if member = withoutEmpty(member); member != nil {
				left[name] = member
			}
		}
		if len(left) == 0 {
			return nil
		}
		return left
	case string:
		return inXML.Replace(value)
	case []any:
		var left []any
		for _, element := range value {
			left = append(left, withoutEmpty(element))
		}
		if len(left) == 0 {
			return nil
		}
		return left
	}
	return value
}
