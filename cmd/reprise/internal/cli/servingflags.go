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

// servingFlags are the flags of a server for other programs: who may call it, and which
// faults it injects.
type servingFlags struct {
	accessKey, secret, secretFile string
	cert, key                     string
	faults                        string
	serving                       daemon.Serving
}

// The environment variables of the key. Command lines are no place for a secret: everybody
// on the machine can read them.
const (
	accessKeyVariable = "REPRISE_ACCESS_KEY"
	secretVariable    = "REPRISE_SECRET"
)

const aboutServing = `Without --access-key any credentials are accepted, and only this machine can
reach the server; web pages of other origins are refused, unless --allow-origin
names their origin. With it, requests need an AWS Signature V4 of that key; its
secret comes from --secret-file or ` + secretVariable + `.

GET /health answers with a line of JSON, GET /metrics with Prometheus's metrics.
Programs on this machine can set faults, and with --memory the time, by /_reprise/;
with --access-key only if --admin is given.
` + aboutAdmin + ` With --access-key it needs the token.
docs/server.md describes all of this, and the file of --faults.`

func (f *servingFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.accessKey, "access-key", "", "access `key` that requests must be signed with (default "+accessKeyVariable+"; none: any credentials)")
	flags.StringVar(&f.secret, "secret", "", "the `secret` of --access-key (default "+secretVariable+"); others on the machine can read it on the command line")
	flags.StringVar(&f.secretFile, "secret-file", "", "`file` with the secret of --access-key")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate for HTTPS, in PEM, with its chain")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the private key of --tls-cert, in PEM")
	flags.IntVar(&f.serving.MaxConnections, "max-connections", 0, "how `many` connections may be open at once (default 16384, or half of the process's limit of open files if that is less; negative: any number)")
	flags.StringVar(&f.faults, "faults", "", "`file` of faults to inject, in YAML")
	flags.BoolVar(&f.serving.KeepUnwritten, "keep-unwritten", false, "if the reply to a receive cannot be written, leave its messages in flight, as AWS does")
	flags.BoolVar(&f.serving.LogRequests, "request-log", false, "log each request, without bodies")
	flags.StringSliceVar(&f.serving.AllowedOrigins, "allow-origin", nil, aboutAllowOrigin)
	flags.BoolVar(&f.serving.Admin, "admin", false, "serve /_reprise/, which asks for no signature, although there is an --access-key")
	flags.BoolVar(&f.serving.NoAdmin, "no-admin", false, "do not serve /_reprise/ and the admin API")
	flags.BoolVar(&f.serving.NoMetrics, "no-metrics", false, "do not serve /metrics")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsMutuallyExclusive("secret", "secret-file")
	cmd.MarkFlagsMutuallyExclusive("admin", "no-admin")
}

// options returns what the flags set.
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
const aboutAllowOrigin = "if no signature is required, permit web pages of this `origin`, scheme://host[:port], and its host as a name of the server; repeatable (default: only pages of this machine)"

// checkOrigins checks the values of --allow-origin.
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		if err := sqsserver.CheckOrigin(origin); err != nil {
			return usage(fmt.Errorf("--allow-origin: %w", err))
		}
	}
	return nil
}

// credentials returns the key and its secret, or nil if there is no key.
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
		return nil, usage(fmt.Errorf("there is a secret but no access key: pass --access-key or set %s", accessKeyVariable))
	case secret == "":
		return nil, usage(fmt.Errorf("--access-key has no secret: pass --secret-file or set %s", secretVariable))
	case strings.Contains(key, "/"):
		return nil, usage(errors.New("--access-key must not contain a slash: signatures use it as a separator"))
	}
	return []sqsserver.Credentials{{AccessKeyID: key, SecretAccessKey: secret}}, nil
}
