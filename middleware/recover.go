package middleware

import (
	"context"
	"runtime/debug"

	"github.com/reprise-sqs/reprise"
)

// Recover turns a panic of the handler into the error that the consumer would make of it, a
// [*reprise.PanicError], and calls hook with it first: use it for an error tracker. It costs one
// attempt, as any error does. Outer middleware sees the error instead of the panic.
//
// [runtime.Goexit] is no panic and passes through. A nil hook is skipped.
func Recover(hook func(ctx context.Context, m *reprise.Message, p *reprise.PanicError)) Middleware {
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) (err error) {
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				p := &reprise.PanicError{Value: v, Stack: debug.Stack()}
				if hook != nil {
					hook(ctx, m, p)
				}
				err = p
			}()
			return next.Handle(ctx, m)
		})
	}
}
