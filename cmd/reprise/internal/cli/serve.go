package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

const defaultAddr = "127.0.0.1:9324"

// serverFlags are the flags of every command that starts a server.
type serverFlags struct {
	addr        string
	allowRemote bool
	storage     storageFlags
	region      string
}

func (f *serverFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`host:port` to listen on; port 0 takes any free one")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "permit an --addr that other machines can reach though any credentials are accepted")
	flags.StringVar(&f.region, "region", "", "region of the queues (default AWS_REGION, AWS_DEFAULT_REGION, us-east-1)")
	f.storage.register(cmd)
}

// config is the part of a daemon's configuration that the flags say.
func (f *serverFlags) config(a *app) (daemon.Config, error) {
	storage, err := f.storage.options()
	if err != nil {
		return daemon.Config{}, err
	}
	region := f.region
	if region == "" {
		region = awsclient.LocalRegion()
	}
	return daemon.Config{Addr: f.addr, AllowRemote: f.allowRemote, Region: region, Journal: storage, Logger: a.logger()}, nil
}

func (a *app) serve() *cobra.Command {
	var f serverFlags
	var serving servingFlags
	var queues []string
	var config string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an SQS-compatible server",
		Long: `Run a server that the AWS CLI and SDKs take for SQS when their endpoint is its
address. Account 000000000000.

` + aboutStorage + `

` + aboutServing,
		Example: `  reprise serve
  reprise serve --memory --queue orders --queue jobs.fifo,ContentBasedDeduplication=true
  reprise serve --data /var/lib/reprise
  reprise serve --queue orders,VisibilityTimeout=60,dead-letter=orders-dead,max-receives=5
  aws sqs list-queues --endpoint-url http://127.0.0.1:9324`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = run(func([]string) error { return a.runServer(cmd, &f, &serving, queues, config) })
	f.register(cmd)
	serving.register(cmd)
	cmd.Flags().StringVar(&config, "config", "", "`file` with queues, faults and flags, in YAML; the command line wins")
	cmd.Flags().StringArrayVar(&queues, "queue", nil,
		"create a queue at the start: `name[,attribute=value...]`, with the attributes of CreateQueue and dead-letter=NAME, max-receives=N (20); repeatable")
	return cmd
}

func (a *app) runServer(cmd *cobra.Command, f *serverFlags, serving *servingFlags, queues []string, config string) error {
	var file configfile.Config
	if config != "" {
		var err error
		if file, err = applyConfig(cmd, config); err != nil {
			return usage(fmt.Errorf("--config: %w", err))
		}
	}
	cfg, err := f.config(a)
	if err != nil {
		return err
	}
	if cfg.Serving, err = serving.options(cfg.Journal.Dir != ""); err != nil {
		return err
	}
	if cfg.Serving.Faults == nil {
		cfg.Serving.Faults = file.Faults
	}
	cfg.Queues = file.Queues
	for _, text := range queues {
		q, err := daemon.ParseQueue(text)
		if err != nil {
			return usage(fmt.Errorf("--queue: %w", err))
		}
		cfg.Queues = append(cfg.Queues, q)
	}
	d, err := daemon.New(cfg)
	if err != nil {
		return err
	}
	a.announce(d, cfg)
	return d.Run(a.ctx, a.drain)
}

// announce says where the server is, and how safe messages are there.
func (a *app) announce(d *daemon.Daemon, cfg daemon.Config) {
	fmt.Fprintf(a.stdout, "SQS endpoint  %s\n", d.URL())
	credentials := "any credentials"
	for _, c := range cfg.Serving.Credentials {
		credentials = "access key " + c.AccessKeyID
	}
	fmt.Fprintf(a.stdout, "account       %s, region %s, %s\n", daemon.Account, cfg.Region, credentials)
	fmt.Fprintf(a.stdout, "storage       %s\n", storageText(cfg.Journal))
	for _, queue := range slices.Sorted(maps.Keys(cfg.Serving.Faults)) {
		fmt.Fprintf(a.stdout, "faults        %d for %s\n", len(cfg.Serving.Faults[queue]), queue)
	}
	for _, q := range cfg.Queues {
		fmt.Fprintf(a.stdout, "queue         %s\n", d.QueueURL(q.Name))
	}
}
