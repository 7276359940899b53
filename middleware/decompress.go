package middleware

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// EncodingAttribute is the message attribute that names the compression of a body, unless
// [DecompressConfig].Attribute names another.
const EncodingAttribute = "Content-Encoding"

// DecompressConfig are the settings of [Decompress]. The zero value is a good default.
type DecompressConfig struct {
	// Attribute is the message attribute that names the compression of a body. Default:
	// EncodingAttribute.
	Attribute string

	// MaxSize is how large a body may become, in bytes. A message whose body would become larger is
	// dead-lettered. Each running handler can have one such body in memory. Default: 16 MiB.
	MaxSize int

	// MaxRatio is how many times larger than its compressed form a body may become, in whole
	// numbers, so that a sender cannot use much memory with a small message. A message whose body
	// would become larger is dead-lettered, except bodies of up to 1 MiB, SQS's limit, which may
	// have any ratio. Usual texts have ratios of 3 to 50; a decompression bomb has 1,000. Default:
	// 200.
	MaxRatio int
}

const (
	defaultMaxSize = 16 << 20
	largestMaxSize = 1 << 30
	defaultRatio   = 200
	largestRatio   = 1100    // deflate has none beyond 1032
	anyRatio       = 1 << 20 // bytes, of any ratio
)

// Decompress gives the handler the decompressed body. SQS accepts only text, so a compressed body
// is in base64 (RFC 4648, section 4). The attribute is "gzip" (RFC 1952) or "deflate", which is
// zlib's format (RFC 1950), as HTTP's Content-Encoding does. The handler does not see the
// attribute. A message without it, or with "identity", passes unchanged.
//
// A message with the attribute that cannot be decompressed, or would exceed MaxSize or MaxRatio, is
// dead-lettered unchanged, with the reason. A body is decompressed once: a body that was compressed
// twice is still compressed once.
//
// A MaxSize below 0 or above 1 GiB is an error, and a MaxRatio below 0 or above 1,100.
func Decompress(cfg DecompressConfig) (Middleware, error) {
	if cfg.Attribute == "" {
		cfg.Attribute = EncodingAttribute
	}
	if cfg.MaxSize == 0 {
		cfg.MaxSize = defaultMaxSize
	}
	if cfg.MaxSize < 0 || cfg.MaxSize > largestMaxSize {
		return nil, fmt.Errorf("making a decompressor: DecompressConfig.MaxSize is %d: set 1 to %d bytes, or 0 for %d", cfg.MaxSize, largestMaxSize, defaultMaxSize)
	}
	if cfg.MaxRatio == 0 {
		cfg.MaxRatio = defaultRatio
	}
	if cfg.MaxRatio < 0 || cfg.MaxRatio > largestRatio {
		return nil, fmt.Errorf("making a decompressor: DecompressConfig.MaxRatio is %d: set 1 to %d, or 0 for %d", cfg.MaxRatio, largestRatio, defaultRatio)
	}
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			a, ok := m.Attributes[cfg.Attribute]
			if !ok {
				return next.Handle(ctx, m)
			}
			encoding := aws.ToString(a.StringValue)
			body, err := decompress(m.Body, encoding, &cfg)
			if err != nil {
				return reprise.Permanent(fmt.Errorf("decompressing the body (%s %.100q): %w", cfg.Attribute, encoding, err))
			}
			plain := *m // outer middleware sees the message too, so it must not be changed
			plain.Body = body
			plain.Attributes = maps.Clone(m.Attributes)
			delete(plain.Attributes, cfg.Attribute)
			return next.Handle(ctx, &plain)
		})
	}, nil
}

// decompress returns the decoded form of body.
func decompress(body, encoding string, cfg *DecompressConfig) (string, error) {
	var pool *sync.Pool
	switch strings.ToLower(encoding) {
	case "identity":
		return body, nil
	case "gzip":
		pool = &gunzips
	case "deflate":
		pool = &unzlibs
	default:
		return "", errors.New("the encoding is not known: gzip, deflate and identity are")
	}
	compressed, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return "", fmt.Errorf("the body is not base64: %w", err)
	}
	in := pool.Get().(*inflater)
	defer pool.Put(in)
	return in.inflate(bytes.NewReader(compressed), cfg)
}

// inflater decompresses one body after another: a new one costs 40 KB.
type inflater struct {
	stream io.Reader // nil before the first body
	reset  func(stream, src io.Reader) (io.Reader, error)
	buffer [4096]byte
}

var (
	gunzips = sync.Pool{New: func() any { return &inflater{reset: resetGzip} }}
	unzlibs = sync.Pool{New: func() any { return &inflater{reset: resetZlib} }}
)

func resetGzip(stream, src io.Reader) (io.Reader, error) {
	if stream == nil {
		return gzip.NewReader(src)
	}
	return stream, stream.(*gzip.Reader).Reset(src)
}

func resetZlib(stream, src io.Reader) (io.Reader, error) {
	if stream == nil {
		return zlib.NewReader(src)
	}
	return stream, stream.(zlib.Resetter).Reset(src, nil)
}

// inflate reads all of src, and refuses further bytes.
func (in *inflater) inflate(src *bytes.Reader, cfg *DecompressConfig) (string, error) {
	byRatio := max(anyRatio, cfg.MaxRatio*src.Len())
	limit := min(cfg.MaxSize, byRatio)
	stream, err := in.reset(in.stream, src)
	if err != nil {
		return "", err
	}
	in.stream = stream
	var plain strings.Builder
	plain.Grow(min(limit, 4*src.Len()))
	n, err := io.CopyBuffer(&plain, io.LimitReader(stream, int64(limit)+1), in.buffer[:])
	switch {
	case err != nil:
		return "", err
	case n > int64(limit) && limit < cfg.MaxSize:
		return "", fmt.Errorf("it becomes more than %d times as large: raise DecompressConfig.MaxRatio if this is not an attack", cfg.MaxRatio)
	case n > int64(limit):
		return "", fmt.Errorf("it becomes larger than the limit of %d bytes: raise DecompressConfig.MaxSize if this is not an attack", limit)
	case src.Len() > 0:
		return "", fmt.Errorf("%d bytes follow what was compressed", src.Len())
	}
	return plain.String(), nil
}

var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Compress returns o with its body compressed by gzip, in base64, and with an [EncodingAttribute],
// for consumers that [Decompress]. It returns o unchanged if that does not make the message
// smaller, if o already has ten attributes, the maximum of SQS, or if it has an EncodingAttribute.
func Compress(o reprise.Outgoing) reprise.Outgoing {
	if _, encoded := o.Attributes[EncodingAttribute]; encoded || len(o.Attributes) >= sqslimit.Attributes {
		return o
	}
	var compressed bytes.Buffer
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(&compressed)
	_, _ = io.WriteString(w, o.Body) // a bytes.Buffer returns no error
	_ = w.Close()
	const attribute = len(EncodingAttribute + "String" + "gzip") // its size in SQS's count
	if base64.StdEncoding.EncodedLen(compressed.Len())+attribute >= len(o.Body) {
		return o
	}
	o.Body = base64.StdEncoding.EncodeToString(compressed.Bytes())
	attributes := make(map[string]types.MessageAttributeValue, len(o.Attributes)+1)
	maps.Copy(attributes, o.Attributes)
	attributes[EncodingAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("gzip")}
	o.Attributes = attributes
	return o
}
