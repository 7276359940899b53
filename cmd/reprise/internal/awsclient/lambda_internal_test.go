package awsclient

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// TestLongFunction: the reply to an invoke comes when the function has ended, after 15 minutes
// at most.
func TestLongFunction(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	client, err := NewLambda(t.Context(), Endpoint{URL: "http://127.0.0.1:1"}, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		transport := client.Options().HTTPClient.(httpClient).transport.Clone()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				request, err := http.ReadRequest(bufio.NewReader(far))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				time.Sleep(15*time.Minute - time.Second)
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnull")
			}()
			return near, nil
		}
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")}, func(o *lambda.Options) {
			o.HTTPClient = over(transport)
		})
		if err != nil || string(out.Payload) != "null" {
			t.Errorf("Invoke = %v, %v", out, err)
		}
	})
}

// TestInvokesAreNotRepeated: the retry policy alone decides when a function runs again. The SDK would repeat an invoke
// whose answer is lost, or that fails, without the policy knowing.
func TestInvokesAreNotRepeated(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	var invokes atomic.Int64
	for name, fail := range map[string]http.HandlerFunc{
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a failure": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusInternalServerError) },
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			invokes.Add(1)
			fail(w, r)
		}))
		defer server.Close()
		client, err := NewLambda(t.Context(), Endpoint{URL: server.URL}, "us-east-1")
		if err != nil {
			t.Fatal(err)
		}
		before := invokes.Load()
		if _, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")}); err == nil || invokes.Load() != before+1 {
			t.Errorf("%s: %d invokes, %v", name, invokes.Load()-before, err)
		}
	}
}
