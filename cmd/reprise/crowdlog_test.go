package main_test

import (
	"bufio"
	"crypto/md5" //nolint:gosec // G501: it is what SQS's replies have
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// crowdLine is a line of a client's log. Each request has two: one with action and input, written before it is sent,
// and one with the same number and a reply or a failure, written when that is known.
type crowdLine struct {
	N      int64  `json:"n"`
	At     int64  `json:"at"` // nanoseconds of Unix time
	Action string `json:"action,omitempty"`

	Input   *crowdInput `json:"input,omitempty"`
	Reply   *crowdReply `json:"reply,omitempty"`
	Code    string      `json:"code,omitempty"`
	Status  int         `json:"status,omitempty"` // of HTTP; 0: no reply came
	Message string      `json:"message,omitempty"`
}

// crowdInput is the input of any action that the clients use. A batch has entries, which have the rest.
type crowdInput struct {
	ID       string `json:"Id,omitempty"`
	QueueURL string `json:"QueueUrl,omitempty"`

	MessageBody            string                    `json:",omitempty"`
	MessageAttributes      map[string]crowdAttribute `json:",omitempty"`
	DelaySeconds           int                       `json:",omitempty"`
	MessageGroupID         string                    `json:"MessageGroupId,omitempty"`
	MessageDeduplicationID string                    `json:"MessageDeduplicationId,omitempty"`

	ReceiptHandle               string   `json:",omitempty"`
	VisibilityTimeout           *int     `json:",omitempty"`
	MaxNumberOfMessages         int      `json:",omitempty"`
	WaitTimeSeconds             int      `json:",omitempty"`
	MessageAttributeNames       []string `json:",omitempty"`
	MessageSystemAttributeNames []string `json:",omitempty"`

	Tags           map[string]string `json:",omitempty"`
	Attributes     map[string]string `json:",omitempty"`
	AttributeNames []string          `json:",omitempty"`

	Entries []crowdInput `json:",omitempty"`
}

// crowdAttribute is a message attribute. A binary value is in base64.
type crowdAttribute struct {
	DataType    string `json:",omitempty"`
	StringValue string `json:",omitempty"`
	BinaryValue string `json:",omitempty"`
}

// crowdReply is the reply to any action that the clients use.
type crowdReply struct {
	MessageID              string `json:"MessageId,omitempty"`
	MD5OfMessageBody       string `json:",omitempty"`
	MD5OfMessageAttributes string `json:",omitempty"`

	Messages   []crowdMessage    `json:",omitempty"`
	Successful []crowdEntry      `json:",omitempty"`
	Failed     []crowdEntry      `json:",omitempty"`
	Tags       map[string]string `json:",omitempty"`
	Attributes map[string]string `json:",omitempty"`
}

type crowdMessage struct {
	MessageID         string `json:"MessageId"`
	ReceiptHandle     string
	Body              string
	MD5OfBody         string
	Attributes        map[string]string
	MessageAttributes map[string]crowdAttribute
}

type crowdEntry struct {
	ID                     string `json:"Id"`
	MessageID              string `json:"MessageId,omitempty"`
	MD5OfMessageBody       string `json:",omitempty"`
	MD5OfMessageAttributes string `json:",omitempty"`
	Code                   string `json:",omitempty"`
	Message                string `json:",omitempty"`
}

// crowdExchange is a request with what became of it.
type crowdExchange struct {
	client, action, queue string
	asked                 int64
	told                  int64 // 0: never
	input                 *crowdInput
	reply                 *crowdReply // nil: it failed, or nothing is known
	status                int
	code, message         string
	repeats               bool // the sender may have sent it several times, and was told no ids
}

// entries are the messages of a request: a batch's, or its own.
func (x *crowdExchange) entries() []crowdInput {
	if strings.HasSuffix(x.action, "Batch") {
		return x.input.Entries
	}
	return []crowdInput{*x.input}
}

// answer is what the reply says of an entry; false: nothing, or that it failed.
func (x *crowdExchange) answer(id string) (crowdEntry, bool) {
	if x.reply == nil {
		return crowdEntry{}, false
	}
	if !strings.HasSuffix(x.action, "Batch") {
		return crowdEntry{ID: id, MessageID: x.reply.MessageID, MD5OfMessageBody: x.reply.MD5OfMessageBody, MD5OfMessageAttributes: x.reply.MD5OfMessageAttributes}, true
	}
	i := slices.IndexFunc(x.reply.Successful, func(e crowdEntry) bool { return e.ID == id })
	if i < 0 {
		return crowdEntry{}, false
	}
	return x.reply.Successful[i], true
}

// refused reports whether the reply says that an entry had no effect.
func (x *crowdExchange) refused(id string) bool {
	if x.reply == nil {
		return x.status >= 400 && x.status < 500
	}
	return slices.ContainsFunc(x.reply.Failed, func(e crowdEntry) bool { return e.ID == id })
}

// readCrowdLog reads the log of a client.
func readCrowdLog(client string, from io.Reader) ([]*crowdExchange, error) {
	var all []*crowdExchange
	open := make(map[int64]*crowdExchange)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var l crowdLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("the log of %s: %w: %q", client, err, lines.Text())
		}
		x := open[l.N]
		switch {
		case l.Input != nil && x == nil:
			x = &crowdExchange{client: client, action: l.Action, queue: path.Base(l.Input.QueueURL), asked: l.At, input: l.Input}
			open[l.N] = x
			all = append(all, x)
		case l.Input == nil && x != nil:
			x.told, x.reply, x.status, x.code, x.message = l.At, l.Reply, l.Status, l.Code, l.Message
			delete(open, l.N)
		default:
			return nil, fmt.Errorf("the log of %s has this line at the wrong place: %q", client, lines.Text())
		}
	}
	return all, lines.Err()
}

func readCrowdFile(client, file string) ([]*crowdExchange, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readCrowdLog(client, in)
}

// crowdBreak is a time in which the server starts, stops, is away or lacks room.
type crowdBreak struct {
	kind     string // start, kill, stop, full, low
	from, to int64
}

// loses reports whether the server may have lost what no request waits for.
func (b crowdBreak) loses() bool { return b.kind == "kill" || b.kind == "full" }

// crowdJump is a jump of the server's clock.
type crowdJump struct {
	from, to int64 // it happened between
	by       int64 // nanoseconds
}

// crowdCommand is an operator's command that has ended.
type crowdCommand struct {
	args        []string
	asked, told int64
	code        int
	output      string
}

// crowdRecord is all that the audit knows.
type crowdRecord struct {
	exchanges []*crowdExchange
	breaks    []crowdBreak
	jumps     []crowdJump
	commands  []crowdCommand
	routes    map[string][]string // the queues to which messages of a queue may come otherwise than by a send
	receives  map[string]int      // how often a queue's messages are received at most; 0: no limit
}

func md5Of(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // G401: it is what SQS's replies have
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of message attributes as the Developer Guide describes it.
func md5OfAttributes(attributes map[string]crowdAttribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var text []byte
	add := func(s string) {
		text = binary.BigEndian.AppendUint32(text, uint32(len(s))) //nolint:gosec // G115: they are short
		text = append(text, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		add(name)
		add(a.DataType)
		if !strings.HasPrefix(a.DataType, "Binary") {
			text = append(text, 1)
			add(a.StringValue)
			continue
		}
		value, err := base64.StdEncoding.DecodeString(a.BinaryValue)
		if err != nil {
			return err.Error()
		}
		text = append(text, 2)
		add(string(value))
	}
	return md5Of(string(text))
}
