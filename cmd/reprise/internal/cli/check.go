package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

func (a *app) check() *cobra.Command {
	return &cobra.Command{
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
		RunE: run(a.runCheck),
	}
}

func (a *app) runCheck(args []string) error {
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
	for _, q := range report.Queues {
		fmt.Fprintf(a.stdout, "%s: %s, %s\n", q.ARN, plural.Of(q.Messages, "message"), plural.Of(q.Bytes, "byte"))
	}
	fmt.Fprintf(a.stdout, "%s is sound: format %d, %s, %s, %s on disk\n",
		dir, report.Format, plural.Of(len(report.Queues), "queue"), plural.Of(report.Messages(), "message"), plural.Of(report.DiskBytes, "byte"))
	return nil
}
