//go:build unix

package main_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// TestRunMistakes: settings that lead to no queue make the exit code 5, with the remedy.
func TestRunMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	nobody := "http://" + closed.Addr().String()
	_, endpoint := serve(t, "--queue", "orders")
	_, guarded := serve(t, "--access-key", "AKID", "--secret", "s3cret", "--queue", "orders")
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Query-Error", "AccessDenied;Sender")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User: arn:aws:iam::1:user/u is not authorized to perform: sqs:getqueueurl"}`)
	}))
	t.Cleanup(denying.Close)
	key := []string{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=wrong", "AWS_EC2_METADATA_DISABLED=true"}
	to := func(args ...string) []string { return append([]string{"run", "--exec", "true"}, args...) }
	for _, test := range []struct {
		env  []string
		args []string
		code int
		want []string
	}{
		{nil, []string{"run", "--exec", "true"}, 2, []string{"--queue is missing", "--config"}},
		{nil, []string{"run", "--queue", "orders"}, 2, []string{"url", "exec"}},
		{nil, to("--queue", "arn:aws:sqs:eu-west-1:1:orders"), 2, []string{"is an ARN", "URL or its name"}},
		{nil, to("--queue", "http://127.0.0.1/orders"), 2, []string{"/account/name"}},
		{nil, to("--queue", "my/orders"), 2, []string{`"my/orders"`, "https://sqs."}},
		{nil, to("--queue", "orders", "--log-level", "loud"), 2, []string{`"loud"`, "debug, info, warn or error"}},
		{nil, to("--queue", "orders", "--log-format", "xml"), 2, []string{`"xml"`, "text or json"}},
		{nil, to("--queue", "orders", "--long-poll", "1500ms"), 2, []string{"--long-poll is 1.5s", "whole seconds"}},
		{nil, to("--queue", "orders", "--stop-budget", "0"), 2, []string{"--stop-budget is 0s"}},
		{nil, to("--queue", "orders", "--permanent-exit", "0"), 2, []string{"--permanent-exit", `"0"`}},
		{nil, []string{"run", "--queue", "orders", "--url", "http://localhost", "--permanent-exit", "65"}, 2, []string{"--permanent-exit", "--exec", "messages go to --url", "-status"}},
		{nil, []string{"run", "--queue", "orders", "--exec", "true", "--retry-status", "404"}, 2, []string{"--retry-status", "--url", "messages go to --exec", "-exit"}},
		{nil, []string{"up", "--exec", "true", "--content-type", "text/plain"}, 2, []string{"--content-type", "messages go to --exec", "leave it out"}},
		{nil, []string{"run", "--queue", "orders", "--exec", ""}, 2, []string{"--exec: the command is empty"}},
		{nil, []string{"run", "--queue", "orders", "--url", ""}, 2, []string{`--url: target URL ""`}},
		{nil, []string{"run", "--queue", "orders", "--exec", "./nosuch.sh"}, 2, []string{"--exec", "no program ./nosuch.sh"}},
		{nil, []string{"run", "--queue", "orders", "--url", "http://localhost", "--retry-status", "404", "--permanent-status", "4xx"}, 2, []string{"404 is in", "--retry-status", "--permanent-status"}},
		{key, to("--queue", "orders"), 5, []string{"no AWS region", "--region", "AWS_REGION"}},
		{[]string{"AWS_EC2_METADATA_DISABLED=true"}, to("--queue", "orders", "--region", "eu-west-1"), 5, []string{"no usable AWS credentials", "AWS_PROFILE"}},
		{[]string{"AWS_EC2_METADATA_DISABLED=true"}, to("--queue", "https://sqs.eu-west-1.amazonaws.com/1/orders"), 5, []string{"no usable AWS credentials"}},
		{[]string{"AWS_PROFILE=nosuch"}, to("--queue", "orders"), 5, []string{`"nosuch"`, "correct AWS_PROFILE", "aws configure list-profiles"}},
		{[]string{"AWS_PROFILE=nosuch"}, []string{"send", "https://sqs.eu-west-1.amazonaws.com/1/orders", "hello"}, 1, []string{`"nosuch"`, "correct AWS_PROFILE"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=127.0.0.1:9324"}, to("--queue", "orders"), 5, []string{`"127.0.0.1:9324"`, "AWS_ENDPOINT_URL_SQS to one like http://127.0.0.1:9324"}},
		{nil, to("--queue", "orders", "--endpoint", "localhost"), 5, []string{`"localhost"`, "http://"}},
		{nil, to("--queue", "absent", "--endpoint", endpoint), 5, []string{`"absent" does not exist`, "correct --queue, --region"}},
		{nil, to("--queue", endpoint+"/000000000000/absent"), 5, []string{"/absent", "does not exist"}},
		{nil, to("--queue", "orders", "--dead-letter", "absent", "--endpoint", endpoint), 5, []string{`"absent" does not exist`, "correct --dead-letter,"}},
		{nil, to("--queue", "orders", "--dead-letter", "orders", "--endpoint", endpoint), 2, []string{`--dead-letter "orders" is the queue itself`, "name another"}},
		{nil, to("--queue", "orders", "--dead-letter", endpoint+"/000000000000/orders", "--endpoint", endpoint), 2, []string{"is the queue that is consumed"}},
		{nil, to("--queue", "orders", "--dead-letter", strings.Replace(endpoint, "127.0.0.1", "localhost", 1)+"/000000000000/orders", "--endpoint", endpoint), 2, []string{"is the queue that is consumed"}},
		{nil, to("--queue", "orders", "--dead-letter", "http://localhost", "--endpoint", endpoint), 2, []string{"--dead-letter http://localhost does not end in"}},
		{nil, to("--queue", "orders", "--dead-letter", "arn:aws:sqs:eu-west-1:1:q", "--endpoint", endpoint), 2, []string{"--dead-letter arn:", "is an ARN"}},
		{key, to("--queue", "orders", "--endpoint", guarded), 5, []string{"not accepted", "SignatureDoesNotMatch", "AWS_PROFILE"}},
		{key, to("--queue", "orders", "--endpoint", denying.URL), 5, []string{"denied", "sqs:GetQueueUrl"}},
		{nil, to("--queue", "orders", "--endpoint", nobody), 1, []string{"no answer from " + nobody + ":", "pass its --endpoint"}},
		{[]string{"AWS_ENDPOINT_URL=" + nobody}, to("--queue", "orders"), 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL)", "correct AWS_ENDPOINT_URL,"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=" + endpoint}, to("--queue", "absent"), 5, []string{"does not exist at " + endpoint + " (set by AWS_ENDPOINT_URL_SQS)"}},
		{[]string{"AWS_ENDPOINT_URL=" + nobody}, []string{"send", "orders", "hello"}, 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL)", "correct AWS_ENDPOINT_URL,"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=" + endpoint}, []string{"redrive", "absent"}, 5, []string{"does not exist at " + endpoint + " (set by AWS_ENDPOINT_URL_SQS)", "--endpoint-url " + endpoint + ")"}},
		{[]string{"AWS_ENDPOINT_URL=127.0.0.1:9324"}, []string{"send", "orders", "hello"}, 1, []string{`"127.0.0.1:9324"`, "AWS_ENDPOINT_URL to one like http://127.0.0.1:9324"}},
		{[]string{"AWS_ENDPOINT_URL_LAMBDA=" + nobody}, []string{"lambda", "invoke", "Flaky"}, 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL_LAMBDA)", "reprise lambda up"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", taken.Addr().String()), 1, []string{"taken", "--admin-addr"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", "9999"), 1, []string{`--admin-addr "9999"`, "pass one like 127.0.0.1:9999"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", "here"), 1, []string{"pass one like 127.0.0.1:9325"}},
		{nil, []string{"up", "--exec", "true", "--queue", endpoint + "/000000000000/orders"}, 2, []string{"reprise run"}},
		{nil, []string{"up", "--exec", "./nosuch.sh"}, 2, []string{"no program ./nosuch.sh"}},
		{nil, []string{"serve", "--log-level", "loud"}, 2, []string{`"loud"`}},
		{nil, []string{"lambda", "up", "t.yaml", "--log-format", "xml"}, 2, []string{`"xml"`}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, program(t), test.args...)
			cmd.Env = environment(test.env...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd.Run()); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if stdout.Len() != 0 || !strings.HasPrefix(stderr.String(), "reprise: ") || strings.Contains(stderr.String(), "wrong") {
				t.Errorf("stdout %q; want one complaint of reprise on stderr alone, and no secret", &stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &stderr)
				}
			}
		})
	}
}
