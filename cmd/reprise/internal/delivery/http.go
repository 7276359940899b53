package delivery

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

// httpSettings are those of requests to a URL.
type httpSettings struct {
	contentType          string
	headers              []string
	bearer, basic, hmac  string // where the secrets are
	certificate, key, ca string // files
	beanstalk            bool
}

// httpNames are the names of the settings.
var httpNames = []string{"content-type", "header", "bearer-token", "basic-auth", "hmac-secret", "client-cert", "client-key", "ca", "beanstalk"}

func (h *httpSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&h.contentType, "content-type", "application/json", "Content-Type of the posts")
	flags.StringArrayVar(&h.headers, "header", nil, "`header` of the posts, like 'X-Team: shipping'; repeatable")
	flags.StringVar(&h.bearer, "bearer-token", "", "`place` of a token that authorizes the posts: file:PATH or env:VARIABLE")
	flags.StringVar(&h.basic, "basic-auth", "", "`place` of user:password for basic authentication: file:PATH or env:VARIABLE")
	flags.StringVar(&h.hmac, "hmac-secret", "", "`place` of a secret that signs the posts in X-Reprise-Signature: file:PATH or env:VARIABLE")
	flags.StringVar(&h.certificate, "client-cert", "", "`file` with the client certificate for TLS, in PEM")
	flags.StringVar(&h.key, "client-key", "", "`file` with the private key of --client-cert, in PEM")
	flags.StringVar(&h.ca, "ca", "", "`file` with the authorities that the target's certificate is checked against, in PEM (default: the system's)")
	flags.BoolVar(&h.beanstalk, "beanstalk", false, "post as Elastic Beanstalk's worker daemon does: only status 200 deletes, with the daemon's headers, timeouts and waits")
}

// beanstalk are the settings of the worker daemon: its options, or its fixed behaviour.
var beanstalk = map[string]string{
	"url":         "http://localhost:80/", // HttpPath
	"concurrency": "50",                   // HttpConnections
	"timeout":     "4m59s",                // InactivityTimeout
	"lease":       "5m",                   // VisibilityTimeout
	// ErrorVisibilityTimeout; what ends the retries is the queue's maxReceiveCount or its
	// retention.
	"retry":  "constant(2s) jitter=none attempts=unlimited age=unlimited",
	"via":    "visibility",
	"outage": "off",
}

// Complete fills in the settings that others imply, when all sources have been read.
func (s *Settings) Complete() {
	if !s.http.beanstalk {
		return
	}
	for name, value := range beanstalk {
		flag := s.flags.Lookup(name)
		if target := kind(name) == toURL; flag.Changed || target && s.hasTarget() {
			continue
		}
		_ = flag.Value.Set(value) // as the test of the table says
		flag.Changed = kind(name) == toURL
	}
}

// hasTarget reports whether a target was given.
func (s *Settings) hasTarget() bool {
	for _, k := range kinds {
		if s.flags.Changed(string(k)) {
			return true
		}
	}
	return false
}

// check returns the first mistake that can be found without reading a file.
func (h *httpSettings) check() error {
	switch {
	case h.bearer != "" && h.basic != "":
		return wrong("basic-auth", " and --bearer-token are two authorizations: keep one")
	case h.certificate != "" && h.key == "":
		return wrong("client-cert", " needs --client-key, the file with its private key")
	case h.key != "" && h.certificate == "":
		return wrong("client-key", " needs --client-cert, the file with its certificate")
	}
	for setting, place := range map[string]string{"bearer-token": h.bearer, "basic-auth": h.basic, "hmac-secret": h.hmac} {
		if place == "" {
			continue
		}
		if err := checkPlace(setting, place); err != nil {
			return err
		}
	}
	_, err := h.header()
	return err
}

func (h *httpSettings) header() (http.Header, error) {
	header, err := forward.ParseHeaders(h.headers)
	if err != nil {
		return nil, wrong("header", ": %w", err)
	}
	return header, nil
}

// apply fills in cfg.
func (h *httpSettings) apply(cfg *forward.HTTPConfig, secrets *Secrets) (err error) {
	cfg.ContentType, cfg.Beanstalk = h.contentType, h.beanstalk
	if cfg.Header, err = h.header(); err != nil {
		return err
	}
	for _, authorization := range []struct {
		setting, place string
		header         func(string) (string, error)
	}{{"bearer-token", h.bearer, forward.Bearer}, {"basic-auth", h.basic, forward.Basic}} {
		if authorization.place == "" {
			continue
		}
		secret, err := secrets.at(authorization.setting, authorization.place)
		if err != nil {
			return err
		}
		if cfg.Authorization, err = authorization.header(secret); err != nil {
			return wrong(authorization.setting, ": %w", err)
		}
	}
	if h.hmac != "" {
		secret, err := secrets.at("hmac-secret", h.hmac)
		if err != nil {
			return err
		}
		if len(secret) < minSecret {
			return wrong("hmac-secret", ": the secret is shorter than %d bytes: a reader of a signature could guess it", minSecret)
		}
		cfg.Secret = []byte(secret)
	}
	cfg.TLS, err = h.tls()
	return err
}

// minSecret is how many bytes a secret that signs has at least.
const minSecret = 16

// tls returns the certificates, nil if none are set.
func (h *httpSettings) tls() (*tls.Config, error) {
	if h.certificate == "" && h.ca == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if h.certificate != "" {
		pair, err := tls.LoadX509KeyPair(h.certificate, h.key)
		if err != nil {
			return nil, wrong("client-cert", " %s and --client-key %s cannot be used: %w: pass a certificate and its private key in PEM", h.certificate, h.key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if h.ca != "" {
		text, err := os.ReadFile(h.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, wrong("ca", " %s has no certificate: pass one or more in PEM", h.ca)
		}
	}
	return cfg, nil
}

// files returns the names of the files that the settings name.
func (h *httpSettings) files() (names []string) {
	for _, place := range []string{h.bearer, h.basic, h.hmac} {
		if name, found := strings.CutPrefix(place, "file:"); found {
			names = append(names, name)
		}
	}
	for _, name := range []string{h.certificate, h.key, h.ca} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
