// Package sigv4 verifies AWS Signature Version 4 of requests to SQS, in the Authorization
// header or in the URL, with the keys and the time that its caller passes: it reads no clock, no
// body and no configuration.
package sigv4

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error says why a request is refused.
type Error struct {
	Reason  Reason
	Message string // in AWS's words, where they are known
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Reason is the kind of an Error.
type Reason int

// The reasons, in the order in which they are checked.
const (
	Unsigned   Reason = iota // the request has no signature
	Incomplete               // its credential or signature cannot be read
	UnknownKey               // its access key is unknown
	Mismatch                 // its signature does not belong to this request, or is not valid now
)

func incomplete(message string) error { return &Error{Incomplete, message} }

func mismatch(message string) error { return &Error{Mismatch, message} }

func wrongSignature() error {
	return mismatch("The request signature we calculated does not match the signature you provided. " +
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
}

// The parts of AWS Signature Version 4.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
const (
	algorithm  = "AWS4-HMAC-SHA256"
	service    = "sqs"
	terminator = "aws4_request"
	timeFormat = "20060102T150405Z"

	// maxClockSkew is how far the clock of a client may be from the server's.
	maxClockSkew = 15 * time.Minute

	// maxPresigned is how many seconds the signature of a URL may last: a week.
	maxPresigned = 7 * 24 * 60 * 60
)

// Signature is the information that a request has about its signature.
type Signature struct {
	request   *http.Request
	query     url.Values
	presigned bool     // in the URL, not in the Authorization header
	secret    string   // of the access key
	scope     []string // date, region, service, terminator
	headers   []string // that are signed
	stamp     string   // when it was signed
	value     []byte
}

// Read reads the signature of a request and checks everything but the signature itself,
// for which Verify needs the body. secretOf returns the secret of an access key. now has the times
// that a client may use as the current one, at least one. The error is an *Error.
func Read(r *http.Request, secretOf func(accessKeyID string) (secret string, known bool), now ...time.Time) (*Signature, error) {
	// url.ParseQuery leaves out what it cannot parse. Such parts would be unsigned, so a query with
	// them is refused: another parser might read them.
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, incomplete("The query string must be escaped to be signed: " + err.Error() + ".")
	}
	for name, values := range query {
		if len(values) > 1 { // their order, which is not signed, decides which one is used
			return nil, incomplete("The parameter '" + name + "' must occur once in the query string to be signed.")
		}
	}
	sig := &Signature{request: r, query: query}
	credential := credentialOf(r)
	var headers, value, lifetime string
	switch {
	case r.Header.Get("Authorization") != "":
		fields := authorizationFields(r.Header.Get("Authorization"))
		headers, value = fields["SignedHeaders"], fields["Signature"]
		sig.stamp = r.Header.Get("X-Amz-Date")
	case query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature"):
		if a := query.Get("X-Amz-Algorithm"); a != algorithm {
			return nil, incomplete("'X-Amz-Algorithm' must be " + algorithm + ", not '" + a + "'.")
		}
		sig.presigned = true
		headers, value = query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")
		sig.stamp, lifetime = query.Get("X-Amz-Date"), query.Get("X-Amz-Expires")
	default:
		return nil, &Error{Unsigned, "Access to the resource " + resourceOf(r) + " is denied."}
	}
	if err := sig.checkComplete(credential, headers, value, lifetime); err != nil {
		return nil, err
	}
	parts := strings.Split(credential, "/")
	if len(parts) != 5 {
		return nil, incomplete("Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '" + credential + "'")
	}
	sig.scope = parts[1:]
	sig.headers = strings.Split(headers, ";")
	var known bool
	if sig.secret, known = secretOf(parts[0]); !known {
		return nil, &Error{UnknownKey, "The security token included in the request is invalid."}
	}
	if sig.value, err = hex.DecodeString(value); err != nil {
		return nil, wrongSignature()
	}
	if err := sig.checkScope(); err != nil {
		return nil, err
	}
	if err := sig.checkHeaders(); err != nil {
		return nil, err
	}
	if err := sig.checkTime(now, lifetime); err != nil {
		return nil, err
	}
	return sig, nil
}

func resourceOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host + r.URL.Path
	}
	return "http://" + r.Host + r.URL.Path
}

// authorizationFields returns the fields of AWS4-HMAC-SHA256 Credential=..., SignedHeaders=...,
// Signature=..., none for another algorithm.
func authorizationFields(header string) map[string]string {
	fields := make(map[string]string, 3)
	rest, found := strings.CutPrefix(header, algorithm)
	if !found {
		return fields
	}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	return fields
}

func (sig *Signature) checkComplete(credential, headers, value, lifetime string) error {
	var problems []string
	for _, part := range []struct{ name, inQuery, value string }{
		{"Credential", "X-Amz-Credential", credential},
		{"Signature", "X-Amz-Signature", value},
		{"SignedHeaders", "X-Amz-SignedHeaders", headers},
	} {
		switch {
		case part.value != "":
		case sig.presigned:
			problems = append(problems, "AWS query-string parameters must include '"+part.inQuery+"'.")
		default:
			problems = append(problems, "Authorization header requires '"+part.name+"' parameter.")
		}
	}
	switch {
	case sig.presigned && sig.stamp == "":
		problems = append(problems, "AWS query-string parameters must include 'X-Amz-Date'.")
	case sig.presigned && lifetime == "":
		problems = append(problems, "AWS query-string parameters must include 'X-Amz-Expires'.")
	case !sig.presigned && sig.stamp == "":
		problems = append(problems, "Authorization header requires existence of a 'X-Amz-Date' header.")
	}
	if len(problems) > 0 {
		return incomplete(strings.Join(problems, " "))
	}
	return nil
}

func (sig *Signature) checkScope() error {
	date := sig.scope[0]
	switch {
	case sig.scope[2] != service:
		return mismatch("Credential should be scoped to correct service: '" + service + "'.")
	case sig.scope[3] != terminator:
		return mismatch("Credential should be scoped with a valid terminator: '" + terminator + "', not '" + sig.scope[3] + "'.")
	case !strings.HasPrefix(sig.stamp, date+"T"):
		signed, _, _ := strings.Cut(sig.stamp, "T")
		return mismatch(fmt.Sprintf("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'.",
			date, signed, sig.stamp))
	}
	return nil
}

// maxSignedHeaders is more than any SDK signs.
const maxSignedHeaders = 100

// checkHeaders checks that the headers that change the meaning of a request are signed, so that
// nobody can change them.
func (sig *Signature) checkHeaders() error {
	// Each is hashed with its value: naming a large header thousands of times would make the server
	// hash a gigabyte.
	names := slices.Sorted(slices.Values(sig.headers))
	if len(names) > maxSignedHeaders || len(slices.Compact(slices.Clone(names))) < len(names) {
		return incomplete(fmt.Sprintf("SignedHeaders must name each header once, and at most %d.", maxSignedHeaders))
	}
	for _, name := range []string{"Host", "X-Amz-Date", "X-Amz-Target"} {
		if name != "Host" && sig.request.Header.Get(name) == "" || slices.Contains(sig.headers, strings.ToLower(name)) {
			continue
		}
		return mismatch("'" + name + "' must be a 'SignedHeader' in the AWS Authorization.")
	}
	return nil
}

// checkTime checks that the signature is valid at one of the times; the signature of a URL is valid
// until its lifetime ends.
func (sig *Signature) checkTime(now []time.Time, lifetime string) error {
	signed, err := time.Parse(timeFormat, sig.stamp)
	if err != nil {
		return incomplete("Date must be in ISO-8601 'basic format'. Got '" + sig.stamp + "'. See http://en.wikipedia.org/wiki/ISO_8601")
	}
	validFor := maxClockSkew
	if sig.presigned {
		n, err := strconv.Atoi(lifetime)
		if err != nil || n < 1 || n > maxPresigned {
			return incomplete(fmt.Sprintf("X-Amz-Expires must be a number of seconds from 1 to %d, not '%s'.", maxPresigned, lifetime))
		}
		validFor = time.Duration(n) * time.Second
	}
	for _, now := range now {
		earliest, latest := now.Add(-validFor), now.Add(maxClockSkew)
		switch {
		case signed.Before(earliest):
			err = mismatch(fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - %s.)",
				sig.stamp, stampOf(earliest), stampOf(now), inMinutes(validFor)))
		case signed.After(latest):
			err = mismatch(fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + %s.)",
				sig.stamp, stampOf(latest), stampOf(now), inMinutes(maxClockSkew)))
		default:
			return nil
		}
	}
	return err
}

func stampOf(t time.Time) string { return t.UTC().Format(timeFormat) }

func inMinutes(d time.Duration) string {
	if d%time.Minute != 0 {
		return strconv.Itoa(int(d.Seconds())) + " sec"
	}
	return strconv.Itoa(int(d.Minutes())) + " min"
}

// Verify checks the signature of the request with its body, in a time that does not depend on the
// position of the first difference. The error is an *Error.
func (sig *Signature) Verify(body []byte) error {
	r := sig.request
	hash := hex.EncodeToString(hashOf(body))
	// The signature must cover the received body: a client that names another hash, or
	// UNSIGNED-PAYLOAD, has signed something else.
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" && claimed != hash {
		return mismatch("The value of the 'X-Amz-Content-Sha256' header is not the SHA-256 hash of the body.")
	}
	toSign := algorithm + "\n" + sig.stamp + "\n" + strings.Join(sig.scope, "/") + "\n" +
		hex.EncodeToString(hashOf(sig.canonicalRequest(hash)))
	key := []byte("AWS4" + sig.secret)
	for _, part := range sig.scope {
		key = signed(key, part)
	}
	if !hmac.Equal(signed(key, toSign), sig.value) {
		return wrongSignature()
	}
	return nil
}

func hashOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

func signed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// canonicalRequest is the canonical form of the request, which client and server sign.
func (sig *Signature) canonicalRequest(bodyHash string) []byte {
	r := sig.request
	var b bytes.Buffer
	b.WriteString(r.Method + "\n")
	// The path is escaped once more than in the request.
	b.WriteString(escapeURI(cmp.Or(r.URL.EscapedPath(), "/"), true) + "\n")
	b.WriteString(canonicalQuery(sig.query) + "\n")
	for _, name := range sig.headers {
		b.WriteString(name + ":" + sig.canonicalHeader(name) + "\n")
	}
	b.WriteString("\n" + strings.Join(sig.headers, ";") + "\n" + bodyHash)
	return b.Bytes()
}

// canonicalQuery sorts the parameters by their escaped names and values.
func canonicalQuery(query url.Values) string {
	type parameter struct{ name, value string }
	var parameters []parameter
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			parameters = append(parameters, parameter{escapeURI(name, false), escapeURI(value, false)})
		}
	}
	slices.SortFunc(parameters, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	var b strings.Builder
	for i, p := range parameters {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String()
}

func (sig *Signature) canonicalHeader(name string) string {
	r := sig.request
	var values []string
	switch name {
	case "host":
		values = []string{r.Host} // net/http takes these two out of the headers
	case "content-length":
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	default:
		values = r.Header.Values(name)
	}
	trimmed := make([]string, len(values))
	for i, value := range values {
		trimmed[i] = strings.Join(strings.FieldsFunc(value, func(c rune) bool { return c == ' ' }), " ")
	}
	return strings.Join(trimmed, ",")
}

// escapeURI escapes all but RFC 3986's unreserved characters, and slashes if they
// are kept.
func escapeURI(text string, keepSlashes bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlashes:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
