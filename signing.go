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
	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// SigningKey signs what consumers write into messages: the history of a copy for other
// consumers, and the [Story] of a dead letter for operators. Any producer of a queue could
// write both; with a key, only those who have the key can. The zero SigningKey is not valid:
// make one with [NewSigningKey] or [ParseSigningKeys]. Its secret is never printed or logged.
type SigningKey struct {
	id     string
	secret []byte
}

const (
	maxKeyID  = 32
	minSecret = 32 // bytes, as many as HMAC-SHA256 makes
	maxKeys   = 16
)

// NewSigningKey returns a key. Its id is part of every signature, so that keys can be
// rotated: 1 to 32 letters, digits, dots, hyphens and underscores. The secret has at least 32
// bytes, which should be random; it is copied.
func NewSigningKey(id string, secret []byte) (SigningKey, error) {
	switch {
	case !plausibleKeyID(id):
		return SigningKey{}, fmt.Errorf("the id of a signing key is %.40q: use 1 to %d letters, digits, dots, hyphens or underscores", id, maxKeyID)
	case len(secret) < minSecret:
		return SigningKey{}, fmt.Errorf("the secret of signing key %s has %d bytes: use %d or more, random ones", id, len(secret), minSecret)
	}
	return SigningKey{id, slices.Clone(secret)}, nil
}

// ParseSigningKeys reads keys from text: one per line, as ID:SECRET; the first key signs.
// Empty lines and lines that begin with # are ignored. The secret is the text after the first
// colon, without spaces around it: 32 bytes or more, for example what openssl rand -base64 32
// prints. It fails if there is no key. No error contains a secret.
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

// ID returns the key's id, which is part of its signatures.
func (k SigningKey) ID() string { return k.id }

// Format implements [fmt.Formatter]: with every verb it prints only the id.
func (k SigningKey) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "signing key %s", k.id) }

// LogValue implements [slog.LogValuer]: it logs only the id.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue("signing key " + k.id) }

// validateKeys returns an error if there are too many keys, if one was not made by
// NewSigningKey, or if two have the same id.
func validateKeys(keys []SigningKey) error {
	if len(keys) > maxKeys {
		return fmt.Errorf("there are %d signing keys: keep %d at most: the key that signs, and those that have signed messages which are still in the queues", len(keys), maxKeys)
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

// A signature is the last member of the JSON object that it signs, so that the text remains
// a JSON object: ,"signature":"ID:MAC"}. It signs the bytes before it, and the message that
// carries them. It cannot be confused with the inside of a JSON string, where quotes are
// escaped.
const (
	signatureOpens  = `,"signature":"`
	signatureCloses = `"}`
	maxSignature    = history.SignatureRoom
	_               = uint(maxSignature - len(signatureOpens) - maxKeyID - len(":") - 43 - len(signatureCloses)) // not more than the room
)

// signed is what a signature covers beside the text.
type signed struct {
	kind    string // of the text: historyKind or storyKind
	place   string // the queue for which the text is valid: see queueURL.place
	content [sha256.Size]byte
}

const (
	historyKind = "reprise-history-1"
	storyKind   = "reprise-story-1"
)

// sign returns text, a JSON object, with a signature by the first of keys; unchanged if there
// is no key.
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

// verify returns an error unless one of keys has signed text for s.
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
		// Compare the encoded text: base64 decoders ignore line breaks.
		if !hmac.Equal([]byte(code), []byte(s.mac(inner[:at], k))) {
			return errSignature
		}
		return nil
	}
	return errUnknownKey
}

// mac returns the authentication code of s and text under k, 43 characters. Each part of
// variable length but the last is preceded by its length.
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

// IdempotencyKey returns a key for the work that m asks for, the same for a message and all of
// its copies: OriginID, a dot, and 22 characters of the digest of body, group and attributes.
//
// OriginID alone is not enough: without [Config].SigningKeys, any producer of the queue can
// claim another message's OriginID. Such a message has another key, unless its content is
// equal byte by byte; then it asks for the same work. So middleware that changes messages must
// change all copies of a message in the same way.
func (m *Message) IdempotencyKey() string {
	var room [128]byte // OriginID has 128 bytes at most, and 36 on AWS
	digest := m.digest()
	key := append(room[:0], cmp.Or(m.OriginID, m.ID)...) // a message built by hand may have no origin
	key = append(key, '.')
	return string(base64.RawURLEncoding.AppendEncode(key, digest[:16]))
}

// digest returns the digest of the content that m's producer chose.
func (m *Message) digest() [sha256.Size]byte {
	return contentDigest(m.Body, m.GroupID, m.Attributes, HistoryAttribute)
}

// contentDigest returns the SHA-256 of a message's content: its body, its group, and the
// names, types and values of its attributes, without the history and the attribute except.
func contentDigest(body, group string, attributes map[string]types.MessageAttributeValue, except string) [sha256.Size]byte {
	var room [512]byte // most messages have no more than that, and take no allocation
	// Read the body in place: a copy could take a megabyte for each message.
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(body), len(body))) //nolint:gosec // G103: Sum256 only reads
	text := append(room[:0], sum[:]...)
	text = appendSized(text, group)
	var own [sqslimit.Attributes]string
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
