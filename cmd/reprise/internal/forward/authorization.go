package forward

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// beanstalkAgent is the User-Agent of Elastic Beanstalk's worker daemon.
const beanstalkAgent = "aws-sqsd/1.1"

// Bearer returns the Authorization of a token. Errors do not quote it.
func Bearer(token string) (string, error) {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errors.New("the token is empty, or has characters other than those of ASCII, or spaces: it has to be one word")
	}
	return "Bearer " + token, nil
}

// Basic returns the Authorization of credentials of the form user:password. Errors do not
// quote them.
func Basic(credentials string) (string, error) {
	user, _, found := strings.Cut(credentials, ":")
	if !found || user == "" || strings.ContainsFunc(credentials, isControl) {
		return "", errors.New("the credentials are not of the form user:password on one line")
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials)), nil
}

// Signature returns the header X-Reprise-Signature of a request at the time now: its seconds
// since 1970, and the HMAC-SHA256 of these, a dot and the body, in hexadecimal. A receiver
// computes the same with the secret, and refuses requests that are too old.
func Signature(secret []byte, now time.Time, body string) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write([]byte(body))
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// ParseHeaders reads headers of the form Name: value. Values may be secrets, and errors do
// not quote them.
func ParseHeaders(lines []string) (http.Header, error) {
	header := make(http.Header)
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !found || name == "" || !token(name) {
			return nil, fmt.Errorf("%q does not begin with the name of a header and a colon: write it like X-Team: shipping", name)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, checkHeader(header)
}

// checkHeader returns an error if a header cannot be sent, or has the name of one that the
// target sets itself.
func checkHeader(header http.Header) error {
	own := []string{"Content-Type", "Content-Length", "User-Agent", "Host", "Connection", "Transfer-Encoding", "Authorization", "Idempotency-Key", "X-Idempotency-Key"}
	for name, values := range header {
		switch canonical := http.CanonicalHeaderKey(name); {
		case slices.Contains(own, canonical), strings.HasPrefix(canonical, "X-Aws-Sqsd-"), strings.HasPrefix(canonical, "X-Reprise-"):
			return fmt.Errorf("the header %s cannot be set: there is another setting for it, or each message has its own", name)
		case slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, isControl) }):
			return fmt.Errorf("the value of the header %s has control characters", name)
		}
	}
	return nil
}
