package reprise

// The attackers are producers that may write any text into the attribute of a history or a story,
// and may have read signed ones, but have no key.

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// stringAttributes are attributes of those names and values, in turn.
func stringAttributes(pairs ...string) map[string]types.MessageAttributeValue {
	attributes := make(map[string]types.MessageAttributeValue)
	for i := 0; i < len(pairs); i += 2 {
		attributes[pairs[i]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &pairs[i+1]}
	}
	return attributes
}

// FuzzAttackSignature: a signature is valid only for the signed text, place, kind and content; and
// the signed text is the original JSON object with one more member.
func FuzzAttackSignature(f *testing.F) {
	key, err := NewSigningKey("k1", []byte(strings.Repeat("x", 32)))
	if err != nil {
		f.Fatal(err)
	}
	keys := []SigningKey{key}
	bound := signed{kind: historyKind, place: "1/q", content: contentDigest("body", "", nil, HistoryAttribute)}
	genuine := bound.sign(`{"queue":"q","attempt":1}`, keys)
	if err := bound.verify(genuine, keys); err != nil {
		f.Fatalf("%s: %v", genuine, err)
	}
	for _, text := range []string{genuine, "", "{}", `","signature":"k1:"}`, genuine + " ", " " + genuine, genuine[:len(genuine)-3] + genuine[len(genuine)-2:], strings.Replace(genuine, "1", "2", 1), strings.TrimRight(genuine, "}"), genuine[:len(genuine)-2] + "=" + `"}`, genuine[:len(genuine)-2] + "\n" + `"}`} {
		f.Add(text, "1/q")
	}
	f.Add(genuine, "1/r")
	f.Fuzz(func(t *testing.T, text, place string) {
		other := bound
		other.place = place
		if other.verify(text, keys) == nil && (text != genuine || place != "1/q") {
			t.Errorf("%q is taken for signed at %q", text, place)
		}
		other = bound
		other.kind = storyKind
		if other.verify(text, keys) == nil {
			t.Errorf("%q is taken for a story", text)
		}
		if again := other.sign(text, keys); again != text && other.verify(again, keys) != nil {
			t.Errorf("%q is signed, and its signature is not valid", again)
		}
	})
}

// TestAttackDigestIsUnambiguous: content that differs in where one part of it ends and the
// next begins has another digest.
func TestAttackDigestIsUnambiguous(t *testing.T) {
	digests := make(map[[32]byte]string)
	for name, m := range map[string]*Message{
		"a body":                     {Body: "ab"},
		"a body and a group":         {Body: "a", GroupID: "b"},
		"a group":                    {GroupID: "ab"},
		"an attribute":               {Body: "a", Attributes: stringAttributes("b", "c")},
		"its value in its name":      {Body: "a", Attributes: stringAttributes("bc", "")},
		"its name in the group":      {Body: "a", GroupID: "b", Attributes: stringAttributes("", "c")},
		"two attributes":             {Body: "a", Attributes: stringAttributes("b", "c", "d", "e")},
		"two, of other values":       {Body: "a", Attributes: stringAttributes("b", "e", "d", "c")},
		"one that looks like two":    {Body: "a", Attributes: stringAttributes("b", "cde")},
		"a body that holds the rest": {Body: "a\x00\x00\x00\x00\x00\x00\x00\x01b"},
	} {
		if other, ok := digests[m.digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		digests[m.digest()] = name
	}
	with, without := &Message{Attributes: stringAttributes(HistoryAttribute, "x", "a", "b")}, &Message{Attributes: stringAttributes("a", "b")}
	if with.digest() != without.digest() {
		t.Error("the history is part of the digest")
	}
}

// BenchmarkSigning measures the additional cost of a copy with keys, and of its first receive.
func BenchmarkSigning(b *testing.B) {
	key, err := NewSigningKey("k1", []byte(strings.Repeat("x", 32)))
	if err != nil {
		b.Fatal(err)
	}
	keys := []SigningKey{key}
	m := &Message{Body: strings.Repeat("x", 1<<10), Attributes: stringAttributes("tenant", "a", "kind", "order")}
	text := (&history.History{Queue: "orders", Origin: "5fea7756-0ea4-451a-a703-a558b933e274", Attempt: 3, Sent: 1, First: 2, SentAt: 3}).String()
	bound := func() signed { return signed{kind: historyKind, place: "123456789012/orders", content: m.digest()} }
	text = bound().sign(text, keys)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			bound().sign(text, keys)
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if err := bound().verify(text, keys); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("key of the work", func(b *testing.B) {
		for b.Loop() {
			m.IdempotencyKey()
		}
	})
}
