package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestServingReachesTheServer: what says how clients are treated is passed on to the server. It learns of requests if
// they are counted or logged.
func TestServingReachesTheServer(t *testing.T) {
	keys := []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}
	var got sqsserver.Config
	Serving{Credentials: keys, AllowedOrigins: []string{"https://app.example"}, TimeScale: 60, KeepUnwritten: true}.apply(&got, func(sqsserver.Request) {})
	want := sqsserver.Config{Credentials: keys, AllowedOrigins: []string{"https://app.example"}, TimeScale: 60, KeepUnwritten: true}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sqsserver.Config{}, "OnRequest")); diff != "" {
		t.Errorf("the server's configuration (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		serving Serving
		told    bool
	}{{Serving{}, true}, {Serving{LogRequests: true}, true}, {Serving{NoMetrics: true, LogRequests: true}, true}, {Serving{NoMetrics: true}, false}} {
		var cfg sqsserver.Config
		if test.serving.apply(&cfg, func(sqsserver.Request) {}); (cfg.OnRequest != nil) != test.told {
			t.Errorf("%+v: the server learns of requests: %t, want %t", test.serving, cfg.OnRequest != nil, test.told)
		}
	}
}

// TestOnlyItsOwnCertificate: a consumer of the daemon's own server sends its key to nobody but the server that has the
// certificate, whoever else listens at the address.
func TestOnlyItsOwnCertificate(t *testing.T) {
	own := []byte("own")
	verify := trustOnly(own).VerifyConnection
	for shown, trusted := range map[string]bool{"own": true, "other": false, "own and more": false, "": false} {
		err := verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte(shown)}, {Raw: own}}})
		if (err == nil) != trusted {
			t.Errorf("the certificate %q before its own: %v, want it trusted: %t", shown, err, trusted)
		}
	}
	if trustOnly(own).MinVersion < tls.VersionTLS12 {
		t.Error("versions of TLS that are broken are used")
	}
}
