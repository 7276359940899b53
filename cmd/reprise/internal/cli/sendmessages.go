package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// whole returns each line as the message that it is in JSON, in the form of peek, search and
// export: what its sender gave it, without what SQS and consumers know of it.
func whole(lines iter.Seq2[message, error], fifo bool) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for line, err := range lines {
			if err == nil {
				line, err = decoded(line, fifo)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// decoded returns the message that line is in JSON. The flags give the members that the line
// leaves out.
func decoded(line message, fifo bool) (message, error) {
	m, err := parseMessage(line)
	if err != nil {
		return line, err
	}
	return line.filled(&m, fifo)
}

// parseMessage reads a line of JSON.
func parseMessage(line message) (m operate.Message, err error) {
	decoder := json.NewDecoder(strings.NewReader(line.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf(`%s is not a message in JSON: %w: write lines such as {"body":"...","attributes":{"name":{"type":"String","value":"..."}},"group":"..."}, as reprise dead export does`, line.source, err)
	}
	if decoder.More() {
		return m, fmt.Errorf("%s has more than one JSON value: write one message on a line", line.source)
	}
	if m.Body == "" {
		return m, fmt.Errorf("%s has no body: SQS has no empty messages", line.source)
	}
	return m, nil
}

// filled returns the message with what m's sender gave it.
func (line message) filled(m *operate.Message, fifo bool) (message, error) {
	line.Body, line.TraceHeader = m.Body, m.TraceHeader
	line.GroupID = cmp.Or(m.Group, line.GroupID)
	if fifo {
		line.DeduplicationID = m.Deduplication
		line.GroupID = cmp.Or(line.GroupID, m.ID)
		if line.GroupID == "" {
			return line, fmt.Errorf(`%s has no "group", which messages of FIFO queues need: add it, or pass --group`, line.source)
		}
	}
	line.Attributes = maps.Clone(line.Attributes)
	for name, a := range m.Attributes {
		if line.Attributes == nil {
			line.Attributes = make(map[string]types.MessageAttributeValue)
		}
		line.Attributes[name] = a.SQS()
	}
	return line, nil
}

// readText reads all of a text that may become the body of a message.
func readText(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err == nil && len(text) > maxMessage {
		err = fmt.Errorf("it has more than %d bytes, which is SQS's limit", maxMessage)
	}
	if err == nil && !utf8.Valid(text) {
		err = errors.New("it is not UTF-8, as the bodies of messages are")
	}
	return string(text), err
}

// paced returns the messages, so many a second on average.
func paced(ctx context.Context, messages iter.Seq2[message, error], rate float64) iter.Seq2[message, error] {
	if rate <= 0 {
		return messages
	}
	return func(yield func(message, error) bool) {
		began, n := time.Now(), 0
		for m, err := range messages {
			due := began.Add(operate.Pace(n, rate))
			n++
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done(): // the sender reports it
			}
			if !yield(m, err) {
				return
			}
		}
	}
}
