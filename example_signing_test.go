package reprise_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// The snippet of docs/retries.md.
func consumeSigned(ctx context.Context, sqsClient *sqs.Client, queueURL string, handler reprise.Handler) error {
	keys, err := reprise.ParseSigningKeys(os.Getenv("REPRISE_SIGNING_KEYS")) // ID:SECRET, one a line
	if err != nil {
		return err
	}
	consumer, err := reprise.New(sqsClient, queueURL, handler, reprise.Config{SigningKeys: keys})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

var _ = consumeSigned

// The first key signs, all are accepted, and no secret is printed.
func ExampleParseSigningKeys() {
	keys, err := reprise.ParseSigningKeys("2026-11:" + strings.Repeat("x", 44) + "\n2026-05:" + strings.Repeat("y", 44))
	fmt.Println(keys, err)
	// Output: [signing key 2026-11 signing key 2026-05] <nil>
}
