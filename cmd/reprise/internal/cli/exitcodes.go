package cli

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
)

// The exit codes. Their meanings are in exitMeanings.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitUnsettled: the command has ended as it should, but not all messages are where
	// they should be.
	exitUnsettled = 3
	// exitStorage: the data directory cannot be used, is damaged, or its disk failed.
	exitStorage = 4
	// exitAccess: the queue does not exist, or the AWS settings or permissions do not lead to it.
	exitAccess = 5
)

// exitMeanings says what each exit code means, in the help and on the manual page. The last two are interrupt's.
var exitMeanings = []struct {
	code    int
	meaning string // in lines that fit behind the code
}{
	{exitOK, `done`},
	{exitFailure, `something failed, plan found an error, or simulate did not find what
--find looks for; the message says what, and what to do`},
	{exitUsage, `the command line cannot be understood`},
	{exitUnsettled, `done, but not all messages are where they should be: send could not
send them, redrive or move left some, a job was cancelled or goes on
without the command, search, dead or trace could not look at all, bench
left messages of its own, up or run could not settle all in time, lambda
up lost events, lambda invoke's function failed, demo found a promise
broken`},
	{exitStorage, `the data directory cannot be used or is damaged, or its disk failed: the
message says what to do; restarting does not help until that is done`},
	{exitAccess, `a queue does not exist, or cannot be reached with these AWS settings and
permissions, or the process at --admin does not have it: the message says
what to set`},
	{interrupt.Error{Signal: syscall.SIGINT}.ExitCode(), `stopped at once by a second Ctrl-C`},
	{interrupt.Error{Signal: syscall.SIGTERM}.ExitCode(), `stopped at once by a second SIGTERM`},
}

// ExitCodes returns the table of the exit codes, as the program's help shows it.
func ExitCodes() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, strings.ReplaceAll(e.meaning, "\n", "\n       "))
	}
	return b.String()
}
