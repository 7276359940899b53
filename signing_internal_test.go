package reprise

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// content is what a producer chooses of a message.
type content struct {
	kind, place, body, group string
	attributes               map[string]types.MessageAttributeValue
}

func (c content) signed() signed {
	return signed{c.kind, c.place, contentDigest(c.body, c.group, c.attributes, StoryAttribute)}
}

// typed is an attribute of that type, with the text or the bytes as its value.
func typed(kind, text, binary string) types.MessageAttributeValue {
	a := types.MessageAttributeValue{DataType: aws.String(kind)}
	if binary != "" {
		a.BinaryValue = []byte(binary)
	} else {
		a.StringValue = aws.String(text)
	}
	return a
}

// TestSignatureCoversAll: a signature is valid only for the same kind of text, queue, body, group and
// attributes, whatever their order in the map; the attributes that the library itself writes are left out.
func TestSignatureCoversAll(t *testing.T) {
	key, err := NewSigningKey("k", bytes.Repeat([]byte("s"), minSecret))
	if err != nil {
		t.Fatal(err)
	}
	base := content{historyKind, "queue", "body", "group", map[string]types.MessageAttributeValue{
		"a": typed("String", "value", ""), "b": typed("Number", "1", ""), "c": typed("Binary", "", "bytes"), "d": typed("String", "x", ""),
	}}
	const text = `{"attempt":1}`
	with := func(name string, a types.MessageAttributeValue) func(*content) {
		return func(c *content) { c.attributes[name] = a }
	}
	for name, tt := range map[string]struct {
		change func(*content)
		valid  bool
	}{
		"nothing":                       {func(*content) {}, true},
		"the history":                   {with(HistoryAttribute, typed("String", "new", "")), true},
		"the story":                     {with(StoryAttribute, typed("String", "new", "")), true},
		"the kind of text":              {func(c *content) { c.kind = storyKind }, false},
		"the queue":                     {func(c *content) { c.place = "other" }, false},
		"the body":                      {func(c *content) { c.body = "bodY" }, false},
		"the group":                     {func(c *content) { c.group = "other" }, false},
		"a value":                       {with("a", typed("String", "other", "")), false},
		"a type":                        {with("b", typed("Number.int", "1", "")), false},
		"a binary value":                {with("c", typed("Binary", "", "bits")), false},
		"one more attribute":            {with("e", typed("String", "x", "")), false},
		"one fewer":                     {func(c *content) { delete(c.attributes, "d") }, false},
		"the name of one":               {func(c *content) { c.attributes["e"] = c.attributes["d"]; delete(c.attributes, "d") }, false},
		"the values of two are swapped": {func(c *content) { c.attributes["a"], c.attributes["d"] = c.attributes["d"], c.attributes["a"] }, false},
	} {
		for range 20 { // the order in which a map is read is random
			other := base
			other.attributes = maps.Clone(base.attributes)
			tt.change(&other)
			err := other.signed().verify(base.signed().sign(text, []SigningKey{key}), []SigningKey{key})
			if (err == nil) != tt.valid || err != nil && !errors.Is(err, errSignature) {
				t.Fatalf("when %s changes, verifying gives %v", name, err)
			}
		}
	}
}

// TestSignatureIsOfItsText: no other text has the same signature.
func TestSignatureIsOfItsText(t *testing.T) {
	keys := []SigningKey{{"k", bytes.Repeat([]byte("s"), minSecret)}}
	var s signed
	text := s.sign(`{"attempt":1}`, keys)
	if err := s.verify(strings.Replace(text, "1", "2", 1), keys); !errors.Is(err, errSignature) {
		t.Errorf("verifying another text gives %v", err)
	}
}

// TestWhatIsSigned: only a JSON object is signed, and only with a key; a text without a signature is
// unsigned, and one by an unknown key is told apart.
func TestWhatIsSigned(t *testing.T) {
	secret := bytes.Repeat([]byte("s"), minSecret)
	key, other := SigningKey{"k", secret}, SigningKey{"other", secret}
	var s signed
	for text, keys := range map[string][]SigningKey{`{"a":1}`: nil, `"text"`: {key}, ``: {key}} {
		if got := s.sign(text, keys); got != text {
			t.Errorf("%q is signed with %d keys: %q", text, len(keys), got)
		}
	}
	for text, want := range map[string]error{
		``:                                     errUnsigned,
		`{"a":1}`:                              errUnsigned,
		`"}`:                                   errUnsigned,
		`{"signature":"k:MAC"}`:                errUnsigned,
		`{"a":1,"signature":"k"}`:              errUnsigned,
		`{"a":1,"signature":"k:MAC"`:           errUnsigned,
		`{"a":1,"signature":"k:MAC"}`:          errSignature,
		`,"signature":"k:MAC"}`:                errSignature,
		s.sign(`{"a":1}`, []SigningKey{other}): errUnknownKey,
		s.sign(`{"a":1}`, []SigningKey{key}):   nil,
	} {
		if got := s.verify(text, []SigningKey{key}); !errors.Is(got, want) {
			t.Errorf("verifying %q gives %v, want %v", text, got, want)
		}
	}
}

// TestSigningKeyIDs: an id has 1 to 32 letters, digits, dots, hyphens and underscores.
func TestSigningKeyIDs(t *testing.T) {
	secret := bytes.Repeat([]byte("s"), minSecret)
	for _, id := range []string{"a", "z", "A", "Z", "0", "9", ".", "-", "_", strings.Repeat("x", maxKeyID)} {
		if _, err := NewSigningKey(id, secret); err != nil {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	for _, id := range []string{"", "`", "{", "@", "[", "/", ":", " ", "ä", "a\n", strings.Repeat("x", maxKeyID+1)} {
		if _, err := NewSigningKey(id, secret); err == nil {
			t.Errorf("the id %q is accepted", id)
		}
	}
	if _, err := NewSigningKey("a", secret[1:]); err == nil {
		t.Error("a secret of too few bytes is accepted")
	}
}

// TestSigningKeysOfText: errors name the line, lines without a key are skipped, and there are at most sixteen
// keys.
func TestSigningKeysOfText(t *testing.T) {
	secret := strings.Repeat("s", minSecret)
	lines := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf(" k%d : %s \n\n# a comment\n", i, secret)
		}
		return text
	}
	for text, want := range map[string]struct {
		keys    int
		problem string
	}{
		lines(1):                  {1, ""},
		lines(maxKeys):            {maxKeys, ""},
		lines(maxKeys + 1):        {0, "there are 17 signing keys"},
		"# none\n":                {0, "there is no key"},
		lines(1) + "no colon\n":   {0, "line 4 has no colon"},
		"\n\nk:short\n":           {0, "line 3: the secret of signing key k has 5 bytes"},
		lines(1) + "k0:" + secret: {0, "two signing keys have the id k0"},
	} {
		keys, err := ParseSigningKeys(text)
		if want.problem == "" && (err != nil || len(keys) != want.keys) {
			t.Errorf("%.60q has %d keys, and %v; want %d", text, len(keys), err, want.keys)
		}
		if want.problem != "" && (err == nil || !strings.Contains(err.Error(), want.problem)) {
			t.Errorf("the error of %.60q is %v, want %q", text, err, want.problem)
		}
	}
}

// TestIdempotencyKeyIsFixed: stores keep such keys, so that they must not change from version to version.
func TestIdempotencyKeyIsFixed(t *testing.T) {
	m := &Message{ID: "id", OriginID: "origin", Body: "body", GroupID: "group", Attributes: map[string]types.MessageAttributeValue{
		"b": typed("Binary", "", "bytes"), "a": typed("String", "value", ""), HistoryAttribute: typed("String", "ignored", ""),
	}}
	for _, tt := range []struct{ origin, want string }{{"origin", "origin.jjwJNSvpEO0sACEh8-alww"}, {"", "id.jjwJNSvpEO0sACEh8-alww"}} {
		if m.OriginID = tt.origin; m.IdempotencyKey() != tt.want {
			t.Errorf("the key of a message of %q is %q, want %q", tt.origin, m.IdempotencyKey(), tt.want)
		}
	}
}
