package sqsserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// maxRequestSize is beyond what any request that can succeed needs: a batch of
// 1 MiB, each of whose bytes is written as a six-byte escape.
const maxRequestSize = 8 << 20

// maxPooledBuffer keeps a buffer that once held a large request or reply from
// holding its memory.
const maxPooledBuffer = 1 << 20

// exchange has the buffers of a request over HTTP.
type exchange struct {
	request bytes.Buffer
	reply   []byte
	body    countedBody
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (e *exchange) free() {
	e.body.uncount()
	if e.request.Cap() > maxPooledBuffer || cap(e.reply) > maxPooledBuffer {
		return
	}
	e.request.Reset()
	e.reply = e.reply[:0]
	exchanges.Put(e)
}

// firstRead is how much room a body has before any of it has come: most need no more. A
// client's word on how much will come is worth nothing, and the signature has not been
// checked yet.
const firstRead = 4 << 10

// maxBodies is how many bytes of bodies the server holds at once, beyond the firstRead of
// each: those that are being read, whose signature is not checked, and those of requests
// under way.
const maxBodies = 256 << 20

// countedBody is the body of a request, whose bytes are counted while they are held.
type countedBody struct {
	io.Reader
	all  *atomic.Int64 // of all requests; nil: none is counted
	size int64         // that came
	held int64         // of it, what all has
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.size += int64(n)
	if more := b.size - firstRead - b.held; more > 0 {
		b.held += more
		if b.all.Add(more) > maxBodies {
			return 0, errTooManyBodies()
		}
	}
	return n, err
}

func (b *countedBody) uncount() {
	if b.held > 0 {
		b.all.Add(-b.held)
	}
	*b = countedBody{}
}

// read reads the body of a request, which is valid until the exchange is freed. The
// buffer grows by what has come.
func (e *exchange) read(w http.ResponseWriter, r *http.Request, all *atomic.Int64) ([]byte, error) {
	e.body = countedBody{Reader: http.MaxBytesReader(w, r.Body, maxRequestSize), all: all}
	if n := r.ContentLength; n > 0 {
		e.request.Grow(int(min(n, firstRead)) + bytes.MinRead)
	}
	if _, err := e.request.ReadFrom(&e.body); err != nil {
		if full, ok := errors.AsType[*Error](err); ok {
			return nil, full
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, errSerialization(maxRequestSize, "it is longer than any valid request")
		}
		return nil, errSerialization(e.request.Len(), "it ends early: "+err.Error())
	}
	return e.request.Bytes(), nil
}
