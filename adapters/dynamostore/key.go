package dynamostore

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// PythonKey keys as Powertools for AWS Lambda (Python) does: by the prefix, a number
// sign, and the MD5, in hexadecimal, of the JSON of what event_key_jmespath finds. That must be a
// string, the one that inside returns. The prefix is the value of key_prefix there, or the name of
// the Lambda function, a dot, and the module and name of the decorated function, as in
// "orders.app.lambda_handler".
//
// Set [idempotency.Config].Key to it, and no Prefix. Other languages, hashes and values need a
// function of your own, which returns the id in the table.
func PythonKey(prefix string, inside idempotency.KeyFunc) idempotency.KeyFunc {
	return hashed(prefix, inside, func(value string) string {
		sum := md5.Sum([]byte(quote(value, true)))
		return hex.EncodeToString(sum[:])
	})
}

// TypeScriptKey keys as Powertools for AWS Lambda (TypeScript) does: by the prefix, a
// number sign, and the MD5, in base64, of the JSON of what eventKeyJmesPath finds. That must be a
// string, the one that inside returns. The prefix is the value of keyPrefix there, or the name of
// the Lambda function. For the rest see [PythonKey].
func TypeScriptKey(prefix string, inside idempotency.KeyFunc) idempotency.KeyFunc {
	return hashed(prefix, inside, func(value string) string {
		sum := md5.Sum([]byte(quote(value, false)))
		return base64.StdEncoding.EncodeToString(sum[:])
	})
}

func hashed(prefix string, inside idempotency.KeyFunc, hash func(string) string) idempotency.KeyFunc {
	return func(m *reprise.Message) (string, error) {
		value, err := inside(m)
		if err != nil || value == "" {
			return "", err
		}
		return prefix + "#" + hash(value), nil
	}
}

// quote is the JSON of a string as Python's json.dumps writes it, if ascii, or as
// JavaScript's JSON.stringify does. Both differ from package json in what they escape.
func quote(value string, ascii bool) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range value {
		switch escaped, ok := short[r]; {
		case ok:
			b.WriteString(escaped)
		case r < ' ' || ascii && r > '~' && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case ascii && r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
