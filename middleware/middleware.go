// Package middleware has what most handlers want around them: logging, metrics,
// panics reported, time limits, rate limits, decompression, validation.
//
// A middleware is a function from a [reprise.Handler] to a [reprise.Handler]: yours
// and those of package idempotency and envelope are as good as the ones here.
// [Chain] puts several around one handler.
//
//	handler := middleware.Chain(
//		middleware.Logging(logger),
//		middleware.Recover(report),
//		middleware.Must(middleware.Timeout(30*time.Second)),
//	)(reprise.JSON(ship))
//
// A setting that cannot work is an error of the constructor; [Must] is for settings
// that stand in the code. A function that is missing is a mistake in the program:
// the constructor panics.
package middleware

import "github.com/reprise-sqs/reprise"

// Middleware puts something around a handler. It is another name for the function
// type, so that functions that never heard of this package can be passed as one.
type Middleware = func(reprise.Handler) reprise.Handler

// Chain returns all of them as one: the first is the outermost, so that a message
// meets them in the order in which they stand, and its error in the reverse one.
// Without any, handlers stay as they are.
func Chain(middlewares ...Middleware) Middleware {
	return func(h reprise.Handler) reprise.Handler {
		for i := len(middlewares) - 1; i >= 0; i-- {
			h = middlewares[i](h)
		}
		return h
	}
}

// Must returns m, and panics if err is not nil. It is for chains whose settings
// stand in the code; check those that come from a file.
func Must(m Middleware, err error) Middleware {
	if err != nil {
		panic(err)
	}
	return m
}
