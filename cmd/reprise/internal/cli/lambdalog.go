package cli

import (
	"fmt"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// functionLog prints the log lines of several functions, each after its name.
type functionLog struct {
	out    *terminal.Terminal
	width  int
	colors map[string]terminal.Color
	limit  *terminal.Limit // of the functions' output
}

func newFunctionLog(out *terminal.Terminal, functions []template.Function) *functionLog {
	palette := []terminal.Color{terminal.Cyan, terminal.Magenta, terminal.Yellow, terminal.Blue, terminal.Green}
	log := &functionLog{out: out, width: len(theProgram), colors: make(map[string]terminal.Color)}
	for i := range functions {
		name := functions[i].Name
		log.width = max(log.width, len(name))
		log.colors[name] = palette[i%len(palette)]
	}
	log.limit = terminal.NewLimit(func(omitted int64) {
		log.print(emulator.Line{Source: emulator.SourceTrouble, Text: fmt.Sprintf("%d bytes of the functions' logs are left out: together they may write %d KiB a second", omitted, terminal.LimitRate>>10)})
	})
	return log
}

// theProgram is the name before lines of the program itself.
const theProgram = "reprise"

// print prints a line, or several if the text has several.
func (l *functionLog) print(line emulator.Line) {
	name := line.Function
	if name == "" {
		name = theProgram
	}
	label := fmt.Sprintf("%-*s |", l.width, name)
	if color, known := l.colors[name]; known {
		label = l.out.Paint(color, label)
	}
	for text := range strings.SplitSeq(line.Text, "\n") {
		if line.Source == emulator.SourceFunction && !l.limit.Permit(len(text)+1) {
			continue
		}
		text = terminal.Escape(terminal.Shorten(text, maxLogged))
		switch line.Source {
		case emulator.SourceTrouble:
			text = l.out.Paint(terminal.Red, text)
		case emulator.SourcePlatform:
			text = l.out.Paint(terminal.Gray, text)
		}
		l.out.Printf("%s %s", label, text)
	}
}
