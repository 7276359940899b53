package sqsserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// request returns a request over HTTP in AWS JSON 1.0.
func request(method, action, body string, header map[string]string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:9324/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amzn-Query-Mode", "true")
	if action != "" {
		r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return r
}

func onPath(path string, r *http.Request) *http.Request {
	r.URL.Path = path
	return r
}
