package sqsserver

import (
	"net/http"

	"github.com/reprise-sqs/reprise/internal/sigv4"
)

// Credentials are an access key and its secret, as clients have them.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
}

// String keeps the secret out of logs.
func (c Credentials) String() string { return "{" + c.AccessKeyID + " [secret]}" }

// GoString is String.
func (c Credentials) GoString() string { return c.String() }

// readSignature reads the signature of a request and checks it as far as that can be done
// without the body. It is nil if the server has no credentials and accepts every request.
func (s *Server) readSignature(r *http.Request) (*sigv4.Signature, error) {
	if len(s.config.Credentials) == 0 {
		return nil, nil
	}
	signature, err := sigv4.Read(r, s.secretOf, s.clientTimes()...)
	if err != nil {
		return nil, errRefused(err)
	}
	return signature, nil
}

func (s *Server) secretOf(accessKeyID string) (secret string, known bool) {
	for _, c := range s.config.Credentials {
		if c.AccessKeyID == accessKeyID {
			return c.SecretAccessKey, true
		}
	}
	return "", false
}
