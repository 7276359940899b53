package sqsserver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// theKey is one of those of the servers that strict makes.
var theKey = aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

// strict is a server that verifies signatures, at an address of its own, with the
// queue q.
func strict(t *testing.T) (b *testServer, endpoint string) {
	server := sqsserver.New(sqsserver.Config{Credentials: []sqsserver.Credentials{
		{AccessKeyID: "AKIDSECOND", SecretAccessKey: "other"},
		{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: theKey.SecretAccessKey},
	}})
	t.Cleanup(func() { server.Close() })
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	b = &testServer{T: t, server: server}
	b.url = b.create("q", nil)
	return b, web.URL
}

// The SDK's own requests, all of whose bytes it chooses itself.
func TestSignatureOfTheSDK(t *testing.T) {
	b, endpoint := strict(t)
	for _, test := range []struct {
		name string
		key  aws.Credentials
		code string
	}{
		{"the key", theKey, ""},
		{"another key", aws.Credentials{AccessKeyID: "AKIDSECOND", SecretAccessKey: "other"}, ""},
		{"a session token", aws.Credentials{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: theKey.SecretAccessKey, SessionToken: "token"}, ""},
		{"an unknown key", aws.Credentials{AccessKeyID: "AKIDOTHER", SecretAccessKey: theKey.SecretAccessKey}, "InvalidClientTokenId"},
		{"a wrong secret", aws.Credentials{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: "guess"}, "SignatureDoesNotMatch"},
		{"the secret of another key", aws.Credentials{AccessKeyID: theKey.AccessKeyID, SecretAccessKey: "other"}, "SignatureDoesNotMatch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := sqs.New(sqs.Options{
				Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1,
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return test.key, nil }),
			})
			_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("<ü & \"x\">"),
				MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("b")}}})
			code := ""
			var refused smithy.APIError
			if errors.As(err, &refused) {
				code = refused.ErrorCode()
			}
			if code != test.code || (err == nil) != (test.code == "") {
				t.Errorf("SendMessage returned %v, want the code %q", err, test.code)
			}
		})
	}
	if n := len(b.receive(b.url)); n != 3 {
		t.Errorf("%d messages were sent, want 3", n)
	}
}

// attempt is a request to a strict server, as the cases of the next tests spoil it.
type attempt struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         string
	key          aws.Credentials
	signed       time.Time
	unsigned     bool
	presign      bool
	region       string
	service      string
	spoil        func(*http.Request) // after signing
}

// do signs the request with the SDK's signer and sends it.
func (a attempt) do(t *testing.T, endpoint string) (status int, reply string) {
	t.Helper()
	target := endpoint + a.path
	if len(a.query) > 0 {
		target += "?" + a.query.Encode()
	}
	newRequest := func(target string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), a.method, target, strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range a.header {
			r.Header.Set(name, value)
		}
		return r
	}
	r := newRequest(target)
	sum := sha256.Sum256([]byte(a.body))
	hash, signer := hex.EncodeToString(sum[:]), v4.NewSigner()
	switch {
	case a.unsigned:
	case a.presign:
		signedURL, headers, err := signer.PresignHTTP(t.Context(), a.key, r, hash, a.service, a.region, a.signed)
		if err != nil {
			t.Fatal(err)
		}
		r = newRequest(signedURL)
		for name, values := range headers {
			r.Header[name] = values
		}
	default:
		if err := signer.SignHTTP(t.Context(), a.key, r, hash, a.service, a.region, a.signed); err != nil {
			t.Fatal(err)
		}
	}
	if a.spoil != nil {
		a.spoil(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// replacedIn changes the first old in the Authorization header.
func replacedIn(old, new string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, new, 1))
	}
}

func TestSignatureInTheHeader(t *testing.T) {
	_, endpoint := strict(t)
	now := time.Now()
	sound := attempt{
		method: "POST", path: "/", body: `{"QueueName":"q"}`, key: theKey, signed: now, region: "us-east-1", service: "sqs",
		header: map[string]string{"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.GetQueueUrl", "X-Amz-Meta": "  a   b "},
	}
	const (
		malformed = "com.amazon.coral.service#IncompleteSignatureException"
		invalid   = "com.amazon.coral.service#InvalidSignatureException"
		unknown   = "com.amazon.coral.service#UnrecognizedClientException"
		denied    = "com.amazon.coral.service#AccessDeniedException"
	)
	for _, test := range []struct {
		name   string
		spoil  func(*attempt)
		status int
		want   []string // in the reply
	}{
		{"a sound request", func(a *attempt) {}, 200, []string{"QueueUrl"}},
		{"another region has other queues", func(a *attempt) { a.region = "eu-west-1" }, 400, []string{"QueueDoesNotExist"}},
		{"a clock 14 minutes behind", func(a *attempt) { a.signed = now.Add(-14 * time.Minute) }, 200, nil},
		{"a clock 14 minutes ahead", func(a *attempt) { a.signed = now.Add(14 * time.Minute) }, 200, nil},
		{"a clock 16 minutes behind", func(a *attempt) { a.signed = now.Add(-16 * time.Minute) }, 403, []string{invalid, "Signature expired: ", "- 15 min.)"}},
		{"a clock 16 minutes ahead", func(a *attempt) { a.signed = now.Add(16 * time.Minute) }, 403, []string{invalid, "Signature not yet current: ", "+ 15 min.)"}},
		{"no credentials", func(a *attempt) { a.unsigned = true }, 403, []string{denied, "Access to the resource " + endpoint + "/ is denied."}},
		{"an unknown key", func(a *attempt) { a.key.AccessKeyID = "AKIDOTHER" }, 403, []string{unknown, "The security token included in the request is invalid."}},
		{"a wrong secret", func(a *attempt) { a.key.SecretAccessKey = "guess" }, 403, []string{invalid, "The request signature we calculated does not match"}},
		{"a body that was changed", func(a *attempt) {
			a.spoil = func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"QueueName":"x"}`)) }
		}, 403, []string{invalid}},
		{"a path that was changed", func(a *attempt) { a.spoil = func(r *http.Request) { r.URL.Path = "/000000000000/q" } }, 403, []string{invalid}},
		{"a parameter that was added", func(a *attempt) { a.spoil = func(r *http.Request) { r.URL.RawQuery = "a=b" } }, 403, []string{invalid}},
		{"a method that was changed", func(a *attempt) { a.spoil = func(r *http.Request) { r.Method = "PUT" } }, 403, []string{invalid}},
		{"a target that was changed", func(a *attempt) {
			a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Target", "AmazonSQS.DeleteQueue") }
		}, 403, []string{invalid}},
		{"a target that is not signed", func(a *attempt) {
			delete(a.header, "X-Amz-Target")
			a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Target", "AmazonSQS.GetQueueUrl") }
			a.header = map[string]string{"Content-Type": "application/x-amz-json-1.0"}
		}, 403, []string{invalid, "'X-Amz-Target' must be a 'SignedHeader'"}},
		{"a host that was changed", func(a *attempt) { a.spoil = func(r *http.Request) { r.Host = "sqs.example.com" } }, 403, []string{invalid}},
		{"a date that was changed", func(a *attempt) {
			a.spoil = func(r *http.Request) {
				r.Header.Set("X-Amz-Date", now.Add(time.Second).UTC().Format("20060102T150405Z"))
			}
		}, 403, []string{invalid}},
		{"a signed header that was changed", func(a *attempt) { a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Meta", "c") } }, 403, []string{invalid}},
		{"the hash of another body", func(a *attempt) {
			a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", strings.Repeat("0", 64)) }
		}, 403, []string{invalid, "X-Amz-Content-Sha256"}},
		{"the hash of no body", func(a *attempt) {
			a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") }
		}, 403, []string{invalid, "X-Amz-Content-Sha256"}},
		{"another service", func(a *attempt) { a.service = "sns" }, 403, []string{invalid, "correct service: 'sqs'"}},
		{"another terminator", func(a *attempt) { a.spoil = replacedIn("aws4_request", "aws5_request") }, 403, []string{invalid, "not 'aws5_request'"}},
		{"a scope of another day", func(a *attempt) {
			a.spoil = replacedIn("/"+now.UTC().Format("20060102")+"/", "/20060102/")
		}, 403, []string{invalid, "'20060102' != '" + now.UTC().Format("20060102") + "'"}},
		// Which queues a request means is read from the credential that is verified.
		{"another region before the signed one", func(a *attempt) {
			a.spoil = replacedIn("Credential=", "Credential="+theKey.AccessKeyID+"/20060102/eu-west-1/sqs/aws4_request, Credential=")
		}, 403, []string{invalid}},
		{"another account before the signed one", func(a *attempt) {
			a.spoil = replacedIn("Credential=", "NoCredential=111111111111/20060102/us-east-1/sqs/aws4_request, Credential=")
		}, 403, []string{unknown}},
		{"a signature that is no number", func(a *attempt) { a.spoil = replacedIn("Signature=", "Signature=zz") }, 403, []string{invalid}},
		{"a signature cut short", func(a *attempt) {
			a.spoil = func(r *http.Request) { h := r.Header.Get("Authorization"); r.Header.Set("Authorization", h[:len(h)-2]) }
		}, 403, []string{invalid}},
		{"no signature", func(a *attempt) { a.spoil = replacedIn("Signature=", "Sign=") }, 400, []string{malformed, "requires 'Signature' parameter."}},
		{"no credential", func(a *attempt) { a.spoil = replacedIn("Credential=", "C=") }, 400, []string{malformed, "requires 'Credential' parameter."}},
		{"no signed headers", func(a *attempt) { a.spoil = replacedIn("SignedHeaders=", "H=") }, 400, []string{malformed, "requires 'SignedHeaders' parameter."}},
		{"a key with a slash", func(a *attempt) { a.key.AccessKeyID = "AK/ID" }, 400, []string{malformed, "5 slash-delimited elements"}},
		{"a short credential", func(a *attempt) { a.spoil = replacedIn("/us-east-1", "") }, 400, []string{malformed, "5 slash-delimited elements"}},
		{"no date", func(a *attempt) { a.spoil = func(r *http.Request) { r.Header.Del("X-Amz-Date") } }, 400, []string{malformed, "'X-Amz-Date'"}},
		{"a date that is none", func(a *attempt) {
			a.spoil = func(r *http.Request) { r.Header.Set("X-Amz-Date", now.UTC().Format("20060102")+"T9") }
		}, 400, []string{malformed, "ISO-8601"}},
		{"another algorithm", func(a *attempt) { a.spoil = replacedIn("AWS4-HMAC-SHA256", "AWS4-HMAC-MD5") }, 400, []string{malformed}},
		{"no text at all", func(a *attempt) { a.spoil = func(r *http.Request) { r.Header.Set("Authorization", "Basic YTpi") } }, 400, []string{malformed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := sound
			a.header = map[string]string{}
			for name, value := range sound.header {
				a.header[name] = value
			}
			test.spoil(&a)
			status, reply := a.do(t, endpoint)
			if status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, reply)
			}
			for _, want := range test.want {
				if !strings.Contains(reply, want) {
					t.Errorf("the reply does not say %q: %s", want, reply)
				}
			}
		})
	}
}

// A signature in a URL is checked in the same way, on any path: a GET, as curl makes it of a
// URL that was signed before, and a form.
func TestSignatureInTheURL(t *testing.T) {
	_, endpoint := strict(t)
	now := time.Now()
	sound := attempt{
		method: "GET", path: "/000000000000/q", key: theKey, signed: now, region: "us-east-1", service: "sqs", presign: true,
		query: url.Values{"Action": {"SendMessage"}, "Version": {"2012-11-05"}, "MessageBody": {"a+b/c d~é&=%"}, "X-Amz-Expires": {"60"}},
	}
	with := func(name, value string) func(*attempt) {
		return func(a *attempt) {
			a.spoil = func(r *http.Request) {
				query := r.URL.Query()
				query.Del(name)
				if value != "" {
					query.Set(name, value)
				}
				r.URL.RawQuery = query.Encode()
			}
		}
	}
	adding := func(parameter string) func(*attempt) {
		return func(a *attempt) { a.spoil = func(r *http.Request) { r.URL.RawQuery += "&" + parameter } }
	}
	for _, test := range []struct {
		name   string
		spoil  func(*attempt)
		status int
		want   string // in the reply
	}{
		{"a sound request", func(a *attempt) {}, 200, "<SendMessageResult>"},
		{"a session token", func(a *attempt) { a.key.SessionToken = "token" }, 200, "<SendMessageResult>"},
		{"a path with escapes", func(a *attempt) { a.path = "/000000000000/q%20%2B" }, 400, "NonExistentQueue"},
		{"a form", func(a *attempt) {
			a.method, a.path, a.presign, a.body = "POST", "/", false, a.query.Encode()
			a.query, a.header = nil, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		}, 400, "NonExistentQueue"},
		{"no credentials", func(a *attempt) { a.unsigned = true }, 403, "<Code>AccessDenied</Code>"},
		{"a wrong secret", func(a *attempt) { a.key.SecretAccessKey = "guess" }, 403, "<Code>SignatureDoesNotMatch</Code>"},
		{"an unknown key", func(a *attempt) { a.key.AccessKeyID = "AKIDOTHER" }, 403, "<Code>InvalidClientTokenId</Code>"},
		{"a lifetime that has ended", func(a *attempt) { a.signed = now.Add(-2 * time.Minute) }, 403, "Signature expired: "},
		{"a lifetime that lasts", func(a *attempt) { a.signed = now.Add(-2 * time.Hour); a.query.Set("X-Amz-Expires", "7260") }, 200, ""},
		{"a lifetime that has not begun", func(a *attempt) { a.signed = now.Add(16 * time.Minute) }, 403, "Signature not yet current: "},
		{"a lifetime that was prolonged", with("X-Amz-Expires", "3600"), 403, "does not match"},
		{"a lifetime too long", with("X-Amz-Expires", "604801"), 400, "from 1 to 604800"},
		{"a lifetime that overflows", with("X-Amz-Expires", "99999999999999999"), 400, "from 1 to 604800"},
		{"a lifetime that is none", with("X-Amz-Expires", "soon"), 400, "from 1 to 604800"},
		{"no lifetime", with("X-Amz-Expires", ""), 400, "must include 'X-Amz-Expires'"},
		{"no date", with("X-Amz-Date", ""), 400, "must include 'X-Amz-Date'"},
		{"no credential", with("X-Amz-Credential", ""), 400, "must include 'X-Amz-Credential'"},
		{"no signed headers", with("X-Amz-SignedHeaders", ""), 400, "must include 'X-Amz-SignedHeaders'"},
		{"no signature", with("X-Amz-Signature", ""), 400, "must include 'X-Amz-Signature'"},
		{"another algorithm", with("X-Amz-Algorithm", "MD5"), 400, "must be AWS4-HMAC-SHA256"},
		{"a host that is not signed", with("X-Amz-SignedHeaders", "date"), 403, "'Host' must be a 'SignedHeader'"},
		{"another action", with("Action", "PurgeQueue"), 403, "does not match"},
		// Values of one name are signed in their order: by another order an attacker could
		// choose which one is read.
		{"a body that stands twice", func(a *attempt) { a.query["MessageBody"] = []string{"a", "b"} }, 400, "'MessageBody' must occur once"},
		{"two lifetimes", func(a *attempt) { a.query["X-Amz-Expires"] = []string{"3600", "60"} }, 400, "'X-Amz-Expires' must occur once"},
		// A parameter that net/url leaves out of a query must not be read by another parser.
		{"another body, with a semicolon", adding("MessageBody=forged;"), 400, "invalid semicolon separator"},
		{"another queue, with a semicolon", adding("QueueUrl=http://;/000000000000/victim"), 400, "invalid semicolon separator"},
		{"a wrong escape", adding("MessageBody=%zz"), 400, "invalid URL escape"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := sound
			a.query = url.Values{}
			for name, values := range sound.query {
				a.query[name] = values
			}
			test.spoil(&a)
			status, reply := a.do(t, endpoint)
			if status != test.status || !strings.Contains(reply, test.want) {
				t.Errorf("status %d, want %d and %q: %s", status, test.status, test.want, reply)
			}
		})
	}
}

// A client of a server whose time has been moved on signs by its own clock, or by
// the Date of the replies, as the SDKs do once they have met a skew.
func TestSignatureOnAClockMovedOn(t *testing.T) {
	b, endpoint := strict(t)
	b.advance(1000 * time.Hour)
	for what, test := range map[string]struct {
		signed time.Time
		status int
	}{
		"the machine's time":        {time.Now(), 200},
		"the server's time":         {b.server.Now(), 200},
		"a time between the two":    {time.Now().Add(500 * time.Hour), 403},
		"a time before the two":     {time.Now().Add(-time.Hour), 403},
		"a time after both of them": {b.server.Now().Add(time.Hour), 403},
	} {
		a := attempt{method: "POST", path: "/", body: `{}`, key: theKey, signed: test.signed, region: "us-east-1", service: "sqs",
			header: map[string]string{"X-Amz-Target": "AmazonSQS.ListQueues"}}
		if status, reply := a.do(t, endpoint); status != test.status {
			t.Errorf("signed at %s: %d %s, want %d", what, status, reply, test.status)
		}
	}
}

// A request without credentials is refused before its body is read.
func TestNoCredentialsNoBody(t *testing.T) {
	b, _ := strict(t)
	body := &countingReader{}
	r := httptest.NewRequest("POST", "/", body)
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || body.reads > 0 {
		t.Errorf("status %d after %d reads of the body, want 403 after none", w.Code, body.reads)
	}
}

type countingReader struct{ reads int }

func (r *countingReader) Read([]byte) (int, error) {
	r.reads++
	return 0, io.EOF
}

// A request of another origin asks first what it may do, which needs no signature.
func TestPreflightNeedsNoCredentials(t *testing.T) {
	b, _ := strict(t)
	r := httptest.NewRequest("OPTIONS", "/", nil)
	r.Header.Set("Origin", "http://localhost:3000")
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
}

func TestCredentialsHideTheSecret(t *testing.T) {
	config := sqsserver.Config{Credentials: []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, config); strings.Contains(text, "hush") {
			t.Errorf("%s shows the secret: %s", format, text)
		}
	}
}
