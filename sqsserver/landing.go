package sqsserver

import (
	"fmt"
	"net/http"
	"strconv"
)

// wantsLandingPage reports whether a request is that of a browser: a GET of the
// root that names no action.
func wantsLandingPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || r.URL.Path == "") &&
		r.URL.RawQuery == "" && r.Header.Get("X-Amz-Target") == "" && r.ContentLength == 0
}

// writeLandingPage answers with a text about the server and how to use it. AWS answers such
// a request with an error in XML. The page names no queues, for no credentials are asked
// for, and has no CORS headers.
func (s *Server) writeLandingPage(w http.ResponseWriter, r *http.Request) {
	if err := s.pages.Check(r); err != nil {
		writePageRefusal(w, err)
		return
	}
	if len(r.Host) > maxHost {
		http.Error(w, "the Host header is longer than any name and port", http.StatusBadRequest)
		return
	}
	url := s.direct.baseURL
	if s.config.BaseURL == "" && r.Host != "" {
		url = "http://" + r.Host
		if r.TLS != nil {
			url = "https://" + r.Host
		}
	}
	credentials, unsigned := "Any credentials and any region will do.", " --region us-east-1 --no-sign-request"
	if len(s.config.Credentials) > 0 {
		credentials, unsigned = "Requests must be signed with the credentials that the server was started with.", ""
	}
	text := fmt.Sprintf(`This is an SQS-compatible server, part of Reprise: it speaks the protocols of
Amazon SQS, for the AWS CLI, the AWS SDKs and everything that uses them.

Try it with the AWS CLI:

  aws sqs list-queues --endpoint-url %[1]s%[3]s

For programs, set the endpoint in their environment:

  AWS_ENDPOINT_URL_SQS=%[1]s

%[2]s
`, url, credentials, unsigned)
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(text))
	}
}
