package awsclient

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
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
