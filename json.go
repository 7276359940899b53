package reprise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// JSON returns a Handler that decodes the message's body into a T and passes it to f. A body
// that cannot be decoded is a [Permanent] error: another attempt would fail too. f gets the
// message by [MessageFrom]; see also [JSONMessage].
func JSON[T any](f func(ctx context.Context, v T) error) Handler {
	if f == nil {
		return HandlerFunc(nil) // which New refuses
	}
	return HandlerFunc(func(ctx context.Context, m *Message) error {
		v, err := decode[T](m)
		if err != nil {
			return err
		}
		return f(withMessage(ctx, m), v)
	})
}

// JSONMessage is [JSON] for a function that needs the message too: its attempt, its ids, its
// group or its attributes.
func JSONMessage[T any](f func(ctx context.Context, v T, m *Message) error) Handler {
	if f == nil {
		return HandlerFunc(nil) // which New refuses
	}
	return HandlerFunc(func(ctx context.Context, m *Message) error {
		v, err := decode[T](m)
		if err != nil {
			return err
		}
		return f(withMessage(ctx, m), v, m)
	})
}

// JSONBatch is [JSON] for batches: vs[i] is the decoded body of ms[i]. f returns nil if all
// succeeded, or one verdict for each: errs[i] is the verdict on vs[i]. A body that cannot be
// decoded is a [Permanent] error of its message, which f does not get; if none can be
// decoded, f is not called. In a group of a FIFO queue, f gets the messages before such a
// message; those behind it run again, as [BatchHandler] says.
func JSONBatch[T any](f func(ctx context.Context, vs []T, ms []*Message) (errs []error)) BatchHandler {
	if f == nil {
		return BatchHandlerFunc(nil) // which New refuses
	}
	return BatchHandlerFunc(func(ctx context.Context, ms []*Message) []error {
		vs, decoded, errs := decodeAll[T](ms)
		if len(vs) == 0 {
			return errs
		}
		verdicts := f(ctx, vs, decoded)
		if verdicts != nil && len(verdicts) != len(vs) {
			err := fmt.Errorf("the function of JSONBatch returned %d verdicts on %d messages: return nil if all succeeded, or one error for each, nil for those that did", len(verdicts), len(vs))
			verdicts = slices.Repeat([]error{err}, len(vs))
		}
		if len(vs) == len(ms) {
			return verdicts
		}
		for i := range errs {
			if errs[i] == nil && verdicts != nil {
				errs[i], verdicts = verdicts[0], verdicts[1:]
			}
		}
		return errs
	})
}

// errBehind is the verdict on a message of a FIFO group behind one that cannot be decoded. It
// is ignored: the message runs again.
var errBehind = errors.New("a message before it in its group cannot be decoded")

// decodeAll decodes the bodies of ms. It returns the values and their messages, and an error
// for each of the other messages.
func decodeAll[T any](ms []*Message) (vs []T, decoded []*Message, errs []error) {
	vs, decoded, errs = make([]T, 0, len(ms)), make([]*Message, 0, len(ms)), make([]error, len(ms))
	stopped := make(map[string]bool) // FIFO groups
	for i, m := range ms {
		fifo := m.DeduplicationID != "" // on standard queues a group has no order
		if fifo && stopped[m.GroupID] {
			errs[i] = errBehind
			continue
		}
		v, err := decode[T](m)
		if err != nil {
			errs[i] = err
			stopped[m.GroupID] = true
			continue
		}
		vs, decoded = append(vs, v), append(decoded, m)
	}
	return vs, decoded, errs
}

// decode reads m's body.
func decode[T any](m *Message) (v T, err error) {
	if err := json.Unmarshal([]byte(m.Body), &v); err != nil {
		return v, Permanent(fmt.Errorf("decoding the body as %T: %w", v, err))
	}
	return v, nil
}
