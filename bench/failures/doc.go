// Package failures has no code of its own: its tests make the failures that
// handlers meet, with real sockets and the clients that programs use, and hold what
// [github.com/reprise-sqs/reprise.IsUnavailable] says of each. It lies in this
// module since the library must not require gRPC or database drivers.
package failures
