package reprise

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// SigningKey signs what consumers write into messages for other consumers and for
// operators: the history of a copy, and the [Story] of a dead letter. Every producer of
// a queue can write both; with a key only those who have it can. The zero
// SigningKey is not valid: make one with [NewSigningKey] or [ParseSigningKeys]. It
// never shows its secret when it is printed or logged.
type SigningKey struct {
	id     string
	secret []byte
}

const (
	maxKeyID  = 32
	minSecret = 32 // bytes, as many as HMAC-SHA256 makes
	maxKeys   = 16
)

// NewSigningKey returns a key. Its id travels with every signature, so that keys can
// be rotated: 1 to 32 letters, digits, dots, hyphens and underscores. The secret has at
// least 32 bytes, which should be random; it is copied.
func NewSigningKey(id string, secret []byte) (SigningKey, error) {
	switch {
	case !plausibleKeyID(id):
		return SigningKey{}, fmt.Errorf("the id of a signing key is %.40q: use 1 to %d letters, digits, dots, hyphens or underscores", id, maxKeyID)
	case len(secret) < minSecret:
		return SigningKey{}, fmt.Errorf("the secret of signing key %s has %d bytes: use %d or more, random ones", id, len(secret), minSecret)
	}
	return SigningKey{id, slices.Clone(secret)}, nil
}

// ParseSigningKeys reads keys from text: one a line, as ID:SECRET, of which the first
// is to sign. Empty lines and those that begin with # count for nothing. The secret is
// the line's text behind the first colon, without the spaces around it: 32 characters or
// more, such as openssl rand -base64 32 prints. It is an error if there is no key. No
// error quotes a secret.
func ParseSigningKeys(text string) ([]SigningKey, error) {
	var keys []SigningKey
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, secret, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d has no colon: write ID:SECRET", n)
		}
		key, err := NewSigningKey(strings.TrimSpace(id), []byte(strings.TrimSpace(secret)))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key: write a line ID:SECRET")
	}
	return keys, validateKeys(keys)
}

// ID is the name by which the key's signatures tell it from others.
func (k SigningKey) ID() string { return k.id }

// Format implements [fmt.Formatter]: whatever the verb, it prints the id alone.
func (k SigningKey) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "signing key %s", k.id) }

// LogValue implements [slog.LogValuer]: the id alone.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue("signing key " + k.id) }

// validateKeys reports keys that NewSigningKey has not made, or that share an id.
func validateKeys(keys []SigningKey) error {
	if len(keys) > maxKeys {
		return fmt.Errorf("there are %d signing keys: keep %d at most, the one that signs and those that have signed what is still on its way", len(keys), maxKeys)
	}
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		switch {
		case k.id == "":
			return errors.New("a signing key is the zero SigningKey: make it with NewSigningKey or ParseSigningKeys")
		case seen[k.id]:
			return fmt.Errorf("two signing keys have the id %s: give each one of its own", k.id)
		}
		seen[k.id] = true
	}
	return nil
}

func plausibleKeyID(s string) bool {
	ok := s != "" && len(s) <= maxKeyID
	for i := range len(s) {
		c := s[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_')
	}
	return ok
}

// A signature is the last member of the JSON object that it signs, so that the object
// stays one: ,"signature":"ID:MAC"}. What stands before it is signed byte by byte, and
// with it the message that carries it. Inside a JSON string the quotes would be escaped.
const (
	signatureOpens  = `,"signature":"`
	signatureCloses = `"}`
	maxSignature    = history.SignatureRoom
	_               = uint(maxSignature - len(signatureOpens) - maxKeyID - len(":") - 43 - len(signatureCloses)) // not more than the room
)

// signed is what a signature is bound to, beside the text.
type signed struct {
	kind    string // of text: a history is no story
	place   string // where the text counts
	content [sha256.Size]byte
}

const (
	historyKind = "reprise-history-1"
	storyKind   = "reprise-story-1"
)

// sign returns text, which is a JSON object, with a signature by the first of keys; as
// it is if there is none.
func (s signed) sign(text string, keys []SigningKey) string {
	open, isObject := strings.CutSuffix(text, "}")
	if len(keys) == 0 || !isObject {
		return text
	}
	return open + signatureOpens + keys[0].id + ":" + s.mac(open, keys[0]) + signatureCloses
}

var (
	errUnsigned   = errors.New("it is not signed")
	errUnknownKey = errors.New("it is signed by a key that is not known here")
	errSignature  = errors.New("its signature is not valid for this message on this queue")
)

// verify returns an error unless text was signed by one of keys for the same s.
func (s signed) verify(text string, keys []SigningKey) error {
	inner, ok := strings.CutSuffix(text, signatureCloses)
	at := strings.LastIndex(inner, signatureOpens)
	if !ok || at < 0 {
		return errUnsigned
	}
	id, code, ok := strings.Cut(inner[at+len(signatureOpens):], ":")
	if !ok {
		return errUnsigned
	}
	for _, k := range keys {
		if k.id != id {
			continue
		}
		// Compared as text: decoders pass over line breaks.
		if !hmac.Equal([]byte(code), []byte(s.mac(inner[:at], k))) {
			return errSignature
		}
		return nil
	}
	return errUnknownKey
}

// mac is the code of s and text under k, 43 characters. Every part whose length varies,
// but the last, begins with its length.
func (s signed) mac(text string, k SigningKey) string {
	h := hmac.New(sha256.New, k.secret)
	head := make([]byte, 0, 256)
	head = appendSized(head, s.kind)
	head = appendSized(head, s.place)
	head = append(head, s.content[:]...)
	h.Write(head)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// IdempotencyKey names the work that m asks for, the same for a message and all of its
// copies: OriginID, a dot, and 22 characters of the digest of body, group and attributes.
//
// OriginID alone can be claimed by whoever may send to the queue, unless the consumer has
// [Config].SigningKeys. A message that claims another's origin has another key, unless it
// also is what that one is, to the byte; and then it asks for the very same work. Middleware that
// changes messages must therefore change copies of one message alike.
func (m *Message) IdempotencyKey() string {
	var room [128]byte // OriginID has 128 bytes at most, and 36 on AWS
	digest := m.digest()
	key := append(room[:0], cmp.Or(m.OriginID, m.ID)...) // a message built by hand may have no origin
	key = append(key, '.')
	return string(base64.RawURLEncoding.AppendEncode(key, digest[:16]))
}

// digest is the digest of what m's sender has chosen.
func (m *Message) digest() [sha256.Size]byte {
	return contentDigest(m.Body, m.GroupID, m.Attributes, HistoryAttribute)
}

// contentDigest is the SHA-256 of a message's content: body, group, and the names, types
// and values of its attributes. The history is no part of it, nor
// is the attribute called except.
func contentDigest(body, group string, attributes map[string]types.MessageAttributeValue, except string) [sha256.Size]byte {
	var room [512]byte // most messages have no more than that, and take no allocation
	// The body is read as it is: a copy of a megabyte for each message would be a lot.
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(body), len(body))) //nolint:gosec // G103: Sum256 only reads
	text := append(room[:0], sum[:]...)
	text = appendSized(text, group)
	var own [maxAttributes]string
	names := own[:0]
	for name := range attributes {
		if name != HistoryAttribute && name != except {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		a := attributes[name]
		text = appendSized(text, name)
		text = appendSized(text, deref(a.DataType))
		text = appendSized(text, deref(a.StringValue))
		text = appendSized(text, string(a.BinaryValue))
	}
	return sha256.Sum256(text)
}

// appendSized appends the length of s, and s.
func appendSized(to []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(s))), s...)
}
