package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

const defaultAddr = "127.0.0.1:9324"

// serverFlags are the flags of every command that starts a server.
type serverFlags struct {
	addr        string
	allowRemote bool
	storage     storageFlags
	serving     servingFlags
	admin       adminFlags
	region      serverRegion
	watch       watchFlags
	log         logFlags
}

func (f *serverFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`host:port` to listen on; port 0: any free one")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "permit an --addr that other machines can reach, although any credentials are accepted")
	f.region.register(flags)
	f.storage.register(cmd)
	f.serving.register(cmd)
	f.admin.register(flags)
	f.watch.register(cmd)
	f.log.register(flags)
}

// config returns the part of a daemon's configuration that the flags set.
func (f *serverFlags) config(a *app) (daemon.Config, error) {
	logger := f.log.logger(a)
	storage, err := f.storage.options()
	if err != nil {
		return daemon.Config{}, err
	}
	serving, err := f.serving.options()
	if err != nil {
		return daemon.Config{}, err
	}
	watching, err := f.watch.options(a, logger)
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{
		Watching: watching,
		Addr:     f.addr, AllowRemote: f.allowRemote, Region: f.region.name(),
		Journal: storage, Serving: serving, Logger: logger,
	}, nil
}

// serveFlags are the flags of reprise serve.
type serveFlags struct {
	server    serverFlags
	config    string
	queues    []string
	timeScale float64
}

func (a *app) serve() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an SQS-compatible server",
		Long: `Run a server that speaks SQS. The AWS CLI and SDKs use it when their endpoint is
its address. The account is 000000000000.

` + aboutStorage + `

` + aboutServing + `

` + aboutWatching + `

--config reads flags, queues and faults from a file, which reprise run and
reprise up can share: see reprise config --help.`,
		Example: `  reprise serve
  reprise serve --memory --queue orders --queue jobs.fifo,ContentBasedDeduplication=true
  reprise serve --data /var/lib/reprise
  reprise serve --queue orders,VisibilityTimeout=60,dead-letter=orders-dead,max-receives=5
  aws sqs list-queues --endpoint-url http://127.0.0.1:9324 --region us-east-1 --no-sign-request`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = run(func([]string) error { return a.runServer(cmd, &f) })
	f.server.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "`file` with queues, faults and flags, in YAML; the command line wins")
	flags.StringArrayVar(&f.queues, "queue", nil,
		"create this queue at the start: `name[,attribute=value...]`, with the attributes of CreateQueue and dead-letter=NAME, max-receives=N (20); repeatable")
	flags.Float64Var(&f.timeScale, "time-scale", 1, "how many `times` faster the server's time passes; needs --memory")
	return cmd
}

func (a *app) runServer(cmd *cobra.Command, f *serveFlags) error {
	file, err := readConfig(cmd, f.config)
	if err != nil {
		return err
	}
	cfg, err := f.server.config(a)
	if err != nil {
		return err
	}
	if err := checkTimeScale(f.timeScale); err != nil {
		return err
	}
	if f.timeScale != 1 && cfg.Journal.Dir != "" {
		return usage(errors.New("--time-scale would write times to the data directory that lie in the future at the next start: pass --memory with it"))
	}
	cfg.Serving.TimeScale = f.timeScale
	if cfg.Serving.Faults == nil {
		cfg.Serving.Faults = file.Faults
	}
	for _, q := range file.Queues {
		if err := ownQueue(q.Name); err != nil {
			return usage(q.Errorf("%w", err))
		}
		cfg.Queues = append(cfg.Queues, q.Queue)
	}
	for _, text := range f.queues {
		q, err := daemon.ParseQueue(text)
		if err != nil {
			return usage(fmt.Errorf("--queue: %w", err))
		}
		cfg.Queues = append(cfg.Queues, q)
	}
	d, err := f.server.start(a, cfg)
	if err != nil {
		return err
	}
	a.announce(d, cfg, f.server.admin.token != "")
	f.server.watch.announce(a, cfg.Watching, d.ProfilesURL())
	return d.Run(a.ctx, a.drain)
}

// ownQueue returns an error if name is that of a queue that exists elsewhere.
func ownQueue(name string) error {
	if strings.Contains(name, "://") || strings.HasPrefix(name, "arn:") {
		return fmt.Errorf("%s is a queue that exists, and a server creates its own: use reprise run to consume it, or pass a name", name)
	}
	return nil
}

// start makes the server with its admin API. Its error names the flags that permit a reachable address, which
// only commands with serverFlags have.
func (f *serverFlags) start(a *app, cfg daemon.Config) (*daemon.Daemon, error) {
	api, err := f.admin.config(a)
	if err != nil {
		return nil, err
	}
	if cfg.Journal.Dir != "" {
		processorForSyncs()
	}
	d, err := daemon.New(cfg)
	if _, reachable := errors.AsType[*daemon.ReachableError](err); reachable {
		return nil, fmt.Errorf("%w, or --access-key and a secret, or --allow-remote if everybody who can reach it may read and change the queues", err)
	}
	roomForGarbage() // not before: opening a large journal leaves much garbage
	if err == nil {
		adminOfDaemon(api, d, cfg, nil)
	}
	return d, err
}

// maxTimeScale lets a server run for a day before its time ends, in 2262.
const maxTimeScale = 50_000

// checkTimeScale checks a factor for time. Below 1 a long poll would outlast the time that
// a request may take.
func checkTimeScale(scale float64) error {
	if scale >= 1 && scale <= maxTimeScale {
		return nil
	}
	return usage(fmt.Errorf("--time-scale is %v: pass a number from 1 to %d", scale, maxTimeScale))
}

// announce prints where the server and its dashboard are, and how safe messages are there; hasToken says that the
// admin API has a token, without which it refuses everybody if requests must be signed.
func (a *app) announce(d *daemon.Daemon, cfg daemon.Config, hasToken bool) {
	fmt.Fprintf(a.stdout, "SQS endpoint  %s\n", d.URL())
	if !cfg.Serving.NoAdmin && (hasToken || len(cfg.Serving.Credentials) == 0) {
		a.announceDashboard(d.URL())
	}
	credentials := "any credentials"
	for _, c := range cfg.Serving.Credentials {
		credentials = "access key " + c.AccessKeyID
	}
	fmt.Fprintf(a.stdout, "account       %s, region %s, %s\n", daemon.Account, cfg.Region, credentials)
	fmt.Fprintf(a.stdout, "storage       %s\n", storageText(cfg.Journal))
	if cfg.Journal.Dir != "" {
		queues, messages := d.Waiting()
		fmt.Fprintf(a.stdout, "messages      %d, in %s\n", messages, plural.Of(queues, "queue"))
	}
	for _, queue := range slices.Sorted(maps.Keys(cfg.Serving.Faults)) {
		fmt.Fprintf(a.stdout, "faults        %d for %s\n", len(cfg.Serving.Faults[queue]), queue)
	}
	for _, q := range cfg.Queues {
		fmt.Fprintf(a.stdout, "queue         %s\n", d.QueueURL(q.Name))
	}
}
