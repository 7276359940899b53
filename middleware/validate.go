package middleware

import (
	"context"
	"fmt"

	"github.com/reprise-sqs/reprise"
)

// Validate calls check before the handler. A message that it returns an error for
// is dead-lettered with that error as the reason, and the handler does not see it:
// what is wrong with a message now will be wrong at the next attempt. So check what
// the message says, not what else there is: a database that does not answer is no
// fault of the message.
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
