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

// Lambda is what answers Lambda's API at the daemon's address, and lives beside its
// server: it is started when the server answers, and stopped while it still does.
type Lambda interface {
	http.Handler
	// Refuse answers a request with status 403 and err, as the API does that it is for.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
	Start()
	// Stop stops gently within a budget of its own; the end of ctx, at once.
	Stop(ctx context.Context) error
}

// SQS is the daemon's server.
func (d *Daemon) SQS() *sqsserver.Server { return d.sqs }

// Journal is that of the daemon's server, for records that are not the server's; nil if
// it keeps nothing.
func (d *Daemon) Journal() *journal.Journal { return d.journal }

// CreateQueues creates queues, as [New] does those of its configuration.
func (d *Daemon) CreateQueues(queues []Queue) error { return d.createQueues(queues) }

// Host makes l a part of the daemon, which has not been run.
func (d *Daemon) Host(l Lambda) {
	d.lambda = l
	d.http.Handler = besides(l, d.sqs.Pages(), d.http.Handler)
}

// versionPath is how the paths of Lambda's API begin: with the date of a version. No
// path of SQS does, whose queues are those of an account.
var versionPath = regexp.MustCompile(`^/\d{4}-\d{2}-\d{2}/`)

// tableTarget begins the X-Amz-Target of requests to DynamoDB, whose path is that of SQS.
const tableTarget = "DynamoDB_"

// besides sends what is of Lambda's API, or DynamoDB's, to lambda, unless a web page made
// the request that pages does not permit. An invoke takes as long as its function: the
// server's own time limits are not for it.
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
			return // the headers are the answer
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
