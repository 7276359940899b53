package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// canAsk reports whether there is a user to ask: input and output are a terminal.
func (a *app) canAsk() bool { return terminal.Is(a.stdin) && terminal.Is(a.stderr.file) }

// ask asks a question, and reports whether the answer was yes. Everything else is no, as are the end
// of the input and Ctrl-C.
func (a *app) ask(question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an error is no answer
		answer <- line
	}()
	select {
	case line := <-answer:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes"
	case <-a.drain:
		return false
	}
}
