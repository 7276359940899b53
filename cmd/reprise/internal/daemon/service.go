package daemon

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Lambda answers Lambda's API at the daemon's address. It is started when the server
// answers, and stopped while the server still answers.
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

// Host makes l a part of the daemon, which must not run yet.
func (d *Daemon) Host(l Lambda) {
	d.lambda = l
	d.http.Handler = besides(l, d.sqs.Pages(), d.http.Handler)
}

// versionPath matches how the paths of Lambda's API begin: with the date of a version. No
// path of SQS does; those begin with an account.
var versionPath = regexp.MustCompile(`^/\d{4}-\d{2}-\d{2}/`)

// tableTarget is the prefix of X-Amz-Target in requests to DynamoDB, which have the same
// path as those to SQS.
const tableTarget = "DynamoDB_"

// besides sends requests for Lambda's or DynamoDB's API to lambda, unless pages refuses
// them, and all others to rest. The server's time limits do not hold for an invoke, which
// takes as long as its function.
func besides(lambda Lambda, pages *sqsserver.PageGuard, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !versionPath.MatchString(r.URL.Path) && !strings.HasPrefix(r.Header.Get("X-Amz-Target"), tableTarget) {
			rest.ServeHTTP(w, r)
			return
		}
		if err := pages.Check(r); err != nil {
			lambda.Refuse(w, r, err)
			return
		}
		pages.AllowOrigin(w.Header(), r)
		if r.Method == http.MethodOptions {
			return // the answer consists of the headers
		}
		controller := http.NewResponseController(w)
		for _, set := range []func(time.Time) error{controller.SetReadDeadline, controller.SetWriteDeadline} {
			if err := set(time.Time{}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		lambda.ServeHTTP(w, r)
	})
}
