package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/dashboard"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// adminFlags are the flags of every command that serves the admin API.
type adminFlags struct {
	token    string // its place
	readOnly bool
	events   admin.Events // of the consumers, to be watched by the API
}

const aboutAdmin = `The admin API, ` + admin.Path + `, shows and controls the process: see reprise consumers
and reprise pause. Only programs of this machine may call it, or with --admin-token
clients that have the token. The dashboard, at /, follows the same rule: browsers
of this machine may see it, and with a token it asks for that once. Pages of other
origins may call neither.`

func (f *adminFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.token, "admin-token", "", "`place` of the token of the admin API: file:PATH or env:VARIABLE (default: none; only this machine may call)")
	flags.BoolVar(&f.readOnly, "admin-read-only", false, "refuse requests of the admin API that change something")
}

// minToken is the length of the shortest token, too long to be guessed.
const minToken = 16

// config returns what the flags set.
func (f *adminFlags) config(a *app) (cfg admin.Config, err error) {
	cfg.Version, cfg.ReadOnly, cfg.Events = version(), f.readOnly, &f.events
	if f.token == "" {
		return cfg, nil
	}
	if cfg.Token, err = a.secrets.Read("admin-token", f.token); err != nil {
		return cfg, err
	}
	if len(cfg.Token) < minToken {
		return cfg, usage(fmt.Errorf("--admin-token: the token has %d characters: use at least %d, such as those that openssl rand -hex 32 prints", len(cfg.Token), minToken))
	}
	return cfg, nil
}

// addAdmin adds the admin API, and the dashboard on top of it, to a daemon or worker; functions are those that
// the process runs, if any.
func addAdmin(to interface{ Add(daemon.Part) }, cfg admin.Config, functions dashboard.Functions) {
	api := admin.New(cfg)
	pages := dashboard.New(dashboard.Config{API: api, Version: cfg.Version, ReadOnly: cfg.ReadOnly, Own: cfg.Server != nil, Functions: functions, Logger: cfg.Logger})
	to.Add(daemon.Part{Name: "the dashboard", Takes: dashboard.Takes, Handler: pages, Stop: pages.Stop})
	to.Add(daemon.Part{Name: "the admin API", Takes: admin.Takes, Handler: api, Start: api.Start, Stop: api.Stop})
}

// announceDashboard prints the page to open, of a process whose dashboard answers at an address; no browser opens a
// Unix socket.
func (a *app) announceDashboard(at string) {
	if !strings.HasPrefix(at, daemon.UnixPrefix) {
		fmt.Fprintf(a.stdout, "dashboard     %s/\n", at)
	}
}

// running returns the consumers for the admin API.
func running(consumed []daemon.Consumed) (all []admin.Running) {
	for _, c := range consumed {
		policy, _ := c.Config.Retry.WithDefaults().MarshalText() // one with rules has none
		all = append(all, admin.Running{URL: c.QueueURL, RetryLaneURL: c.Config.RetryLane.URL, Policy: string(policy), Retry: c.Config.Retry, Target: c.Target, Consumer: c.Consumer})
	}
	return all
}

// adminOfDaemon adds the admin API to a daemon; functions are as those of addAdmin.
func adminOfDaemon(cfg admin.Config, d *daemon.Daemon, of daemon.Config, functions dashboard.Functions) {
	if of.Serving.NoAdmin {
		return
	}
	cfg.Pages, cfg.Logger, cfg.NeedsToken = d.SQS().Pages(), of.Logger, len(of.Serving.Credentials) > 0
	cfg.Server, cfg.CanAdvance, cfg.RequestPrice = d.SQS(), of.Journal.Dir == "", of.Watching.RequestPrice
	cfg.Traffic = func() map[string]admin.Traffic {
		all := make(map[string]admin.Traffic)
		for arn, n := range d.Traffic() {
			all[arn] = admin.Traffic{Sent: n.Sent, Received: n.Received, Deleted: n.Deleted}
		}
		return all
	}
	cfg.Consumers = func() []admin.Running { return running(d.Consumed()) }
	cfg.Queues = func(ctx context.Context) ([]operate.Described, bool, error) { return queuesOfServer(ctx, d), true, nil }
	cfg.JobQueue = func(_ context.Context, queue string) (admin.JobQueue, error) {
		var found []string
		client := d.Client()
		for _, q := range d.SQS().Queues() {
			if q.Region != client.Options().Region {
				continue // no URL names it
			}
			if url := d.URL() + "/" + q.Account + "/" + q.Name; queue == q.Name || queue == url || queue == q.ARN {
				found = append(found, url)
			}
		}
		url, err := admin.OneQueue(queue, found)
		return admin.JobQueue{URL: url, Client: client, Keys: keysOf(d.Consumed())}, err
	}
	addAdmin(d, cfg, functions)
}

// queuesOfServer describes the queues of a daemon's own server. Faults do not strike its requests,
// and do not count them: the watcher makes them when it likes, and a fault that strikes the third
// request is for the third of a client.
func queuesOfServer(ctx context.Context, d *daemon.Daemon) (described []operate.Described) {
	server := d.SQS()
	ctx = sqsserver.WithoutFaults(ctx)
	for _, q := range server.Queues() {
		found := operate.Described{URL: d.URL() + "/" + q.Account + "/" + q.Name, Oldest: q.Oldest}
		out, err := server.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{"All"}})
		if err != nil {
			found.Problem = err.Error() // it has been deleted meanwhile
		} else {
			found.Attributes = out.Attributes
		}
		described = append(described, found)
	}
	return described
}

// adminOfWorker adds the admin API to a worker. Its queues are those that are consumed, and the
// queues that these name.
func adminOfWorker(cfg admin.Config, w *daemon.Worker, of daemon.WorkerConfig) {
	if of.AdminAddr == "" {
		return
	}
	cfg.Pages, cfg.Logger, cfg.RequestPrice = w.Pages(), of.Logger, of.Watching.RequestPrice
	cfg.Consumers = func() []admin.Running { return running(w.Consumed()) }
	cfg.Queues = func(ctx context.Context) ([]operate.Described, bool, error) {
		_, described, err := describeConsumed(ctx, w.Consumed())
		return described, false, err
	}
	cfg.JobQueue = func(ctx context.Context, queue string) (admin.JobQueue, error) {
		refs, _, err := describeConsumed(ctx, w.Consumed())
		if err != nil {
			return admin.JobQueue{}, err
		}
		var found []string
		clients := make(map[string]*sqs.Client)
		for _, ref := range refs {
			if client, ok := ref.Client.(*sqs.Client); ok && (queue == ref.URL || queue == operate.NameOf(ref.URL)) {
				found, clients[ref.URL] = append(found, ref.URL), client
			}
		}
		url, err := admin.OneQueue(queue, found)
		return admin.JobQueue{URL: url, Client: clients[url], Keys: keysOf(w.Consumed())}, err
	}
	addAdmin(w, cfg, nil)
}

// keysOf returns the keys with which the consumers of a process sign, of which jobs accept any: the
// letters of a dead-letter queue may come from several.
func keysOf(consumed []daemon.Consumed) (keys []reprise.SigningKey) {
	for _, c := range consumed {
		keys = append(keys, c.Config.SigningKeys...)
	}
	return keys
}

// describeConsumed returns the queues that are consumed, and those that they name.
func describeConsumed(ctx context.Context, consumed []daemon.Consumed) ([]operate.Ref, []operate.Described, error) {
	var refs []operate.Ref
	add := func(url string, client operate.AttributeReader) {
		if url != "" && !slices.ContainsFunc(refs, func(r operate.Ref) bool { return r.URL == url }) {
			refs = append(refs, operate.Ref{URL: url, Client: client})
		}
	}
	for _, c := range consumed {
		add(c.QueueURL, c.Client)
	}
	clients := slices.Clone(refs) // by the index of what is described
	described, err := operate.Describe(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	for i := range described {
		add(described[i].DeadLetterURL(), clients[i].Client)
	}
	for _, c := range consumed {
		add(c.Config.DeadLetterURL, c.Client)
		add(c.Config.RetryLane.URL, c.Client)
	}
	more, err := operate.Describe(ctx, refs[len(described):])
	return refs, append(described, more...), err
}
