// Package failures has no code of its own: its tests produce the failures that handlers meet, with
// real sockets and common clients, and check the result of
// [github.com/reprise-sqs/reprise.IsUnavailable] for each. It is in this module because the library
// must not require gRPC or database drivers.
package failures
