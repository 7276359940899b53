package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// servingFlags are what only a server for others has: who may call, and what goes
// wrong on purpose.
type servingFlags struct {
	accessKey, secret, secretFile string
	cert, key                     string
	faults                        string
	serving                       daemon.Serving
}

// The environment variables of the key: a command line can be read by everybody on
// the machine.
const (
	accessKeyVariable = "REPRISE_ACCESS_KEY"
	secretVariable    = "REPRISE_SECRET"
)

const aboutServing = `Without --access-key any credentials are accepted, and only this machine can
reach the server; web pages of other origins are refused, unless --allow-origin
names theirs. With it, requests need an AWS Signature V4 of that key; its
secret comes from --secret-file or ` + secretVariable + `.

GET /health answers with a line of JSON, GET /metrics with those of Prometheus.
/_reprise/ sets faults, and with --memory the time, for programs on this machine;
with --access-key only if --admin says so.
docs/server.md describes all of it, and the file of --faults.`

func (f *servingFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.accessKey, "access-key", "", "access `key` that requests have to be signed with (default "+accessKeyVariable+"; none: any credentials)")
	flags.StringVar(&f.secret, "secret", "", "the `secret` of --access-key (default "+secretVariable+"), which others on the machine can read on the command line")
	flags.StringVar(&f.secretFile, "secret-file", "", "`file` with the secret of --access-key")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate for HTTPS, in PEM, with its chain")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the private key of --tls-cert, in PEM")
	flags.IntVar(&f.serving.MaxConnections, "max-connections", 0, "how `many` connections may be open at once (default 16384, or half of the files that the process may open; negative: any number)")
	flags.StringVar(&f.faults, "faults", "", "`file` of faults to inject, in YAML")
	flags.BoolVar(&f.serving.KeepUnwritten, "keep-unwritten", false, "leave messages in flight whose reply could not be written, as AWS does")
	flags.BoolVar(&f.serving.LogRequests, "request-log", false, "log each request, without bodies")
	flags.StringSliceVar(&f.serving.AllowedOrigins, "allow-origin", nil, aboutAllowOrigin)
	flags.BoolVar(&f.serving.Admin, "admin", false, "answer /_reprise/ although there is an --access-key, for which it does not ask")
	flags.BoolVar(&f.serving.NoAdmin, "no-admin", false, "leave out /_reprise/")
	flags.BoolVar(&f.serving.NoMetrics, "no-metrics", false, "leave out /metrics")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsMutuallyExclusive("secret", "secret-file")
	cmd.MarkFlagsMutuallyExclusive("admin", "no-admin")
}

// options is what the flags say.
func (f *servingFlags) options() (daemon.Serving, error) {
	serving := f.serving
	credentials, err := f.credentials()
	if err != nil {
		return serving, err
	}
	serving.Credentials = credentials
	if err := checkOrigins(serving.AllowedOrigins); err != nil {
		return serving, err
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return serving, fmt.Errorf("--tls-cert %s and --tls-key %s cannot be used: %w: pass a certificate and its private key in PEM", f.cert, f.key, err)
		}
		serving.Certificate = &pair
	}
	if f.faults != "" {
		if serving.Faults, err = configfile.ReadFaults(f.faults); err != nil {
			return serving, fmt.Errorf("--faults: %w", err)
		}
	}
	return serving, nil
}

// aboutAllowOrigin describes --allow-origin.
const aboutAllowOrigin = "permit the web page of this `origin`, scheme://host[:port], and its host as a name of the server, where no signature is asked for; repeatable (default: only pages of this machine)"

// checkOrigins checks what --allow-origin says.
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		if err := sqsserver.CheckOrigin(origin); err != nil {
			return usage(fmt.Errorf("--allow-origin: %w", err))
		}
	}
	return nil
}

// credentials are the key and its secret; none if there is no key.
func (f *servingFlags) credentials() ([]sqsserver.Credentials, error) {
	key, secret := f.accessKey, f.secret
	if key == "" {
		key = os.Getenv(accessKeyVariable)
	}
	if f.secretFile != "" {
		text, err := os.ReadFile(f.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		if secret = strings.TrimSpace(string(text)); secret == "" {
			return nil, fmt.Errorf("--secret-file %s is empty: put the secret into it", f.secretFile)
		}
	}
	if secret == "" {
		secret = os.Getenv(secretVariable)
	}
	switch {
	case key == "" && secret == "":
		return nil, nil
	case key == "":
		return nil, usage(fmt.Errorf("there is a secret and no access key: pass --access-key or set %s", accessKeyVariable))
	case secret == "":
		return nil, usage(fmt.Errorf("--access-key has no secret: pass --secret-file or set %s", secretVariable))
	case strings.Contains(key, "/"):
		return nil, usage(errors.New("--access-key must not contain a slash: signatures use it as a separator"))
	}
	return []sqsserver.Credentials{{AccessKeyID: key, SecretAccessKey: secret}}, nil
}
