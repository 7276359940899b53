package sqsserver_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A browser learns where it is, and nothing about the queues.
func TestLandingPage(t *testing.T) {
	tests := []struct {
		name   string
		config sqsserver.Config
		host   string
		want   []string
	}{
		{"as it was called", sqsserver.Config{}, "queues:9324", []string{"aws sqs list-queues --endpoint-url http://queues:9324 --region us-east-1 --no-sign-request\n", "AWS_ENDPOINT_URL_SQS=http://queues:9324\n", "Any credentials"}},
		{"at its base URL", sqsserver.Config{BaseURL: "https://sqs.example"}, "queues:9324", []string{"--endpoint-url https://sqs.example --region"}},
		{"with credentials", sqsserver.Config{Credentials: []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}}, "queues:9324", []string{"must be signed", "--endpoint-url http://queues:9324\n"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := sqsserver.New(test.config)
			t.Cleanup(func() { server.Close() })
			if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "orders"}); err != nil {
				t.Fatal(err)
			}
			for _, method := range []string{"GET", "HEAD"} {
				r := httptest.NewRequest(method, "/", nil)
				r.Host = test.host
				w := httptest.NewRecorder()
				server.ServeHTTP(w, r)
				header, text := w.Result().Header, w.Body.String()
				if w.Code != 200 || header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s: status %d, header %v", method, w.Code, header)
				}
				if header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: other origins may read the page: %v", method, header)
				}
				if method == "HEAD" {
					if text != "" {
						t.Errorf("HEAD has a body: %q", text)
					}
					continue
				}
				for _, want := range test.want {
					if !strings.Contains(text, want) {
						t.Errorf("the page does not say %q:\n%s", want, text)
					}
				}
				for _, secret := range []string{"orders", "AKID", "hush"} {
					if strings.Contains(text, secret) {
						t.Errorf("the page tells %q:\n%s", secret, text)
					}
				}
			}
		})
	}
}
