//go:build unix

package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// written writes a file of the test.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fetch(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func clientWith(endpoint, key, secret string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")}, options...)
}

// TestServeWithKey: only requests with the key are accepted, the secret is in no output, and a
// reachable address needs no other flag.
func TestServeWithKey(t *testing.T) {
	t.Parallel()
	const secret = "open-sesame"
	p := start(t, "serve", "--memory", "--addr", "0.0.0.0:0", "--access-key", "AKID", "--secret-file", written(t, "secret", secret+"\n"),
		"--queue", "q", "--request-log")
	endpoint := p.await("SQS endpoint")
	p.await("access key AKID")
	for _, test := range []struct{ key, secret, code string }{
		{"AKID", secret, ""}, {"AKID", "guess", "SignatureDoesNotMatch"}, {"OTHER", secret, "InvalidClientTokenId"},
	} {
		_, err := clientWith(endpoint, test.key, test.secret).SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: queueURL(endpoint, "q"), MessageBody: aws.String("confidential")})
		var refused smithy.APIError
		if (err == nil) != (test.code == "") || err != nil && (!errors.As(err, &refused) || refused.ErrorCode() != test.code) {
			t.Errorf("key %s, secret %s: %v, want %q", test.key, test.secret, err, test.code)
		}
	}
	if status, text := fetch(t, http.DefaultClient, endpoint+"/?Action=ListQueues"); status != 403 || !strings.Contains(text, "<Code>AccessDenied</Code>") {
		t.Errorf("without credentials: %d %s", status, text)
	}
	p.await("action=SendMessage queue=q status=200")
	p.await("code=AccessDenied")
	p.signal(os.Interrupt)
	code, output := p.wait()
	if code != 0 || strings.Contains(output, secret) || strings.Contains(output, "confidential") {
		t.Errorf("exit code %d, or the output tells what it should not:\n%s", code, output)
	}
}

// certificate makes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return written(t, "cert.pem", string(certPEM)),
		written(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))), pool
}

// TestServeTLS: the address is one of HTTPS, whose queue URLs say so, in HTTP/1.1
// and HTTP/2; versions of TLS that are broken are refused.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--queue", "q")
	endpoint := p.await("SQS endpoint")
	if !strings.HasPrefix(endpoint, "https://127.0.0.1:") {
		t.Fatalf("the endpoint is %s", endpoint)
	}
	for _, http2 := range []bool{false, true} {
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2}}
		out, err := clientWith(endpoint, "a", "b", func(o *sqs.Options) { o.HTTPClient = web }).
			GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
		if err != nil || !strings.HasPrefix(*out.QueueUrl, endpoint+"/") {
			t.Errorf("HTTP/2 %v: GetQueueUrl = %v, %v", http2, out, err)
		}
	}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(endpoint, "https://"), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 was accepted")
	}
}

// TestServeConfig: a file makes queues, sets faults and flags; the command line wins.
func TestServeConfig(t *testing.T) {
	t.Parallel()
	config := written(t, "reprise.yaml", `
addr: nonsense
memory: true
region: eu-west-1
queues:
  - name: orders
    attributes: {VisibilityTimeout: 77}
    dead-letter: orders-dead
    max-receives: 5
    tags: {team: shop}
    faults: [{kind: over-limit, limit: 1}]
`)
	p := start(t, "serve", "--config", config, "--addr", "127.0.0.1:0", "--queue", "more")
	endpoint := p.await("SQS endpoint")
	p.await("region eu-west-1")
	c := clientWith(endpoint, "a", "b", func(o *sqs.Options) { o.Region = "eu-west-1" })
	attributes, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queueURL(endpoint, "orders"), AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil || attributes.Attributes["VisibilityTimeout"] != "77" || !strings.Contains(attributes.Attributes["RedrivePolicy"], "orders-dead") {
		t.Errorf("attributes %v, %v", attributes, err)
	}
	tags, err := c.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: queueURL(endpoint, "orders")})
	if err != nil || tags.Tags["team"] != "shop" {
		t.Errorf("tags %v, %v", tags, err)
	}
	for i, want := range []string{"OverLimit", ""} {
		_, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "orders")})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("receive %d returned %v, want %q", i+1, err, want)
		}
	}
	if _, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("more")}); err != nil {
		t.Errorf("the queue of the command line: %v", err)
	}
}

// TestServeFaultsAndTime: a file sets faults, the admin API the time; the metrics
// tell of it.
func TestServeFaultsAndTime(t *testing.T) {
	t.Parallel()
	faults := written(t, "faults.yaml", "\"*\":\n  - {kind: throttle, action: SendMessage, limit: 1}\n")
	_, endpoint := serve(t, "--memory", "--faults", faults, "--queue", "q,VisibilityTimeout=43200")
	c := clientWith(endpoint, "a", "b")
	send := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "q"), MessageBody: aws.String("x")}
	if _, err := c.SendMessage(t.Context(), send); err == nil || !strings.Contains(err.Error(), "RequestThrottled") {
		t.Errorf("the struck send returned %v", err)
	}
	if _, err := c.SendMessage(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, endpoint, "q"); len(got) != 1 {
		t.Fatalf("received %q", got)
	}
	resp, err := http.Post(endpoint+"/_reprise/clock", "application/json", strings.NewReader(`{"advance":"12h"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := receive(t, endpoint, "q"); resp.StatusCode != 200 || len(got) != 1 {
		t.Errorf("advancing answered %d; after 12 hours received %q", resp.StatusCode, got)
	}
	wants := []string{
		`reprise_requests_total{action="SendMessage",code="RequestThrottled",protocol="json"} 1` + "\n",
		`reprise_requests_total{action="SendMessage",code="ok",protocol="json"} 1` + "\n",
		`reprise_messages_total{action="ReceiveMessage",arn="arn:aws:sqs:us-east-1:000000000000:q",queue="q"} 2` + "\n",
		`reprise_queue_messages{arn="arn:aws:sqs:us-east-1:000000000000:q",queue="q",state="in_flight"} 1` + "\n",
		`reprise_fault_strikes_total{kind="throttle",number="1",queue="*"} 1` + "\n",
		`reprise_request_duration_seconds_bucket{action="SendMessage",le="+Inf"} 2` + "\n",
		"reprise_healthy 1\n", "# TYPE reprise_connections gauge\n",
	}
	// A request is counted when its reply has been written.
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, metrics := fetch(t, http.DefaultClient, endpoint+"/metrics")
		missing := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(metrics, want) })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics lack %q:\n%s", missing, metrics)
		}
	}
}

// TestServeFaultsForALaterQueue: a queue that the file misspells, or that is created
// later, is named in the log.
func TestServeFaultsForALaterQueue(t *testing.T) {
	t.Parallel()
	faults := written(t, "faults.yaml", "\"*\":\n  - {kind: throttle, limit: 1}\nordres: [{kind: throttle}]\norders: [{kind: throttle}]\n")
	p, _ := serve(t, "--memory", "--faults", faults, "--queue", "orders")
	said := p.output()
	if n := strings.Count(said, "faults are set for a queue that does not exist"); n != 1 || !strings.Contains(said, "queue=ordres") {
		t.Errorf("it should warn once, of ordres:\n%s", said)
	}
}

// TestServeWithout: features that are turned off are not served.
func TestServeWithout(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--memory", "--no-admin", "--no-metrics")
	for _, path := range []string{"/metrics", "/_reprise/faults"} {
		if status, text := fetch(t, http.DefaultClient, endpoint+path); status == 200 || !strings.Contains(text, "UnknownOperationException") {
			t.Errorf("GET %s = %d %s", path, status, text)
		}
	}
}

// TestServingMistakes: see TestCommandLine.
func TestServingMistakes(t *testing.T) {
	empty := written(t, "empty", "\n")
	for _, test := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--access-key", "AKID"}, 2, []string{"no secret", "--secret-file", "REPRISE_SECRET"}},
		{[]string{"--secret", "s"}, 2, []string{"no access key", "--access-key"}},
		{[]string{"--access-key", "a/b", "--secret", "s"}, 2, []string{"slash"}},
		{[]string{"--access-key", "a", "--secret-file", empty}, 1, []string{empty, "is empty"}},
		{[]string{"--access-key", "a", "--secret-file", "/nonexistent"}, 1, []string{"/nonexistent"}},
		{[]string{"--tls-cert", empty}, 2, []string{"tls-key"}},
		{[]string{"--tls-cert", empty, "--tls-key", empty}, 1, []string{empty, "PEM"}},
		{[]string{"--time-scale", "0"}, 2, []string{"--time-scale is 0"}},
		{[]string{"--time-scale", "0.5"}, 2, []string{"--time-scale is 0.5", "from 1 to 50000"}},
		{[]string{"--time-scale", "1e6"}, 2, []string{"--time-scale is 1e+06", "from 1 to 50000"}},
		{[]string{"--time-scale", "Inf"}, 2, []string{"--time-scale is +Inf"}},
		{[]string{"--faults", written(t, "f", "q:\n  - kind: fire\n")}, 1, []string{":2:", `"fire"`, "use one of"}},
		{[]string{"--config", written(t, "c", "queue: q\n")}, 2, []string{":1:", `"queue"`, "queues"}},
		{[]string{"--config", written(t, "c", "secret: hush\n")}, 2, []string{":1:", `"secret"`}},
		{[]string{"--config", written(t, "c", "\nmax-connections: many\n")}, 2, []string{":2:", "max-connections", "many"}},
		{[]string{"--config", written(t, "c", "data: /tmp/x\n")}, 2, []string{"memory", "data"}},
		{[]string{"--config", "/nonexistent"}, 2, []string{"/nonexistent"}},
		{[]string{"--config", written(t, "c", "queues: [{name: q}]\n"), "--queue", "q"}, 1, []string{`"q"`, "twice"}},
	} {
		got := reprise(t, "", append([]string{"serve", "--memory", "--addr", "127.0.0.1:0"}, test.args...)...)
		if got.code != test.code || got.stdout != "" {
			t.Errorf("%q: exit code %d, want %d; stdout %q", test.args, got.code, test.code, got.stdout)
		}
		for _, want := range test.want {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%q: does not say %q: %s", test.args, want, got.stderr)
			}
		}
	}
	durable := reprise(t, "", "serve", "--data", filepath.Join(t.TempDir(), "d"), "--time-scale", "60")
	if durable.code != 2 || !strings.Contains(durable.stderr, "--memory") {
		t.Errorf("--time-scale with a directory: %+v", durable)
	}
}
