package daemon

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Lambda answers Lambda's API at the daemon's address.
type Lambda interface {
	http.Handler
	// Refuse answers a request with status 403 and err, in the form of the API that the
	// request is for.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
	Start()
	// Stop stops gracefully within a budget of its own, and at once when ctx ends.
	Stop(ctx context.Context) error
}

// SQS returns the daemon's server.
func (d *Daemon) SQS() *sqsserver.Server { return d.sqs }

// Journal returns the journal of the daemon's server, for records of others; nil if the
// server keeps messages in memory.
func (d *Daemon) Journal() *journal.Journal { return d.journal }

// CreateQueues creates queues in addition to those of the configuration.
func (d *Daemon) CreateQueues(queues []Queue) error { return d.createQueues(queues) }

// LambdaPart returns l as a part of a daemon whose server has these rules for pages. An invoke takes
// as long as its function.
func LambdaPart(l Lambda, pages *sqsserver.PageGuard) Part {
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := pages.Check(r); err != nil {
			l.Refuse(w, r, err)
			return
		}
		pages.AllowOrigin(w.Header(), r)
		if r.Method != http.MethodOptions { // else the answer consists of the headers
			l.ServeHTTP(w, r)
		}
	})
	return Part{Name: "the functions", Takes: isForLambda, Handler: WithoutTimeLimit(guarded), Start: l.Start, Stop: l.Stop}
}

// versionPath matches how the paths of Lambda's API begin: with the date of a version. No
// path of SQS does; those begin with an account.
var versionPath = regexp.MustCompile(`^/\d{4}-\d{2}-\d{2}/`)

// tableTarget is the prefix of X-Amz-Target in requests to DynamoDB, which have the same
// path as those to SQS.
const tableTarget = "DynamoDB_"

// isForLambda reports whether a request is for Lambda's or DynamoDB's API.
func isForLambda(r *http.Request) bool {
	return versionPath.MatchString(r.URL.Path) || strings.HasPrefix(r.Header.Get("X-Amz-Target"), tableTarget)
}
