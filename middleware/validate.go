package middleware

import (
	"context"
	"fmt"

	"github.com/reprise-sqs/reprise"
)

// Validate calls check before the handler. If check returns an error, the message is dead-lettered
// with that error as the reason, and the handler does not see it: a message that is invalid now
// will be invalid at the next attempt. So check only the content of the message, and no other
// service: a database that does not answer is not a fault of the message.
func Validate(check func(ctx context.Context, m *reprise.Message) error) Middleware {
	required("Validate", check == nil)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if err := check(ctx, m); err != nil {
				return reprise.Permanent(fmt.Errorf("the message is not valid: %w", err))
			}
			return next.Handle(ctx, m)
		})
	}
}
