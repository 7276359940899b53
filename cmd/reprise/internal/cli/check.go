package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

func (a *app) check() *cobra.Command {
	var output outputFlags
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Verify all checksums of a data directory, and count its messages",
		Long: `Read every file and every record of a data directory or of a backup, verify
their checksums, and count the messages. Nothing is changed. No server may run on
the directory: if one does, check a backup instead.

Without DIR: ` + defaultDataText + `.
Exit code 4: something is damaged or cannot be read; the message says what, and
what to do.`,
		Example: `  reprise check /var/lib/reprise
  reprise backup /backups/monday && reprise check /backups/monday`,
		Args: cobra.MaximumNArgs(1),
		RunE: run(func(args []string) error { return a.runCheck(args, output.as()) }),
	}
	output.register(cmd.Flags())
	return cmd
}

func (a *app) runCheck(args []string, as form) error {
	given := ""
	if len(args) > 0 {
		given = args[0]
	}
	dir, err := dataDir(given)
	if err != nil {
		return err
	}
	report, err := daemon.Check(dir)
	if err != nil {
		return err
	}
	if as != asText {
		return a.printValue(as, checked(dir, &report))
	}
	for _, q := range report.Queues {
		fmt.Fprintf(a.stdout, "%s: %s, %s\n", q.ARN, plural.Of(q.Messages, "message"), plural.Of(q.Bytes, "byte"))
	}
	fmt.Fprintf(a.stdout, "%s is sound: format %d, %s, %s, %s on disk\n",
		dir, report.Format, plural.Of(len(report.Queues), "queue"), plural.Of(report.Messages(), "message"), plural.Of(report.DiskBytes, "byte"))
	return nil
}

// sound is a data directory that was checked, for programs.
type sound struct {
	Directory string       `json:"directory"`
	Format    int          `json:"format"`
	Queues    []soundQueue `json:"queues"`
	Messages  int          `json:"messages"`
	DiskBytes uint64       `json:"disk_bytes"`
}

type soundQueue struct {
	ARN      string `json:"arn"`
	Messages int    `json:"messages"`
	Bytes    int64  `json:"bytes"`
}

func checked(dir string, report *daemon.CheckReport) sound {
	s := sound{Directory: dir, Format: report.Format, Queues: []soundQueue{}, Messages: report.Messages(), DiskBytes: report.DiskBytes}
	for _, q := range report.Queues {
		s.Queues = append(s.Queues, soundQueue{q.ARN, q.Messages, q.Bytes})
	}
	return s
}
