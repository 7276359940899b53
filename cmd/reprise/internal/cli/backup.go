package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

func (a *app) backup() *cobra.Command {
	var data string
	var output outputFlags
	cmd := &cobra.Command{
		Use:   "backup DEST",
		Short: "Copy a server's messages to a new directory, while it runs",
		Long: `Copy the --data directory of a server to DEST, with everything that was
acknowledged before. DEST must not exist; its parent directory must. A running
server writes the copy itself and keeps running: this command asks it through a socket
in its directory, which only its own user can use. If no server runs, this command
makes the copy.

The copy is a data directory like any other: reprise check DEST, reprise serve
--data DEST. On the same disk it shares files with the original: it takes almost
no space at first, and is lost with the disk. Copy it elsewhere.`,
		Example: `  reprise backup /backups/monday
  reprise backup --data /var/lib/reprise /backups/monday`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(args []string) error { return a.runBackup(data, args[0], output.as()) }),
	}
	cmd.Flags().StringVar(&data, "data", "", "`directory` of the server (default "+defaultDataText+")")
	output.register(cmd.Flags())
	return cmd
}

func (a *app) runBackup(data, dest string, as form) error {
	dir, err := dataDir(data)
	if err != nil {
		return err
	}
	dest, err = filepath.Abs(dest)
	if err != nil {
		return err
	}
	if err := needParent(dest); err != nil {
		return fmt.Errorf("backup to %s: %w", dest, err)
	}
	if err := daemon.Backup(a.ctx, dir, dest); err != nil {
		return err
	}
	if as != asText {
		return a.printValue(as, struct {
			Backup string `json:"backup"`
			Of     string `json:"of"`
		}{dest, dir})
	}
	fmt.Fprintf(a.stdout, "%s is a copy of %s\n", dest, dir)
	return nil
}
