package s3payload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// storage is an S3 in memory for bubbles, with errors and delays as a test sets them.
type storage struct {
	mu       sync.Mutex
	objects  map[string]string // by bucket/key
	failures map[string][]error
	calls    map[string]int
	delay    time.Duration           // of every call
	reader   func(string) io.Reader  // changes the content that is read of an object
	unsized  bool                    // replies do not say how long an object is
	deleting func(bucketKey string)  // is told before an object goes
	wrong    func(body string) int64 // the length that a reply names instead of the real one
}

func newStorage() *storage {
	return &storage{objects: make(map[string]string), failures: make(map[string][]error), calls: make(map[string]int)}
}

// fail has the next calls of an operation fail, each with one of the errors.
func (s *storage) fail(operation string, errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[operation] = append(s.failures[operation], errs...)
}

// keys returns the names of all objects.
func (s *storage) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

func (s *storage) count(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[operation]
}

// begin does the part that all calls have in common. It locks s.mu unless it returns an error; the
// caller unlocks it.
func (s *storage) begin(ctx context.Context, operation string) error {
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return &aws.RequestCanceledError{Err: err}
	}
	s.mu.Lock()
	s.calls[operation]++
	if left := s.failures[operation]; len(left) > 0 {
		s.failures[operation] = left[1:]
		s.mu.Unlock()
		return &smithy.OperationError{ServiceID: s3.ServiceID, OperationName: operation, Err: left[0]}
	}
	return nil
}

func (s *storage) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if err := s.begin(ctx, "get"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	body, ok := s.objects[*in.Bucket+"/"+*in.Key]
	if !ok {
		return nil, &s3types.NoSuchKey{Message: aws.String("The specified key does not exist.")}
	}
	out := &s3.GetObjectOutput{ContentLength: aws.Int64(int64(len(body))), Body: io.NopCloser(strings.NewReader(body))}
	if s.wrong != nil {
		out.ContentLength = aws.Int64(s.wrong(body))
	}
	if s.unsized {
		out.ContentLength = nil
	}
	if s.reader != nil {
		out.Body = io.NopCloser(s.reader(body))
	}
	return out, nil
}

func (s *storage) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if err := s.begin(ctx, "put"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	s.objects[*in.Bucket+"/"+*in.Key] = string(body)
	return &s3.PutObjectOutput{}, nil
}

func (s *storage) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	if err := s.begin(ctx, "delete"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.deleting != nil {
		s.deleting(*in.Bucket + "/" + *in.Key)
	}
	delete(s.objects, *in.Bucket+"/"+*in.Key) // S3 reports no error if it does not exist
	return &s3.DeleteObjectOutput{}, nil
}

// reply is an error that S3 answers with.
func reply(code string, fault smithy.ErrorFault) error {
	return &smithy.GenericAPIError{Code: code, Message: "so S3 says", Fault: fault}
}

var errBroken = errors.New("the connection broke")

// newPayloads keeps bodies of more than 100 bytes in S3, unless change sets something else.
func newPayloads(tb testing.TB, client s3payload.Client, change ...func(*s3payload.Config)) *s3payload.Payloads {
	tb.Helper()
	cfg := s3payload.Config{Bucket: "payloads", Prefix: "orders/", Threshold: 100, Logger: slog.New(slog.NewTextHandler(tb.Output(), nil))}
	for _, f := range change {
		f(&cfg)
	}
	p, err := s3payload.New(client, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// newSender returns a sender to q that is closed when the test ends.
func newSender(tb testing.TB, q *reprisetest.Queue) *reprise.Sender {
	tb.Helper()
	sender, err := reprise.NewSender(q.Direct(), q.URL(), reprise.SenderConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := sender.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return sender
}

// text is an attribute's value.
func text(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
}

// number is an attribute's value.
func number(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String(value)}
}

// pointing returns a message that points to an object of the given number of bytes.
func pointing(bucket, key string, size int) *reprise.Message {
	return &reprise.Message{
		ID:         "m-1",
		Body:       fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":%q,"s3Key":%q}]`, bucket, key),
		Attributes: map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number(fmt.Sprint(size))},
	}
}

// keep is a handler that keeps its message.
func keep(m **reprise.Message) reprise.Handler {
	return reprise.HandlerFunc(func(_ context.Context, got *reprise.Message) error { *m = got; return nil })
}

// storyOf reads the story that a dead letter carries.
func storyOf(t *testing.T, m sqsserver.MessageInfo) (story reprise.Story) {
	t.Helper()
	for _, a := range m.Attributes {
		if a.Name == reprise.StoryAttribute {
			if err := json.Unmarshal([]byte(a.StringValue), &story); err != nil {
				t.Fatal(err)
			}
			return story
		}
	}
	t.Fatalf("dead letter %s has no story", m.ID)
	return story
}
