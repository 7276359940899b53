package middleware_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// attributes are message attributes of one text.
func attributes(name, value string) map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{name: {DataType: aws.String("String"), StringValue: aws.String(value)}}
}

// encoded compresses text as format has it, in base64.
func encoded(tb testing.TB, format, text string) string {
	tb.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch format {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, _ = flate.NewWriter(&b, flate.DefaultCompression)
	}
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// keep is a handler that keeps its message.
func keep(m **reprise.Message) reprise.Handler {
	return reprise.HandlerFunc(func(_ context.Context, got *reprise.Message) error { *m = got; return nil })
}

func TestDecompress(t *testing.T) {
	text := strings.Repeat("order ", 1000)
	member := func(s string) string {
		b, _ := base64.StdEncoding.DecodeString(encoded(t, "gzip", s))
		return string(b)
	}
	for _, tt := range []struct {
		name, encoding, body, want string
	}{
		{"gzip", "gzip", encoded(t, "gzip", text), text},
		{"gzip in capitals", "GZIP", encoded(t, "gzip", text), text},
		{"gzip of nothing", "gzip", encoded(t, "gzip", ""), ""},
		{"gzip of two members", "gzip", base64.StdEncoding.EncodeToString([]byte(member("one ") + member("two"))), "one two"},
		{"gzip, base64 in lines", "gzip", encoded(t, "gzip", "order")[:10] + "\r\n" + encoded(t, "gzip", "order")[10:], "order"},
		{"deflate", "deflate", encoded(t, "deflate", text), text},
		{"identity", "identity", text, text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := message()
			m.Body, m.Attributes = tt.body, attributes(middleware.EncodingAttribute, tt.encoding)
			m.Attributes["kept"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("kept")}
			var got *reprise.Message
			for range 3 { // the second time with what the first has left in the pools
				if err := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(keep(&got)).Handle(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if got.Body != tt.want || got.ID != m.ID || got.Attempt != m.Attempt {
					t.Fatalf("got %.100q, want %.100q", got.Body, tt.want)
				}
				if len(got.Attributes) != 1 || aws.ToString(got.Attributes["kept"].StringValue) != "kept" {
					t.Errorf("attributes %v", got.Attributes)
				}
				if m.Body != tt.body || len(m.Attributes) != 2 {
					t.Fatal("the message outside was changed")
				}
			}
		})
	}
}

// TestDecompressPassesWhatIsPlain: the very same message.
func TestDecompressPassesWhatIsPlain(t *testing.T) {
	m := message()
	m.Attributes = attributes("other", "gzip")
	var got *reprise.Message
	if err := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(keep(&got)).Handle(t.Context(), m); err != nil || got != m {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestDecompressRefuses what cannot be decompressed, or becomes too large, for good
// and with the reason; and the next message is none the worse for it.
func TestDecompressRefuses(t *testing.T) {
	bomb := strings.Repeat("\x00", 1<<20)
	good := encoded(t, "gzip", "order")
	bytesOf := func(s string) []byte { b, _ := base64.StdEncoding.DecodeString(s); return b }
	damaged := bytesOf(good)
	damaged[len(damaged)-6] ^= 1 // in the checksum
	for _, tt := range []struct{ name, encoding, body, want string }{
		{"an unknown encoding", "br", good, `decompressing the body (encoding "br"): the encoding is not known: gzip, deflate and identity are`},
		{"a binary attribute", "", good, "the encoding is not known"},
		{"no base64", "gzip", "order!", "the body is not base64"},
		{"no gzip", "gzip", "b3JkZXI=", "EOF"},
		{"another format", "gzip", encoded(t, "deflate", "order"), "gzip: invalid header"},
		{"raw deflate", "deflate", encoded(t, "raw deflate", "order"), "zlib: invalid header"},
		{"cut off", "gzip", base64.StdEncoding.EncodeToString(bytesOf(good)[:12]), "unexpected EOF"},
		{"a damaged checksum", "gzip", base64.StdEncoding.EncodeToString(damaged), "gzip: invalid checksum"},
		{"more behind gzip", "gzip", base64.StdEncoding.EncodeToString(append(bytesOf(good), "more and more"...)), "gzip: invalid header"},
		{"more behind zlib", "deflate", base64.StdEncoding.EncodeToString(append(bytesOf(encoded(t, "deflate", "order")), "more"...)), "4 bytes follow"},
		{"a bomb", "gzip", encoded(t, "gzip", bomb), "larger than the limit of 1000 bytes: raise DecompressConfig.MaxSize"},
		{"one byte too many", "deflate", encoded(t, "deflate", bomb[:1001]), "larger than the limit of 1000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got *reprise.Message
			h := middleware.Must(middleware.Decompress(middleware.DecompressConfig{Attribute: "encoding", MaxSize: 1000}))(keep(&got))
			m := message()
			m.Body, m.Attributes = tt.body, attributes("encoding", tt.encoding)
			err := h.Handle(t.Context(), m)
			if got != nil || err == nil || reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			for format, size := range map[string]int{"gzip": 1000, "deflate": 1000} {
				m.Body, m.Attributes = encoded(t, format, bomb[:size]), attributes("encoding", format)
				if err := h.Handle(t.Context(), m); err != nil || got.Body != bomb[:size] {
					t.Errorf("afterwards %s of %d bytes: %v", format, size, err)
				}
			}
		})
	}
}

// TestCompress: what it makes is what Decompress reads, through SQS and back; and
// what gains nothing stays as it is.
func TestCompress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		sender, err := reprise.NewSender(q.Direct(), q.URL(), reprise.SenderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		large, small := strings.Repeat("größer ", 10_000), "small"
		if _, err := sender.Send(t.Context(),
			middleware.Compress(reprise.Outgoing{Body: large, Attributes: attributes("tenant", "acme")}),
			middleware.Compress(reprise.Outgoing{Body: small})); err != nil {
			t.Fatal(err)
		}
		if _, err := sender.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range q.Messages() {
			if len(m.Body) > 1000 {
				t.Errorf("a message of %d bytes was sent", len(m.Body))
			}
		}
		var mu sync.Mutex
		got := make(map[string]*reprise.Message)
		q.Consume(middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got[m.Body] = m
			return nil
		})), reprise.Config{})
		q.WaitEmpty(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2 || got[small] == nil || got[large] == nil || aws.ToString(got[large].Attributes["tenant"].StringValue) != "acme" {
			t.Errorf("%d messages arrived", len(got))
		}
	})
}

// TestCompressLeavesAlone what gains nothing, has no room, or is encoded already.
func TestCompressLeavesAlone(t *testing.T) {
	text := strings.Repeat("order ", 1000)
	full := attributes("a0", "v")
	for i := range 9 {
		full["a"+strconv.Itoa(i+1)] = full["a0"]
	}
	for name, o := range map[string]reprise.Outgoing{
		"short":           {Body: "order"},
		"empty":           {},
		"ten attributes":  {Body: text, Attributes: full},
		"already encoded": {Body: text, Attributes: attributes(middleware.EncodingAttribute, "identity")},
	} {
		before := len(o.Attributes)
		if got := middleware.Compress(o); got.Body != o.Body || len(got.Attributes) != before {
			t.Errorf("%s: became %.50q, %v", name, got.Body, got.Attributes)
		}
	}
	attrs := attributes("tenant", "acme")
	if got := middleware.Compress(reprise.Outgoing{Body: text, Attributes: attrs}); len(attrs) != 1 || len(got.Attributes) != 2 {
		t.Errorf("the caller's map has %d attributes, the message %d, want 1 and 2", len(attrs), len(got.Attributes))
	}
}

// FuzzDecompress: no body makes it panic, or larger than it may be.
func FuzzDecompress(f *testing.F) {
	f.Add("gzip", encoded(f, "gzip", "order"))
	f.Add("deflate", encoded(f, "deflate", "order"))
	f.Add("gzip", encoded(f, "gzip", strings.Repeat("\x00", 100_000)))
	var got *reprise.Message
	h := middleware.Must(middleware.Decompress(middleware.DecompressConfig{MaxSize: 1000}))(keep(&got))
	f.Fuzz(func(t *testing.T, encoding, body string) {
		got = nil
		err := h.Handle(t.Context(), &reprise.Message{Body: body, Attributes: attributes(middleware.EncodingAttribute, encoding)})
		switch {
		case err != nil && (got != nil || reasonOf(err) != retry.ReasonPermanent):
			t.Fatalf("%v, and the handler ran: %v", err, got != nil)
		case err == nil && !strings.EqualFold(encoding, "identity") && len(got.Body) > 1000:
			t.Fatalf("a body of %d bytes", len(got.Body))
		}
	})
}
