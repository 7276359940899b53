package sigv4_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/reprise-sqs/reprise/internal/sigv4"
)

const (
	accessKey = "AKIDEXAMPLE"
	secret    = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	body      = `{"QueueName":"q"}`
)

var signedAt = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func secretOf(id string) (string, bool) { return secret, id == accessKey }

// verify reads and verifies the signature of a request at a time.
func verify(r *http.Request, now ...time.Time) error {
	sig, err := sigv4.Read(r, secretOf, now...)
	if err != nil {
		return err
	}
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return sig.Verify(sent)
}

// inHeader and inURL sign a request with the SDK's signer.
func inHeader(t *testing.T) *http.Request {
	t.Helper()
	return inHeaderWithout(t, "")
}

// inHeaderWithout signs a request that has no such header.
func inHeaderWithout(t *testing.T, header string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("POST", "http://sqs.example.com/000000000000/q%20r-09AZ_az.~?a=%2B%2F&b%2F=c", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "AmazonSQS.GetQueueUrl")
	r.Header.Set("X-Amz-Meta", "  a   b ")
	r.Header.Del(header)
	sum := sha256.Sum256([]byte(body))
	key := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(context.Background(), key, r, hex.EncodeToString(sum[:]), "sqs", "eu-west-1", signedAt); err != nil {
		t.Fatal(err)
	}
	return r
}

func inURL(t *testing.T) *http.Request {
	t.Helper()
	sum := sha256.Sum256(nil)
	key := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	r := httptest.NewRequest("GET", "http://sqs.example.com/000000000000/q?Action=SendMessage&MessageBody=a%2Bb&X-Amz-Expires=60", nil)
	text, _, err := v4.NewSigner().PresignHTTP(context.Background(), key, r, hex.EncodeToString(sum[:]), "sqs", "eu-west-1", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewRequest("GET", text, nil)
}

func TestSoundSignatures(t *testing.T) {
	for name, r := range map[string]*http.Request{"in the header": inHeader(t), "in the URL": inURL(t)} {
		if err := verify(r, signedAt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if id, region, err := sigv4.Scope(r); id != accessKey || region != "eu-west-1" || err != nil {
			t.Errorf("%s: Scope = %q, %q, %v", name, id, region, err)
		}
	}
}

// TestAnyChangeIsRefused: whatever part of a signed request is changed, it is refused.
func TestAnyChangeIsRefused(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	replaced := func(old, by string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, by, 1))
		}
	}
	for _, test := range []struct {
		name   string
		change func(*http.Request)
		want   sigv4.Reason
	}{
		{"method", func(r *http.Request) { r.Method = "PUT" }, sigv4.Mismatch},
		{"path", func(r *http.Request) { r.URL.Path = "/000000000000/x"; r.URL.RawPath = "" }, sigv4.Mismatch},
		{"query", func(r *http.Request) { r.URL.RawQuery = "a=%2B%2F&b%2F=d" }, sigv4.Mismatch},
		{"host", func(r *http.Request) { r.Host = "other.example.com" }, sigv4.Mismatch},
		{"body", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body + " ")) }, sigv4.Mismatch},
		{"target", header("X-Amz-Target", "AmazonSQS.DeleteQueue"), sigv4.Mismatch},
		{"header", header("X-Amz-Meta", "c"), sigv4.Mismatch},
		{"date", header("X-Amz-Date", "20261123T120001Z"), sigv4.Mismatch},
		{"claimed hash", header("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), sigv4.Mismatch},
		{"region", replaced("/eu-west-1/", "/us-east-1/"), sigv4.Mismatch},
		{"service", replaced("/sqs/", "/sns/"), sigv4.Mismatch},
		{"terminator", replaced("aws4_request", "aws5_request"), sigv4.Mismatch},
		{"target taken out of the signed headers", replaced("x-amz-target", "x-amz-other"), sigv4.Mismatch},
		{"signature cut short", func(r *http.Request) { h := r.Header.Get("Authorization"); r.Header.Set("Authorization", h[:len(h)-2]) }, sigv4.Mismatch},
		{"signature in no hexadecimal", replaced("Signature=", "Signature=zz"), sigv4.Mismatch},
		{"access key", replaced("="+accessKey, "=AKIDOTHER"), sigv4.UnknownKey},
		{"a header signed twice", replaced("SignedHeaders=", "SignedHeaders=host;"), sigv4.Incomplete},
		{"101 headers signed", replaced("SignedHeaders=", "SignedHeaders="+names(101)), sigv4.Incomplete},
		{"a short credential", replaced("/eu-west-1", ""), sigv4.Incomplete},
		{"100 headers signed", func(r *http.Request) {
			signed := strings.Count(r.Header.Get("Authorization"), ";") + 1
			replaced("SignedHeaders=", "SignedHeaders="+names(100-signed))(r)
		}, sigv4.Mismatch},
		{"no signature", replaced("Signature=", "S="), sigv4.Incomplete},
		{"no date", func(r *http.Request) { r.Header.Del("X-Amz-Date") }, sigv4.Incomplete},
		{"a parameter twice", func(r *http.Request) { r.URL.RawQuery += "&a=%2B%2F" }, sigv4.Incomplete},
		{"a parameter that net/url leaves out", func(r *http.Request) { r.URL.RawQuery += "&c=d;" }, sigv4.Incomplete},
		{"no credentials", func(r *http.Request) { r.Header.Del("Authorization") }, sigv4.Unsigned},
	} {
		r := inHeader(t)
		test.change(r)
		var refused *sigv4.Error
		if err := verify(r, signedAt); !errors.As(err, &refused) || refused.Reason != test.want || refused.Message == "" {
			t.Errorf("%s: %v, want the reason %d", test.name, err, test.want)
		}
	}
}

// TestTargetMustBeSigned: nobody can add to a signed request what decides its action.
func TestTargetMustBeSigned(t *testing.T) {
	r := inHeaderWithout(t, "X-Amz-Target")
	if err := verify(r, signedAt); err != nil {
		t.Fatalf("without a target: %v", err)
	}
	r = inHeaderWithout(t, "X-Amz-Target")
	r.Header.Set("X-Amz-Target", "AmazonSQS.DeleteQueue")
	var refused *sigv4.Error
	if err := verify(r, signedAt); !errors.As(err, &refused) || refused.Reason != sigv4.Mismatch {
		t.Errorf("with a target that is not signed: %v", err)
	}
}

// TestURLMustBeComplete: a URL with a part of a signature is not unsigned.
func TestURLMustBeComplete(t *testing.T) {
	for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Signature", "X-Amz-SignedHeaders"} {
		r := inURL(t)
		query := r.URL.Query()
		query.Del(name)
		r.URL.RawQuery = query.Encode()
		var refused *sigv4.Error
		if err := verify(r, signedAt); !errors.As(err, &refused) || refused.Reason != sigv4.Incomplete || !strings.Contains(refused.Message, "'"+name+"'") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestMessages: what a client must change is named as AWS names it.
func TestMessages(t *testing.T) {
	lasting := func(seconds string) *http.Request {
		r := inURL(t)
		r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "X-Amz-Expires=60", "X-Amz-Expires="+seconds, 1)
		return r
	}
	for _, test := range []struct {
		request *http.Request
		want    string
	}{
		{httptest.NewRequest("GET", "http://sqs.example.com/q?Action=SendMessage", nil), "Access to the resource http://sqs.example.com/q is denied."},
		{httptest.NewRequest("GET", "https://sqs.example.com/q?Action=SendMessage", nil), "Access to the resource https://sqs.example.com/q is denied."},
		{lasting("60"), "Signature expired: 20261123T120000Z is now earlier than 20261123T125900Z (20261123T130000Z - 1 min.)"},
		{lasting("90"), "Signature expired: 20261123T120000Z is now earlier than 20261123T125830Z (20261123T130000Z - 90 sec.)"},
	} {
		var refused *sigv4.Error
		if err := verify(test.request, signedAt.Add(time.Hour)); !errors.As(err, &refused) || refused.Message != test.want {
			t.Errorf("%s: %v, want %s", test.request.URL, err, test.want)
		}
	}
}

// names lists so many names of headers.
func names(n int) string {
	var list strings.Builder
	for i := range n {
		list.WriteString("h" + strings.Repeat("x", i) + ";")
	}
	return list.String()
}

func TestTimes(t *testing.T) {
	for _, test := range []struct {
		request func(*testing.T) *http.Request
		now     []time.Duration // after the signing
		ok      bool
	}{
		{inHeader, []time.Duration{15 * time.Minute}, true},
		{inHeader, []time.Duration{15*time.Minute + time.Second}, false},
		{inHeader, []time.Duration{-15 * time.Minute}, true},
		{inHeader, []time.Duration{-15*time.Minute - time.Second}, false},
		{inHeader, []time.Duration{time.Hour, time.Minute}, true}, // one of two clocks
		{inHeader, []time.Duration{time.Hour, -time.Hour}, false}, // between two clocks
		{inURL, []time.Duration{time.Minute}, true},
		{inURL, []time.Duration{time.Minute + time.Second}, false},
		{inURL, []time.Duration{-15 * time.Minute}, true},
		{inURL, []time.Duration{-15*time.Minute - time.Second}, false},
	} {
		r := test.request(t)
		var now []time.Time
		for _, d := range test.now {
			now = append(now, signedAt.Add(d))
		}
		if err := verify(r, now...); (err == nil) != test.ok {
			t.Errorf("%s signed at %v, verified %v later: %v", r.Method, signedAt, test.now, err)
		}
	}
}

// TestLifetimes: the lifetime of a URL is signed, and at most a week.
func TestLifetimes(t *testing.T) {
	for lifetime, want := range map[string]sigv4.Reason{
		"1": sigv4.Mismatch, "61": sigv4.Mismatch, "604800": sigv4.Mismatch,
		"0": sigv4.Incomplete, "-1": sigv4.Incomplete, "604801": sigv4.Incomplete, "99999999999999999999": sigv4.Incomplete, "soon": sigv4.Incomplete, "": sigv4.Incomplete,
	} {
		r := inURL(t)
		query := r.URL.Query()
		query.Set("X-Amz-Expires", lifetime)
		r.URL.RawQuery = query.Encode()
		var refused *sigv4.Error
		if err := verify(r, signedAt); !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("lifetime %q: %v, want the reason %d", lifetime, err, want)
		}
	}
}

// TestScopeIsANameOnly: what goes into ARNs, metrics and logs can be nothing but a name.
func TestScopeIsANameOnly(t *testing.T) {
	for credential, want := range map[string]struct {
		id, region string
		ok         bool
	}{
		"": {"", "", true},
		"AKID/20261123/eu-west-1/sqs/aws4_request": {"AKID", "eu-west-1", true},
		"AKID": {"AKID", "", true},
		"AKID/20261123/eu-west-1/sqs/aws4_request/more":                  {"", "", true}, // Read refuses it
		"!~/azAZ09-_/az09-/azAZ09-_/azAZ09-_":                            {"!~", "az09-", true},
		"AKID/20261123/EU/sqs/aws4_request":                              {},
		"AKID/20261123/a%1Bb/sqs/aws4_request":                           {},
		"AKID/20261123/" + strings.Repeat("a", 64) + "/sqs/aws4_request": {"AKID", strings.Repeat("a", 64), true},
		"AKID/20261123/" + strings.Repeat("a", 65) + "/sqs/aws4_request": {},
		strings.Repeat("A", 128):                                         {strings.Repeat("A", 128), "", true},
		strings.Repeat("A", 129):                                         {},
		"A KID/20261123/eu-west-1/sqs/aws4_request":                      {},
		"AKID/2026 1123/eu-west-1/sqs/aws4_request":                      {},
		"AKID/20261123/eu-west-1/s q s/aws4_request":                     {},
		"AKID/20261123/eu-west-1/sqs/aws4.request":                       {},
	} {
		r := httptest.NewRequest("GET", "/?X-Amz-Credential="+url.QueryEscape(credential), nil)
		id, region, err := sigv4.Scope(r)
		if id != want.id || region != want.region || (err == nil) != want.ok {
			t.Errorf("Scope of %q = %q, %q, %v", credential, id, region, err)
		}
		var refused *sigv4.Error
		if err != nil && (!errors.As(err, &refused) || refused.Reason != sigv4.Incomplete || len(refused.Message) > 400) {
			t.Errorf("Scope of %q: %v", credential, err)
		}
	}
}

// TestLongNamesAreCut: an error quotes at most 64 characters of what a client has sent.
func TestLongNamesAreCut(t *testing.T) {
	for n, want := range map[int]string{64: strings.Repeat("A", 64) + `"`, 65: strings.Repeat("A", 64) + `..."`} {
		r := httptest.NewRequest("GET", "/?X-Amz-Credential=AKID/20261123/"+strings.Repeat("A", n)+"/sqs/aws4_request", nil)
		if _, _, err := sigv4.Scope(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a region of %d letters: %v, want it to have %s", n, err, want)
		}
	}
}
