// Package middleware has common wrappers of handlers: logging, metrics, reports of panics, time
// limits, rate limits, decompression, validation.
//
// A middleware is a function from a [reprise.Handler] to a [reprise.Handler]: your own and those of
// packages idempotency and envelope work the same way. [Chain] puts several around one handler.
//
//	handler := middleware.Chain(
//		middleware.Logging(logger),
//		middleware.Recover(report),
//		middleware.Must(middleware.Timeout(30*time.Second)),
//	)(reprise.JSON(ship))
//
// A setting that cannot work is an error of the constructor; [Must] is for settings that are
// constants in the code. A missing function is a bug of the program: the constructor panics.
package middleware

import "github.com/reprise-sqs/reprise"

// Middleware puts something around a handler. It is an alias of the function type, so that
// functions from anywhere can be passed.
type Middleware = func(reprise.Handler) reprise.Handler

// Chain returns all of them as one: the first is the outermost, so that a message passes through
// them in the given order, and its error in the reverse order. Without arguments, handlers are
// unchanged.
func Chain(middlewares ...Middleware) Middleware {
	return func(h reprise.Handler) reprise.Handler {
		for i := len(middlewares) - 1; i >= 0; i-- {
			h = middlewares[i](h)
		}
		return h
	}
}

// Must returns m, and panics if err is not nil. It is for chains whose settings are constants in
// the code; for settings from a file, check the error.
func Must(m Middleware, err error) Middleware {
	if err != nil {
		panic(err)
	}
	return m
}
