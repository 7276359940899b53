package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
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
	d.http.Handler = besides(l, d.http.Handler)
}

// versionPath is how the paths of Lambda's API begin: with the date of a version. No
// path of SQS does, whose queues are those of an account.
var versionPath = regexp.MustCompile(`^/\d{4}-\d{2}-\d{2}/`)

// tableTarget begins the X-Amz-Target of requests to DynamoDB, whose path is that of SQS.
const tableTarget = "DynamoDB_"

// besides sends what is of Lambda's API, or DynamoDB's, to lambda. An invoke takes as long as its
// function: the server's own time limits are not for it. A web page that happens to
// be open on this machine must not run functions, also if its own name leads here.
func besides(lambda, rest http.Handler) http.Handler {
	lambda = byLoopbackName(http.NewCrossOriginProtection().Handler(lambda))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !versionPath.MatchString(r.URL.Path) && !strings.HasPrefix(r.Header.Get("X-Amz-Target"), tableTarget) {
			rest.ServeHTTP(w, r)
			return
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

// byLoopbackName refuses requests that call this machine by a name of somebody else's.
func byLoopbackName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		address, err := netip.ParseAddr(host)
		if !strings.EqualFold(host, "localhost") && (err != nil || !address.Unmap().IsLoopback()) {
			http.Error(w, fmt.Sprintf("functions are not to be called by the name %q, which web pages can point here: use localhost or 127.0.0.1", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
