package outages

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
)

// statusError is an HTTP client's error with the status of the reply.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

func (e statusError) StatusCode() int { return int(e) }

func TestIsUnavailable(t *testing.T) {
	reply := func(status int) error {
		return fmt.Errorf("operation error: %w", &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: errors.New("api error"),
		})
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an ordinary error":        {kit.ErrUnavailable, false},
		"marked":                   {fmt.Errorf("shipping: %w", reprise.Unavailable(kit.ErrUnavailable)), true},
		"marked nil":               {reprise.Unavailable(nil), true},
		"marked, with a time":      {reprise.RetryAfter(time.Minute, reprise.Unavailable(kit.ErrUnavailable)), true},
		"timeout of a context":     {fmt.Errorf("shipping: %w", context.DeadlineExceeded), true},
		"cancelled":                {context.Canceled, false},
		"refused connection":       {fmt.Errorf("Get: %w", refused), true},
		"bare refusal":             {syscall.ECONNREFUSED, true},
		"reset":                    {syscall.ECONNRESET, true},
		"no such host":             {&net.DNSError{Err: "no such host", IsNotFound: true}, true},
		"dialled to no address":    {&net.OpError{Op: "dial", Net: "tcp", Err: &net.AddrError{Err: "invalid port"}}, false},
		"dialling cancelled":       {&net.OpError{Op: "dial", Net: "tcp", Err: context.Canceled}, false},
		"cancelled for another":    {errors.Join(context.Canceled, refused), true},
		"an empty message decoded": {fmt.Errorf("decoding: %w", io.EOF), false},
		"cut before the answer":    {fmt.Errorf("shipping: %w", &url.Error{Op: "Post", URL: "http://warehouse/", Err: io.EOF}), true},
		"cut in the answer":        {fmt.Errorf("shipping: %w", io.ErrUnexpectedEOF), true},
		"a broken pipe":            {&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, true},
		"a bare broken pipe":       {syscall.EPIPE, true},
		"a program that reads not": {&fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, false},
		"a URL without a host":     {&url.Error{Op: "Post", URL: "http:///", Err: errors.New("http: no Host in request URL")}, false},
		"an unknown authority":     {&url.Error{Op: "Post", URL: "https://warehouse/", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, true},
		"a database's connection":  {fmt.Errorf("begin: %w", driver.ErrBadConn), true},
		"a database's start":       {sqlState("57P03"), true},
		"a database's memory":      {sqlState("53200"), true},
		"a deadlock":               {sqlState("40P01"), false},
		"a duplicate key":          {sqlState("23505"), false},
		"a state that is none":     {sqlState("57"), false},
		"Redis loads":              {redisError("LOADING Redis is loading the dataset in memory"), true},
		"Redis is full of clients": {redisError("ERR max number of clients reached"), true},
		"Redis knows the group":    {redisError("BUSYGROUP Consumer Group name already exists"), false},
		"gRPC's Unavailable":       {fmt.Errorf("shipping: %w", &rpcError{"restarting", &rpcStatus{14}}), true},
		"gRPC's, joined":           {errors.Join(kit.ErrUnavailable, &rpcError{"quota exceeded", &rpcStatus{8}}), true},
		"gRPC's limit of size":     {&rpcError{"received message larger than max (9 vs. 8)", &rpcStatus{8}}, false},
		"gRPC's NotFound":          {&rpcError{"no such order", &rpcStatus{5}}, false},
		"gRPC without a status":    {&rpcError{"no such order", nil}, false},
		"the SDK's own timeout":    {&timedOut{}, true},
		"429":                      {statusError(429), true},
		"503":                      {fmt.Errorf("shipping: %w", statusError(503)), true},
		"404":                      {statusError(404), false},
		"the SDK's 500":            {reply(500), true},
		"the SDK's 400":            {reply(400), false},
		"the SDK's throttle":       {&throttled{}, true},
		"a panic with one of them": {&reprise.PanicError{Value: refused}, false},
	} {
		if got := reprise.IsUnavailable(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// throttled is the SDK's error when DynamoDB throttles.
type throttled struct{}

func (*throttled) Error() string { return "too much" }

func (*throttled) ErrorCode() string { return "ProvisionedThroughputExceededException" }

// timedOut is the SDK's error when S3 has waited too long for the request.
type timedOut struct{}

func (*timedOut) Error() string { return "too slow" }

func (*timedOut) ErrorCode() string { return "RequestTimeout" }

// sqlState is an error of a database, as pgx and pq return it.
type sqlState string

func (e sqlState) Error() string { return "database error " + string(e) }

func (e sqlState) SQLState() string { return string(e) }

// redisError is an error of Redis, as go-redis returns it.
type redisError string

func (e redisError) Error() string { return string(e) }

func (redisError) RedisError() {}

// rpcError is an error of gRPC.
type rpcError struct {
	text   string
	status *rpcStatus
}

func (e *rpcError) Error() string { return e.text }

func (e *rpcError) GRPCStatus() *rpcStatus { return e.status }

type rpcStatus struct{ code rpcCode }

func (s *rpcStatus) Code() rpcCode { return s.code }

type rpcCode uint32
