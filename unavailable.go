package reprise

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"

	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Unavailable marks err as caused by something that is unavailable. The message is retried as
// after any error, but if nearly all messages fail so, the consumer's circuit breaker opens:
// see [Outage]. Errors for which [IsUnavailable] returns true need no mark. The result unwraps
// to err, and is never nil.
func Unavailable(err error) error { return &unavailableError{err} }

type unavailableError struct{ cause error }

func (e *unavailableError) Error() string {
	if e.cause == nil {
		return "unavailable"
	}
	return "unavailable: " + e.cause.Error()
}

func (e *unavailableError) Unwrap() error { return e.cause }

// IsUnavailable reports whether err means that something is unavailable:
//
//   - it is marked by [Unavailable], or is a timeout, [context.DeadlineExceeded]
//     included;
//   - a network operation, a name lookup or a TLS handshake failed, or a connection
//     was cut: [io.ErrUnexpectedEOF], and [io.EOF] inside a [url.Error], as net/http
//     returns it; HTTP/2's GOAWAY or a reset stream;
//   - a reply said so: an error whose StatusCode() or HTTPStatusCode() is 429 or a
//     5xx, a throttling reply to the AWS SDK, gRPC's status Unavailable,
//     DeadlineExceeded or ResourceExhausted, an error whose SQLState() is of class
//     08, 53 or 58, 57014 or 57P, and Redis' LOADING, CLUSTERDOWN and their like;
//   - [driver.ErrBadConn].
//
// [io.EOF] alone does not count, because decoders return it for an empty message. Panics,
// [context.Canceled] and invalid URLs do not count either.
//
// A decoder that reads half of a JSON document returns [io.ErrUnexpectedEOF], both for a
// reply that was cut and for a message that was sent so. Decode messages by [JSON] or
// json.Unmarshal, whose errors differ, or wrap the error by [Permanent].
func IsUnavailable(err error) bool {
	if _, ok := errors.AsType[*PanicError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*unavailableError](err); ok {
		return true
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return connectionFailed(err) || repliedUnavailable(err) || inChain(err, textSaysUnavailable)
}

// connectionFailed reports whether a connection could not be made, or was cut.
func connectionFailed(err error) bool {
	if inChain(err, operationFailed) {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	// A pipe to a process that does not read all of its input breaks as well.
	if _, ok := errors.AsType[*fs.PathError](err); !ok && errors.Is(err, syscall.EPIPE) {
		return true
	}
	// Decoders return io.EOF for an empty message, so it takes a *url.Error to know
	// that a server closed the connection. io.ErrUnexpectedEOF is all that net/http
	// returns for a reply that is cut in its body.
	if _, ok := errors.AsType[*url.Error](err); ok && errors.Is(err, io.EOF) {
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, http.ErrSchemeMismatch)
}

// operationFailed reports whether a network operation failed. It does not count if it was
// cancelled, or if the address is invalid, which may come from a message.
func operationFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || errors.Is(op, context.Canceled) {
		return false
	}
	_, wrong := errors.AsType[*net.AddrError](op)
	return !wrong
}

// unavailableTexts are beginnings of errors of connections whose types are not exported.
var unavailableTexts = []string{
	"http2: server sent GOAWAY", "http2: client connection lost", "stream error: stream ID ",
	"http: server closed idle connection", "net/http: HTTP/1.x transport connection broken",
	"tls: ",
	"redis: connection pool timeout", "conn closed", // go-redis, pgx
}

// textSaysUnavailable reports whether the text of one error, without looking at what
// it wraps, is that of a failed connection.
func textSaysUnavailable(err error) bool {
	text := err.Error()
	for _, beginning := range unavailableTexts {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}

// repliedUnavailable reports whether err is a reply of a server that cannot do its
// work now.
func repliedUnavailable(err error) bool {
	if unavailableStatus(err) || inChain(err, unavailableRPC) {
		return true
	}
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok && unavailableSQL(e.SQLState()) {
		return true
	}
	if e, ok := errors.AsType[interface {
		error
		RedisError()
	}](err); ok && unavailableRedis(e.Error()) {
		return true
	}
	return awsretry.IsErrorThrottles(awsretry.DefaultThrottles).IsErrorThrottle(err).Bool() ||
		awsretry.RetryableErrorCode{Codes: awsretry.DefaultRetryableErrorCodes}.IsErrorRetryable(err).Bool()
}

// unavailableStatus reports whether err has an HTTP status that stands for a server
// that cannot answer now.
func unavailableStatus(err error) bool {
	status := 0
	if e, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err); ok {
		status = e.StatusCode()
	} else if e, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		status = e.HTTPStatusCode()
	}
	return status == http.StatusTooManyRequests || status/100 == 5
}

// Status codes of gRPC.
const (
	rpcDeadlineExceeded  = 4
	rpcResourceExhausted = 8
	rpcUnavailable       = 14
)

// unavailableRPC reports whether one error, without what it wraps, is a status of
// gRPC for a server that cannot answer now. gRPC's errors have a method GRPCStatus,
// whose result has a method Code. It is called by reflection, since its result's
// type could not be named without requiring gRPC.
func unavailableRPC(err error) bool {
	get := reflect.ValueOf(err).MethodByName("GRPCStatus")
	if !get.IsValid() || get.Type().NumIn() != 0 || get.Type().NumOut() != 1 {
		return false
	}
	status := get.Call(nil)[0]
	if k := status.Kind(); (k == reflect.Pointer || k == reflect.Interface) && status.IsNil() {
		return false
	}
	get = status.MethodByName("Code")
	if !get.IsValid() || get.Type().NumIn() != 0 || get.Type().NumOut() != 1 || !get.Type().Out(0).ConvertibleTo(reflect.TypeFor[uint32]()) {
		return false
	}
	switch get.Call(nil)[0].Convert(reflect.TypeFor[uint32]()).Uint() {
	case rpcUnavailable, rpcDeadlineExceeded:
		return true
	case rpcResourceExhausted:
		// gRPC's own limit on the size of one message has the same code.
		return !strings.Contains(err.Error(), "larger than max")
	}
	return false
}

// unavailableSQL reports whether an SQLSTATE stands for a database that cannot work
// now: the connection, resources, the system around it, a statement's timeout, a
// shutdown or a start.
func unavailableSQL(state string) bool {
	if len(state) != 5 {
		return false
	}
	switch state[:2] {
	case "08", "53", "58":
		return true
	}
	return state == "57014" || state[:3] == "57P"
}

// unavailableRedis reports whether an error reply of Redis stands for a server that
// cannot work now.
func unavailableRedis(reply string) bool {
	code, _, _ := strings.Cut(reply, " ")
	switch code {
	case "LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "BUSY", "MISCONF", "NOREPLICAS", "OOM", "TRYAGAIN":
		return true
	}
	return strings.HasPrefix(reply, "ERR max number of clients reached")
}

// inChain reports whether is returns true for err or for an error that it wraps.
func inChain(err error, is func(error) bool) bool {
	if err == nil {
		return false
	}
	if is(err) {
		return true
	}
	if e, ok := err.(interface{ Unwrap() error }); ok {
		return inChain(e.Unwrap(), is)
	}
	if e, ok := err.(interface{ Unwrap() []error }); ok {
		for _, wrapped := range e.Unwrap() {
			if inChain(wrapped, is) {
				return true
			}
		}
	}
	return false
}
