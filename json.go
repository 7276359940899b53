package reprise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// JSON returns a Handler that decodes the message's body into a T and passes
// it to f. A body that does not decode is a [Permanent] error: running the
// handler again cannot mend it. [MessageFrom] tells f of the message; see also
// [JSONMessage].
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

// JSONMessage is [JSON] for functions that want the message too: its attempt, its ids, its
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

// JSONBatch is [JSON] for batches: f gets what the messages' bodies hold, vs[i] from
// ms[i], and returns nil if all succeeded, or one verdict for each, errs[i] on what it got
// as vs[i]. A body that does not decode is a [Permanent] error of its message, which f
// does not get; if none decodes, f is not called. Of a FIFO queue's group f gets what
// stands before such a message: what stands behind it is run again, as [BatchHandler]
// says.
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

// errBehind is the verdict on a message of a FIFO group behind one that does not decode,
// which says nothing: the message is run again.
var errBehind = errors.New("a message before it in its group cannot be decoded")

// decodeAll decodes the bodies of ms. It returns what they hold, and of which messages;
// and an error for each of the others.
func decodeAll[T any](ms []*Message) (vs []T, decoded []*Message, errs []error) {
	vs, decoded, errs = make([]T, 0, len(ms)), make([]*Message, 0, len(ms)), make([]error, len(ms))
	stopped := make(map[string]bool) // FIFO groups
	for i, m := range ms {
		fifo := m.DeduplicationID != "" // else a group is a tenant, without an order
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
