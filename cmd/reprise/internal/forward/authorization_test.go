package forward_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

// TestBeanstalk: what Elastic Beanstalk documents of its worker daemon. Status 200 deletes a
// message; after every other answer, or none, it comes again; no answer asks for a wait. The
// headers are the daemon's and no others.
func TestBeanstalk(t *testing.T) {
	var status int
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Beanstalk: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	m := &reprise.Message{
		ID: "id", OriginID: "origin", GroupID: "group", Body: "body \xff", Attempt: 2, Receives: 3,
		FirstReceived: time.Date(2026, 11, 21, 7, 28, 0, 0, time.UTC),
		Attributes: map[string]types.MessageAttributeValue{
			"team":  {DataType: aws.String("String"), StringValue: aws.String("shop")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{1}},
		},
	}
	for _, status = range []int{200, 201, 202, 204, 301, 307, 400, 401, 404, 408, 409, 410, 422, 429, 500, 502, 503, 504} {
		err := target.Handle(t.Context(), m)
		answer, answered := errors.AsType[*forward.StatusError](err)
		switch {
		case status == 200:
			if err != nil {
				t.Errorf("200: %v", err)
			}
		case !answered || answer.Status != status || answer != err: // an error around it would steer
			t.Errorf("%d: %v, want an error that the policy retries", status, err)
		}
	}
	if got.Method != http.MethodPost || string(body) != m.Body {
		t.Errorf("%s with the body %q", got.Method, body)
	}
	want := map[string]string{
		"User-Agent": "aws-sqsd/1.1", "Content-Type": "application/json", "X-Aws-Sqsd-Msgid": "id", "X-Aws-Sqsd-Queue": "orders",
		"X-Aws-Sqsd-First-Received-At": "2026-11-21T07:28:00Z", "X-Aws-Sqsd-Receive-Count": "3", "X-Aws-Sqsd-Attr-Team": "shop",
	}
	for name := range maps.Keys(got.Header) {
		if name != "Content-Length" && name != "Accept-Encoding" && want[name] != got.Header.Get(name) {
			t.Errorf("header %s: %q", name, got.Header.Get(name))
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("headers are missing: %v", want)
	}

	srv.Close()
	if err := target.Handle(t.Context(), m); err == nil {
		t.Error("without a server the message was deleted")
	}
}

// TestHTTPAuthorization: headers, authorization and signature are sent, and the signature
// covers the body and the time.
func TestHTTPAuthorization(t *testing.T) {
	const secret = "a secret of many bytes"
	var header http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header = r.Header
		at, signature, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("X-Reprise-Signature"), "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte(secret))
		io.WriteString(mac, at+"."+string(body))
		if signature != hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature %q is not that of %q", r.Header.Get("X-Reprise-Signature"), body)
		}
	}))
	defer srv.Close()
	extra, err := forward.ParseHeaders([]string{"X-Team: shipping", "x-tag:a", "X-Tag: b:c"})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := forward.Bearer("t0ken")
	if err != nil {
		t.Fatal(err)
	}
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: srv.URL, Queue: "orders", Header: extra, Authorization: bearer, Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for _, body := range []string{"", "\xff\x00", strings.Repeat("x", 1<<20)} {
		if err := target.Handle(t.Context(), &reprise.Message{ID: "id", Body: body}); err != nil {
			t.Error(err)
		}
	}
	if header.Get("Authorization") != "Bearer t0ken" || header.Get("X-Team") != "shipping" {
		t.Errorf("headers %v", header)
	}
	if diff := cmp.Diff([]string{"a", "b:c"}, slices.Sorted(slices.Values(header["X-Tag"]))); diff != "" {
		t.Errorf("X-Tag (-want +got):\n%s", diff)
	}
	if basic, err := forward.Basic("user:pass:word"); err != nil || basic != "Basic dXNlcjpwYXNzOndvcmQ=" {
		t.Errorf("Basic = %q, %v", basic, err)
	}
}

// TestHTTPAuthorizationMistakes: what cannot be sent is refused, and no secret is quoted.
func TestHTTPAuthorizationMistakes(t *testing.T) {
	for _, bad := range []string{"", "two words", "s3cret\n"} {
		if _, err := forward.Bearer(bad); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Bearer(%q): %v", bad, err)
		}
	}
	for _, bad := range []string{"", "s3cret", ":s3cret", "user:s3cret\n"} {
		if _, err := forward.Basic(bad); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Basic(%q): %v", bad, err)
		}
	}
	for _, bad := range []string{
		"X-Team", ": s3cret", "X Team: s3cret", "X-Team: s3\x00cret", "Authorization: s3cret", "content-type: text/plain", "X-Reprise-Attempt: 1", "x-aws-sqsd-msgid: 1",
		"Idempotency-Key: s3cret", "x-idempotency-key: s3cret", // of all messages one: a receiver would do the first alone
		"Host: s3cret", "User-Agent: s3cret", "Connection: close", "Content-Length: 1", "Transfer-Encoding: chunked",
	} {
		if _, err := forward.ParseHeaders([]string{bad}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ParseHeaders(%q): %v", bad, err)
		}
	}
	if _, err := forward.NewHTTP(forward.HTTPConfig{URL: "http://user@localhost", Queue: "q", Authorization: "Bearer x"}); err == nil {
		t.Error("two authorizations are taken")
	}
}
