package canned

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	corpusSize = 64 // messages that differ in more than their ids
	bodySize   = 1024
	maxBatch   = 10

	// A message's id is its number in idDigits digits behind idPrefix. No id comes twice, as in
	// SQS: a consumer treats a second message with an id that it holds as a redelivery, and a
	// goroutine that waits for a processor can hold one while a hundred thousand others pass.
	idPrefix = "7d5f4c1a-9b1e-4a6b-8c2d-"
	idDigits = 12
)

// corpus are the messages, as the SDK's values and as the JSON of SQS.
type corpus struct {
	messages []types.Message // without ids
	objects  [][]byte        // JSON, with an id of zeros
	idAt     int             // where the id's digits begin in an object
}

// messages makes the corpus once: all queues have the same messages.
var messages = sync.OnceValue(func() *corpus {
	c := &corpus{}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for i := range corpusSize {
		body := Body(i)
		sum := md5.Sum([]byte(body))
		m := types.Message{
			ReceiptHandle: aws.String(fmt.Sprintf("AQEB%08x", i) + strings.Repeat("wX5/z+", 60) + "=="),
			Body:          &body,
			MD5OfBody:     aws.String(hex.EncodeToString(sum[:])),
			Attributes: map[string]string{
				"SenderId":                         "AIDASSYFHUBOBT7F4XT75",
				"ApproximateReceiveCount":          "1",
				"ApproximateFirstReceiveTimestamp": now,
				"SentTimestamp":                    now,
			},
		}
		c.messages = append(c.messages, m)
		rest, err := json.Marshal(map[string]any{
			"ReceiptHandle": m.ReceiptHandle, "Body": m.Body, "MD5OfBody": m.MD5OfBody, "Attributes": m.Attributes,
		})
		if err != nil {
			panic(err) // of strings
		}
		id := `{"MessageId":"` + idPrefix
		c.idAt = len(id)
		c.objects = append(c.objects, append([]byte(id+strings.Repeat("0", idDigits)+`",`), rest[1:]...))
	}
	return c
})

// batch makes n messages, numbered from first, out of the corpus.
func (c *corpus) batch(first, n int) []types.Message {
	batch := make([]types.Message, n)
	ids := make([]string, n)
	text := make([]byte, 0, maxBatch*(len(idPrefix)+idDigits))
	for i := range n {
		text = append(text, idPrefix...)
		text = appendDigits(text, first+i)
	}
	all := string(text)
	const length = len(idPrefix) + idDigits
	for i := range n {
		ids[i] = all[i*length : (i+1)*length]
		batch[i] = c.messages[(first+i)%corpusSize]
		batch[i].MessageId = &ids[i]
	}
	return batch
}

// appendJSON appends the objects of n messages, numbered from first.
func (c *corpus) appendJSON(reply []byte, first, n int) []byte {
	for i := range n {
		if i > 0 {
			reply = append(reply, ',')
		}
		at := len(reply) + c.idAt
		reply = append(reply, c.objects[(first+i)%corpusSize]...)
		appendDigits(reply[:at], first+i)
	}
	return reply
}

// appendDigits appends n in exactly idDigits digits.
func appendDigits(b []byte, n int) []byte {
	end := len(b) + idDigits
	b = append(b, "000000000000"[:idDigits]...)
	for i := end - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// Body is a document of 1 KiB, with quotes to escape like any that is sent as
// JSON within JSON.
func Body(i int) string {
	var b bytes.Buffer
	const line, tail = `{"sku":"A-10442","quantity":2,"price":"19.90"},`, `],"note":"`
	fmt.Fprintf(&b, `{"order":%d,"customer":"Zoë Ångström","lines":[`, i)
	for b.Len()+len(line)+len(tail) < bodySize-40 {
		b.WriteString(line)
	}
	b.Truncate(b.Len() - len(","))
	b.WriteString(tail)
	return b.String() + strings.Repeat("x", bodySize-len(`"}`)-b.Len()) + `"}`
}
