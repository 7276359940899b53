package sqsserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// maxRequestSize is more than any valid request needs: a batch of 1 MiB in which each byte
// is written as a six-byte escape.
const maxRequestSize = 8 << 20

// maxPooledBuffer limits the size of pooled buffers, so that one large request does not hold
// its memory for ever.
const maxPooledBuffer = 1 << 20

// exchange has the buffers of a request over HTTP and of its reply.
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

// firstRead is the size of the buffer before any of the body has arrived: most requests need no
// more. The Content-Length cannot be trusted, since the signature has not been checked yet.
const firstRead = 4 << 10

// maxBodies limits the bytes of all request bodies in memory, beyond the firstRead of each:
// those that are being read, before their signature is checked, and those of requests being
// carried out.
const maxBodies = 256 << 20

// countedBody reads the body of a request and counts its bytes while they are in memory.
type countedBody struct {
	io.Reader
	all  *atomic.Int64 // the bytes of all requests; nil: they are not counted
	size int64         // bytes that have arrived
	held int64         // the part of size that is counted in all
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

// read reads the body of a request into the exchange's buffer, which grows with the bytes
// that have come. The result is valid until the exchange is freed.
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
