package serving

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
)

// least does the minimal work on messages, the unavoidable cost of SQS. It unescapes the body of a
// message, computes its MD5, and keeps the message; it returns the oldest ten, each with a receipt
// handle of its own and the attributes of a standard queue; it reads the handles of a delete and
// forgets those messages.
//
// There is one queue, without a lookup of its name. Nothing is hidden or counted and no handle is
// checked. It does not parse: it cuts a send into equal pieces, and searches a delete for handles.
// So its replies have the right size, but are not JSON: they are for a client that searches them.
type least struct {
	replies map[string]reply // for their headers, and for their constant parts
	buffers sync.Pool        // of *buffer

	mu    sync.Mutex
	kept  [40_000]message // the latest: more than wait at once, at any scale
	sent  int
	given int
}

type message struct {
	quoted string // the body as received
	digest [md5.Size]byte
	sent   time.Time
}

type buffer struct {
	request bytes.Buffer
	reply   []byte
}

func newLeast(replies map[string]reply) *least {
	return &least{replies: replies, buffers: sync.Pool{New: func() any { return new(buffer) }}}
}

func (l *least) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := strings.TrimPrefix(r.Header.Get(target), "AmazonSQS.")
	b := l.buffers.Get().(*buffer)
	defer l.buffers.Put(b)
	b.request.Reset()
	known, found := l.replies[action]
	if _, err := b.request.ReadFrom(r.Body); err != nil || !found {
		http.Error(w, "there is no reply to this", http.StatusBadRequest)
		return
	}
	maps.Copy(w.Header(), known.Header)
	body := known.Body
	switch action {
	case "SendMessageBatch":
		l.send(b.request.Bytes())
	case "ReceiveMessage":
		b.reply = l.receive(b.reply[:0])
		body = b.reply
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	case "DeleteMessageBatch":
		l.delete(b.request.Bytes())
	}
	_, _ = w.Write(body) // a client that has gone asks again
}

// send keeps the messages of a batch. A request that is smaller only makes the queue.
func (l *least) send(request []byte) {
	if len(request) < load.BatchSize*load.BodySize {
		return
	}
	var sent [load.BatchSize]message
	var text [load.BodySize]byte
	size, now := len(request)/load.BatchSize, time.Now()
	for i := range sent {
		quoted := request[i*size : (i+1)*size]
		sent[i] = message{string(quoted), md5.Sum(unescape(text[:0], quoted)), now}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range sent {
		l.kept[l.sent%len(l.kept)] = sent[i]
		l.sent++
	}
}

// unescape appends to dst, up to its capacity, the text of a JSON string with escapes of one
// character, such as the quotes of JSON in JSON.
func unescape(dst, quoted []byte) []byte {
	for i := 0; i < len(quoted) && len(dst) < cap(dst); i++ {
		if quoted[i] == '\\' {
			i++
		}
		dst = append(dst, quoted[min(i, len(quoted)-1)])
	}
	return dst
}

// receive appends the reply with the next messages.
func (l *least) receive(reply []byte) []byte {
	var given [load.BatchSize]message
	l.mu.Lock()
	first := l.given
	for i := range given {
		given[i] = l.kept[l.given%len(l.kept)]
		l.given++
	}
	l.mu.Unlock()
	now := time.Now().UnixMilli()
	reply = append(reply, `{"Messages":[`...)
	for i := range given {
		if i > 0 {
			reply = append(reply, ',')
		}
		number := uint64(first + i) //nolint:gosec // G115: a count
		reply = append(reply, `{"MessageId":"`...)
		reply = appendHex(reply, number, ^number)
		reply = append(reply, `","ReceiptHandle":"`...)
		reply = appendHex(reply, number, uint64(now)) //nolint:gosec // G115: after 1970
		reply = append(reply, `","MD5OfBody":"`...)
		reply = hex.AppendEncode(reply, given[i].digest[:])
		reply = append(reply, `","Body":"`...)
		reply = append(reply, given[i].quoted...)
		reply = append(reply, `","Attributes":{"SenderId":"000000000000","SentTimestamp":"`...)
		reply = strconv.AppendInt(reply, given[i].sent.UnixMilli(), 10)
		reply = append(reply, `","ApproximateReceiveCount":"1","ApproximateFirstReceiveTimestamp":"`...)
		reply = strconv.AppendInt(reply, now, 10)
		reply = append(reply, `"}}`...)
	}
	return append(reply, `]}`...)
}

func appendHex(dst []byte, a, b uint64) []byte {
	var text [16]byte
	binary.BigEndian.PutUint64(text[:], a)
	binary.BigEndian.PutUint64(text[8:], b)
	return hex.AppendEncode(dst, text[:])
}

// delete forgets the messages whose handles are in the request.
func (l *least) delete(request []byte) {
	const key, digits = `"ReceiptHandle":"`, 16 // of the number
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		_, after, found := bytes.Cut(request, []byte(key))
		if !found || len(after) < digits {
			return
		}
		var number [digits / 2]byte
		if _, err := hex.Decode(number[:], after[:digits]); err != nil {
			return
		}
		l.kept[binary.BigEndian.Uint64(number[:])%uint64(len(l.kept))] = message{}
		request = after[digits:]
	}
}
