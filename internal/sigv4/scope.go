package sigv4

import (
	"fmt"
	"net/http"
	"strings"
)

// Limits of the parts of a credential. An access key has at most 128 characters on AWS:
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_AccessKey.html
const (
	maxAccessKeyID = 128
	maxScopePart   = 64
)

// Scope returns the access key and the region of the request's credential, signed or not;
// both are empty if it has none. The region becomes a part of the ARNs of queues, and both
// are written to metrics, logs and terminals, so only plain names are accepted. The error
// is an *Error.
func Scope(r *http.Request) (accessKey, region string, err error) {
	accessKey, scope, _ := strings.Cut(credentialOf(r), "/")
	date, scope, _ := strings.Cut(scope, "/")
	region, scope, _ = strings.Cut(scope, "/")
	service, terminator, _ := strings.Cut(scope, "/")
	terminator, _, tooMany := strings.Cut(terminator, "/") // or the key has a slash, which Read reports
	switch {
	case tooMany:
		return "", "", nil
	case len(accessKey) > maxAccessKeyID || strings.ContainsFunc(accessKey, func(c rune) bool { return c <= ' ' || c > '~' }):
		err = badPart("access key ID", accessKey, "1 to 128 printable ASCII characters")
	case !isScopePart(region, false):
		err = badPart("region", region, "1 to 64 of a-z, 0-9 and -")
	case !isScopePart(date, true):
		err = badPart("date", date, "of the form YYYYMMDD")
	case !isScopePart(service, true):
		err = badPart("service", service, "sqs")
	case !isScopePart(terminator, true):
		err = badPart("terminator", terminator, "aws4_request")
	}
	if err != nil {
		return "", "", err
	}
	return accessKey, region, nil
}

// isScopePart reports whether text consists of lower-case letters, digits and hyphens, or
// is empty. Parts that are not used any further, anyName, may have upper case and underscores too.
func isScopePart(text string, anyName bool) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && (!anyName || (c < 'A' || c > 'Z') && c != '_') {
			return false
		}
	}
	return len(text) <= maxScopePart
}

// badPart quotes a part of a credential, which may contain any text.
func badPart(part, value, want string) error {
	if len(value) > maxScopePart {
		value = value[:maxScopePart] + "..."
	}
	return incomplete(fmt.Sprintf("The %s in the Credential must be %s, not %+q.", part, want, value))
}

// credentialOf returns the request's credential, <access key>/<date>/<region>/sqs/aws4_request,
// "" if it has none. Both Scope and Read take it from here: the verified credential must be the one
// that is used.
func credentialOf(r *http.Request) string {
	if _, rest, found := strings.Cut(r.Header.Get("Authorization"), "Credential="); found {
		credential, _, _ := strings.Cut(rest, ",")
		return strings.TrimSpace(credential)
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("X-Amz-Credential")
}
