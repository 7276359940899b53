package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// canAsk reports whether there is a user to ask: input and output are a terminal.
func (a *app) canAsk() bool { return terminal.Is(a.stdin) && terminal.Is(a.stderr.file) }

// aboutYes is what --yes means, wherever a command has it.
const aboutYes = "do what the command would ask about, without asking"

// confirm returns nil if yes was given, or a user says yes to the question. refused is the error if the user says no,
// and unasked the one where nobody can be asked.
func (a *app) confirm(yes bool, question, refused string, unasked error) error {
	switch {
	case yes:
		return nil
	case !a.canAsk():
		return unasked
	case !a.ask(question):
		return errors.New(refused)
	}
	return nil
}

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
