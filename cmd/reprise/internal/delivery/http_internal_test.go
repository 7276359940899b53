package delivery

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

func fileWith(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// targetOf returns the handler that the settings make.
func targetOf(t *testing.T, settings ...string) (reprise.Handler, error) {
	t.Helper()
	s := settingsOf(t, settings...)
	s.Complete()
	if err := s.Check("orders"); err != nil {
		return nil, err
	}
	return s.Target(Surroundings{Queue: "orders", Secrets: new(Secrets), Logger: slog.New(slog.DiscardHandler)})
}

// TestBeanstalkSettings: --beanstalk alone sets the daemon's options; options on the command line win.
func TestBeanstalkSettings(t *testing.T) {
	s := settingsOf(t, "beanstalk", "true", "concurrency", "5")
	s.Complete()
	if err := s.Check("q"); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Config(new(Secrets), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if s.url != "http://localhost:80/" || cfg.Concurrency != 5 || cfg.HandlerTimeout != 299*time.Second || cfg.Lease != 300*time.Second ||
		!cfg.Outage.Off || cfg.Retry.MaxAttempts >= 0 || cfg.Retry.MaxAge >= 0 || cfg.Retry.Backoff.Delay(1) != 2*time.Second || cfg.Retry.Backoff.Delay(9) != 2*time.Second {
		t.Errorf("to %s with %+v", s.url, cfg)
	}
	for name, value := range beanstalk {
		if err := settingsOf(t).flags.Set(name, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := targetOf(t, "beanstalk", "true", "retry-status", "404"); err == nil || !strings.Contains(err.Error(), "--beanstalk") {
		t.Errorf("verdicts that have no effect: %v", err)
	}
	if _, err := targetOf(t, "beanstalk", "true", "exec", "true"); err == nil || !strings.Contains(err.Error(), "is for --url") {
		t.Errorf("a command: %v", err)
	}
}

// TestHTTPSecrets: secrets come from files and from the environment, which then has them no
// more; mistakes name the place, and never the secret.
func TestHTTPSecrets(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer srv.Close()
	t.Setenv("ORDERS_TOKEN", "from-environment")
	t.Setenv("NOTHING", "")
	for place, want := range map[string]string{"env:ORDERS_TOKEN": "Bearer from-environment", "file:" + fileWith(t, "token", "from-file\n"): "Bearer from-file"} {
		target, err := targetOf(t, "url", srv.URL, "bearer-token", place)
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Handle(t.Context(), &reprise.Message{ID: "id"}); err != nil || got != want {
			t.Errorf("%s: Authorization %q, %v, want %q", place, got, err, want)
		}
	}
	if _, there := os.LookupEnv("ORDERS_TOKEN"); there {
		t.Error("commands would inherit the token")
	}
	t.Setenv("ORDERS_TOKEN", "from-environment")
	secrets := new(Secrets)
	for range 2 { // at the start, and at each reload
		if got, err := secrets.Read("bearer-token", "env:ORDERS_TOKEN"); err != nil || got != "from-environment" {
			t.Errorf("read again, the secret is %q, %v", got, err)
		}
	}
	for _, test := range []struct {
		setting, place, want string
	}{
		{"bearer-token", "s3cret", "not the secret itself"},
		{"basic-auth", "s3cret:s3cret", "not the secret itself"},
		{"bearer-token", "env:NOTHING", "env:NOTHING, which is empty"},
		{"bearer-token", "file:/nonexistent", "/nonexistent"},
		{"bearer-token", "file:" + fileWith(t, "a", "two s3cret"), "one word"},
		{"basic-auth", "file:" + fileWith(t, "b", "s3cret"), "user:password"},
		{"hmac-secret", "file:" + fileWith(t, "c", "s3cret"), "shorter than 16"},
		{"client-cert", "x", "needs --client-key"},
		{"client-key", "x", "needs --client-cert"},
		{"ca", "/nonexistent", "/nonexistent"},
		{"ca", fileWith(t, "d", "s3cret"), "no certificate"},
		{"header", "s3cret", "header"},
	} {
		_, err := targetOf(t, "url", srv.URL, test.setting, test.place)
		if err == nil || !strings.Contains(err.Error(), "--"+test.setting) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") && test.setting != "header" {
			t.Errorf("--%s %s: %v, want %q", test.setting, test.place, err, test.want)
		}
	}
	if _, err := targetOf(t, "url", srv.URL, "bearer-token", "env:A", "basic-auth", "env:B"); err == nil || !strings.Contains(err.Error(), "keep one") {
		t.Errorf("two authorizations: %v", err)
	}
}

// TestHTTPSettingsReachTheRequest: each setting of the posts does what it says, and the signature is one by the secret
// itself, not by the place where it is.
func TestHTTPSettingsReachTheRequest(t *testing.T) {
	const secret = "a secret of many bytes"
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	target, err := targetOf(t, "url", srv.URL, "basic-auth", "file:"+fileWith(t, "basic", "user:pass\n"), "hmac-secret", "file:"+fileWith(t, "hmac", secret+"\n"),
		"header", "X-Team: shipping", "header", "X-Tag: a", "content-type", "text/x-order")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Handle(t.Context(), &reprise.Message{ID: "id", Body: "body"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Authorization": "Basic dXNlcjpwYXNz", "X-Team": "shipping", "X-Tag": "a", "Content-Type": "text/x-order", "X-Aws-Sqsd-Queue": "orders",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	signature := got.Get("X-Reprise-Signature")
	at, _, _ := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || signature != forward.Signature([]byte(secret), time.Unix(seconds, 0), "body") {
		t.Errorf("the signature %q is not one by the secret: %v", signature, err)
	}
}

// TestClientCertificate: the target asks for a certificate and gets it, and the target's own
// is checked against the authority that is named.
func TestClientCertificate(t *testing.T) {
	certificate, key := selfSigned(t)
	var seen string
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.TLS.PeerCertificates[0].Subject.CommonName }))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	srv.StartTLS()
	defer srv.Close()
	ca := fileWith(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	target, err := targetOf(t, "url", srv.URL, "client-cert", certificate, "client-key", key, "ca", ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Handle(t.Context(), &reprise.Message{ID: "id"}); err != nil || seen != "reprise" {
		t.Errorf("%v; the target has seen %q", err, seen)
	}
	stranger, err := targetOf(t, "url", srv.URL, "client-cert", certificate, "client-key", key)
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.Handle(t.Context(), &reprise.Message{ID: "id"})
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); !untrusted || !reprise.IsUnavailable(err) {
		t.Errorf("without the authority: %v", err)
	}
}

// selfSigned returns the names of files with a certificate and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "reprise"}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return fileWith(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))),
		fileWith(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})))
}
