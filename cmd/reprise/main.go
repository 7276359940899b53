// Command reprise runs an SQS-compatible server, delivers the messages of a queue
// to an HTTP endpoint or a command with sound retries, and shows on real input how
// that works. See reprise help.
package main

import (
	"os"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
