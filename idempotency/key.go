package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
)

// KeyFunc returns a name for the work that a message asks for.
type KeyFunc func(m *reprise.Message) (string, error)

// ByOrigin keys by the id of the message that started the lineage, and by the content: see
// [reprise.Message.IdempotencyKey]. Messages that SQS delivers twice, and copies, are the same work. A
// message that a producer sends twice is different work, and so is a redriven one, which begins anew.
// Whatever a producer forges, a message can have another's key only if it asks for exactly the same work.
func ByOrigin(m *reprise.Message) (string, error) { return m.IdempotencyKey(), nil }

// ByBody keys by the SHA-256 of the body: equal bodies are the same work, from any sender, for as
// long as the retention.
//
// With this key and those below producers decide what is the same work: anybody who may send to the
// queue can send another's key, and the other's work then counts as done. [Config].Digest makes
// that an error of the later message, not of the forger's.
func ByBody(m *reprise.Message) (string, error) {
	sum := sha256.Sum256([]byte(m.Body))
	return hex.EncodeToString(sum[:]), nil
}

// ByAttribute keys by a message attribute of the producer's, such as an
// idempotency key. It is an error if a message has no such attribute.
func ByAttribute(name string) KeyFunc {
	return func(m *reprise.Message) (string, error) {
		a, ok := m.Attributes[name]
		switch {
		case !ok:
			return "", fmt.Errorf("the message has no attribute %q", name)
		case a.StringValue != nil:
			return *a.StringValue, nil
		}
		return hex.EncodeToString(a.BinaryValue), nil
	}
}

// ByGroup keys by the message group and, inside it, by another function: the same
// order number of two tenants is different work.
func ByGroup(inside KeyFunc) KeyFunc {
	return func(m *reprise.Message) (string, error) {
		key, err := inside(m)
		if err != nil || key == "" {
			return "", err
		}
		return inGroup(m, key), nil
	}
}

// inGroup returns a key that is unique for the group and the key.
func inGroup(m *reprise.Message, key string) string {
	return strconv.Itoa(len(m.GroupID)) + ":" + m.GroupID + ":" + key
}

// ByDeduplicationID keys by a FIFO queue's deduplication id inside its message group: messages that
// SQS would drop within five minutes are the same work for as long as the retention. It is an error
// on standard queues, whose messages have none.
func ByDeduplicationID(m *reprise.Message) (string, error) {
	if m.DeduplicationID == "" {
		return "", errors.New("the message has no deduplication id: it is not from a FIFO queue")
	}
	return inGroup(m, m.DeduplicationID), nil
}

// ByJSON keys by the value that a JSON Pointer ([RFC 6901]) names in a JSON body,
// such as "/order/id". The value is a string, a number or a boolean; a number counts as it is
// written. It is an error if there is no such value.
//
// [RFC 6901]: https://www.rfc-editor.org/rfc/rfc6901
func ByJSON(pointer string) KeyFunc {
	return func(m *reprise.Message) (string, error) {
		decoder := json.NewDecoder(strings.NewReader(m.Body))
		decoder.UseNumber()
		var document any
		if err := decoder.Decode(&document); err != nil {
			return "", fmt.Errorf("decoding the body: %w", err)
		}
		value, err := resolve(document, pointer)
		if err != nil {
			return "", fmt.Errorf("looking up %q in the body: %w", pointer, err)
		}
		switch value := value.(type) {
		case string:
			return value, nil
		case json.Number:
			return value.String(), nil
		case bool:
			return strconv.FormatBool(value), nil
		}
		return "", fmt.Errorf("looking up %q in the body: the value is not a string, number or boolean", pointer)
	}
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// resolve returns the value that pointer names in document.
func resolve(document any, pointer string) (any, error) {
	if pointer == "" {
		return document, nil
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, errors.New("a JSON Pointer is empty or begins with a slash")
	}
	for token := range strings.SplitSeq(rest, "/") {
		name := unescapePointer.Replace(token)
		switch within := document.(type) {
		case map[string]any:
			value, ok := within[name]
			if !ok {
				return nil, fmt.Errorf("there is no %q", name)
			}
			document = value
		case []any:
			i, err := strconv.ParseUint(name, 10, 31)
			if err != nil || int(i) >= len(within) {
				return nil, fmt.Errorf("there is no element %q", name)
			}
			document = within[i]
		default:
			return nil, fmt.Errorf("the parent of %q is not an object or array", name)
		}
	}
	return document, nil
}

// BodyDigest is the SHA-256 of a message's body, for [Config].Digest.
func BodyDigest(m *reprise.Message) []byte {
	sum := sha256.Sum256([]byte(m.Body))
	return sum[:]
}

const maxDigest = 64

// digestOf returns the digest of m's payload for the store. If it is longer than stores accept, its
// SHA-256 is used.
func (g *guard) digestOf(m *reprise.Message) []byte {
	if g.cfg.Digest == nil {
		return nil
	}
	digest := g.cfg.Digest(m)
	if len(digest) <= maxDigest {
		return digest
	}
	sum := sha256.Sum256(digest)
	return sum[:]
}

// keyOf returns the store's key for m.
func (g *guard) keyOf(m *reprise.Message) (string, error) {
	key, err := g.cfg.Key(m)
	switch {
	case err != nil:
		return "", fmt.Errorf("idempotency key: %w", err)
	case key == "":
		return "", errors.New("idempotency key: it is empty: set Config.Key to a function that returns one for every message")
	}
	full := g.cfg.Prefix + key
	if storable(full) {
		return full, nil
	}
	sum := sha256.Sum256([]byte(key))
	return g.cfg.Prefix + "sha256:" + hex.EncodeToString(sum[:]), nil
}

const maxKey = 255

// storable reports whether every store can keep key unchanged, in the text, the indexes and the
// JSON of any database.
func storable(key string) bool {
	if len(key) == 0 || len(key) > maxKey {
		return false
	}
	for i := 0; i < len(key); i++ {
		if key[i] < ' ' || key[i] == 0x7f {
			return false
		}
	}
	return utf8.ValidString(key)
}
