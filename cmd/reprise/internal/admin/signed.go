package admin

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The commands of operators do not send the token, unless by HTTPS: any program may listen at the address of a process that
// has stopped. They sign each request with it, once, for the address that they call. Who listens there in place of the
// process gets a signature of this very request, and no token. Other programs may send the token itself, as a bearer token.

// signedScheme begins the header Authorization of a signed request: the time in seconds since 1970, a random text, the
// digest of the body and the signature, with spaces between them.
const signedScheme = "Reprise-HMAC-SHA256"

const (
	// signedFor is how far the time of a request may be from the process's: clocks differ.
	signedFor = 5 * time.Minute
	// maxSeen bounds the memory for the random texts of that time.
	maxSeen = 100_000
)

// sign signs a request that is about to be sent.
func sign(r *http.Request, token string, body []byte, now time.Time) {
	var once [16]byte
	_, _ = rand.Read(once[:]) // it never fails
	digest := sha256.Sum256(body)
	parts := []string{strconv.FormatInt(now.Unix(), 10), base64.RawURLEncoding.EncodeToString(once[:]), hex.EncodeToString(digest[:])}
	code := signature(r, r.URL.Host, token, parts)
	r.Header.Set("Authorization", signedScheme+" "+strings.Join(append(parts, hex.EncodeToString(code)), " "))
}

// signature is the code of a request to a host.
func signature(r *http.Request, host, token string, parts []string) []byte {
	code := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(code, "%s\n%s\n%s\n%s\n%s", signedScheme, r.Method, host, r.URL.RequestURI(), strings.Join(parts, "\n"))
	return code.Sum(nil)
}

// signed decides about signed requests. The zero value is ready for use.
type signed struct {
	mu   sync.Mutex
	seen map[string]time.Time // the random texts of requests, and until when they are remembered
}

// check returns why a signed request is refused; ok reports whether the token signed it, even if it is refused. The body of one
// that is not is then what was signed.
func (s *signed) check(r *http.Request, token, given string, now time.Time) (ok bool, refused *Error) {
	parts := strings.Split(given, " ")
	if len(parts) != 4 {
		return false, nil
	}
	code, err := hex.DecodeString(parts[3])
	if err != nil || !hmac.Equal(code, signature(r, r.Host, token, parts[:3])) {
		return false, nil //nolint:nilerr // it is no signature of this token's
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	if at := time.Unix(seconds, 0); err != nil || at.Before(now.Add(-signedFor)) || at.After(now.Add(signedFor)) {
		return true, problem(http.StatusForbidden, "forbidden", "the request was signed at a time that is %v or more from the process's, %s: set the clocks", signedFor, now.UTC().Format(time.RFC3339))
	}
	if !s.remember(parts[1], now) {
		return true, problem(http.StatusForbidden, "forbidden", "the request has been made before, or there are too many: make it anew")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if digest := sha256.Sum256(body); err != nil || hex.EncodeToString(digest[:]) != parts[2] {
		return true, problem(http.StatusForbidden, "forbidden", "the body is not the one that was signed")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true, nil
}

// remember reports whether a text is new. Only those of requests that the token signed are remembered.
func (s *signed) remember(once string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = make(map[string]time.Time)
	}
	if _, known := s.seen[once]; known {
		return false
	}
	if len(s.seen) >= maxSeen {
		for other, until := range s.seen {
			if now.After(until) {
				delete(s.seen, other)
			}
		}
		if len(s.seen) >= maxSeen {
			return false
		}
	}
	s.seen[once] = now.Add(2 * signedFor)
	return true
}
