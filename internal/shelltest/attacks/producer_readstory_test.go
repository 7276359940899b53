package attacks

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// The attacker of this test is a producer that may send to the dead-letter queue, or to a queue
// whose messages SQS moves there, and writes a story of its own.

// FuzzAttackStory: no text of a producer becomes a trusted story, with keys or without.
func FuzzAttackStory(f *testing.F) {
	key, err := reprise.NewSigningKey("k1", []byte(strings.Repeat("s", 32)))
	if err != nil {
		f.Fatal(err)
	}
	sent := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, text := range []string{
		`{"source":"arn:aws:sqs:us-east-1:1:payroll"}`,
		`{"last":"2026-11-23T00:00:00Z","source":"arn:aws:sqs:us-east-1:1:payroll","signature":"k1:` + strings.Repeat("A", 43) + `"}`,
		`{"last":"2026-11-23T00:00:00Z","signature":"k1:"}`, `{"last":"9999-12-31T23:59:59Z"}`, `{"last":"0001-01-01T00:00:00Z"}`,
		`,"signature":"k1:"}`, `null`, `[]`, `{`, ``, "\xff",
	} {
		f.Add(text, "body", "group")
	}
	f.Fuzz(func(t *testing.T, text, body, group string) {
		letter := &types.Message{
			Body: &body,
			Attributes: map[string]string{
				string(types.MessageSystemAttributeNameSentTimestamp):  strconv.FormatInt(sent, 10),
				string(types.MessageSystemAttributeNameMessageGroupId): group,
			},
			MessageAttributes: map[string]types.MessageAttributeValue{
				reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: &text},
			},
		}
		for _, keys := range [][]reprise.SigningKey{nil, {key}} {
			if story, trusted, err := reprise.ReadStory("http://127.0.0.1/1/orders-dead", letter, keys); trusted {
				t.Fatalf("a forged story is trusted: %q, %+v, %v", text, story, err)
			}
		}
	})
}
