package cli

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

type importFlags struct {
	aws    awsFlags
	dryRun bool
	rate   float64
	output outputFlags
}

func (a *app) deadImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import QUEUE FILE",
		Short: "Put exported dead letters into a dead-letter queue again",
		Long: `Send the dead letters of FILE, as reprise dead export wrote them, to the dead-letter queue
QUEUE, a name or URL: body, attributes, group, and the story of how each died, so that
reprise dead and reprise redrive know them as before. The story is not signed, whatever it
was. Ids, receives and retention begin anew.

All lines are checked before the first is sent: if one is wrong, none is sent. A file that
is imported twice is there twice. Letters that SQS refuses are listed, with their lines, and
make the exit code 3.

` + aboutOperatorEndpoint,
		Example: `  reprise dead import orders-dead letters.jsonl --dry-run
  reprise dead import orders-dead letters.jsonl --rate 100`,
		Args: cobra.ExactArgs(2),
		RunE: run(func(args []string) error { return a.runDeadImport(&f, args[0], args[1]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "only check all lines, and show in groups what would be sent")
	flags.Float64Var(&f.rate, "rate", 0, "send at most so many a second (default: as fast as SQS takes them)")
	f.aws.register(flags)
	f.output.register(flags)
	return cmd
}

// maxMistakes is how many wrong lines are listed.
const maxMistakes = 20

func (a *app) runDeadImport(f *importFlags, queue, path string) error {
	if !(f.rate >= 0 && f.rate < 1e6) {
		return usage(fmt.Errorf("--rate is %g: pass how many letters a second, or leave it out", f.rate))
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("FILE: %w", err)
	}
	defer func() { _ = file.Close() }() // it is only read
	ctx, stop := a.interruptible()
	defer stop()
	t, err := f.aws.target(ctx, "QUEUE", queue)
	if err != nil {
		return err
	}
	letters := func() iter.Seq2[message, error] { return exported(file, path, strings.HasSuffix(t.url, ".fifo")) }
	n, err := a.checkLetters(letters())
	if err != nil {
		return err
	}
	if f.dryRun {
		would := sentMessages{Queue: t.url, DryRun: true, Sent: int64(n)}
		return a.printSent(f.output.as(), would, fmt.Sprintf("%s would be sent to %s", plural.Of(n, "dead letter"), t.url))
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("FILE %s cannot be read twice: copy it to a file: %w", path, err)
	}
	report, err := sendAll(ctx, t.client, t.url, paced(ctx, letters(), f.rate))
	if err == nil || report.Sent > 0 {
		if problem := a.printSent(f.output.as(), report.to(t.url), fmt.Sprintf("%d sent to %s", report.Sent, t.url)); problem != nil {
			return problem
		}
	}
	for _, r := range report.refused {
		fmt.Fprintf(a.stderr, "reprise: %s\n", r)
	}
	switch {
	case err != nil:
		return t.failed(ctx, err, "SendMessage")
	case len(report.refused) > 0:
		return unsettled(fmt.Errorf("not sent: %s", plural.Of(len(report.refused), "dead letter")))
	}
	return nil
}

// checkLetters looks at all lines, and lists those that are wrong.
func (a *app) checkLetters(letters iter.Seq2[message, error]) (n int, err error) {
	wrong := 0
	for _, problem := range letters {
		if n++; problem == nil {
			continue
		}
		if wrong++; wrong <= maxMistakes {
			fmt.Fprintf(a.stderr, "reprise: %s\n", apiText(problem.Error()))
		}
	}
	switch {
	case wrong > 0:
		return n, fmt.Errorf("nothing was sent: %s of %d cannot be used: correct them, or take them out", plural.Of(wrong, "line"), n)
	case n == 0:
		return n, errors.New("FILE has no letters: reprise dead export writes them")
	}
	return n, nil
}

// maxMessage is SQS's limit of a message with its attributes.
const maxMessage = 1 << 20

// exported returns the letters of a file with their stories. It goes on after lines that are wrong.
func exported(r io.Reader, name string, fifo bool) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for line, err := range lines(r, name, message{}) {
			if err == nil {
				line, err = letterOf(line, fifo)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// letterOf is an exported letter as it is sent.
func letterOf(line message, fifo bool) (message, error) {
	m, err := parseMessage(line)
	if err != nil {
		return line, err
	}
	story, err := m.Death.Story()
	if err != nil {
		return line, err
	}
	if line, err = line.filled(&m, fifo); err != nil {
		return line, err
	}
	if fifo && line.DeduplicationID == "" && m.ID != "" {
		line.DeduplicationID = "import-" + m.ID
	}
	if story != "" {
		if line.Attributes == nil {
			line.Attributes = make(map[string]types.MessageAttributeValue)
		}
		line.Attributes[reprise.StoryAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &story}
	}
	size := len(line.Body)
	for name, v := range line.Attributes {
		kind, _, _ := strings.Cut(aws.ToString(v.DataType), ".")
		if kind != "String" && kind != "Number" && kind != "Binary" || aws.ToString(v.StringValue) == "" && len(v.BinaryValue) == 0 {
			return line, fmt.Errorf("%s has an attribute %q of type %q without a value of that type: types are String, Number and Binary", line.source, name, aws.ToString(v.DataType))
		}
		size += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue)) + len(v.BinaryValue)
	}
	switch {
	case len(line.Attributes) > operate.MaxAttributes:
		return line, fmt.Errorf("%s has %d attributes with its story, and SQS permits %d", line.source, len(line.Attributes), operate.MaxAttributes)
	case size > maxMessage:
		return line, fmt.Errorf("%s has %d bytes, and SQS permits %d", line.source, size, maxMessage)
	}
	return line, nil
}
