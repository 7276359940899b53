// Package shortkey shortens the keys that messages give themselves, such as those of their
// breakers. A key may be as long as its message, and is kept, logged and shown for longer than
// that. Pure.
package shortkey

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// Max is how many bytes a short key has at most.
const Max = 256

// digest is how many bytes of the SHA-256 of a long key its short one has, in hexadecimal:
// enough that nobody finds two keys with the same one.
const digest = 16

// Of returns key if it has at most [Max] bytes. Otherwise it returns the beginning of key, of
// whole characters, and a digest of all of it, so that keys which differ only behind their
// first 256 bytes stay different. It shares no memory with a long key.
func Of(key string) string {
	if len(key) <= Max {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	end := Max - len("…") - hex.EncodedLen(digest)
	for begin := end; end > begin-utf8.UTFMax && !utf8.RuneStart(key[end]); {
		end-- // a text that is not UTF-8 is cut anywhere
	}
	return key[:end] + "…" + hex.EncodeToString(sum[:digest])
}
