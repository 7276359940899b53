package reprise_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

func ExampleTuned() {
	cfg := aws.Config{Region: "eu-central-1"} // config.LoadDefaultConfig(ctx)
	client := sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{
		Connections:   512,
		SkipChecksums: true,
	}))
	fmt.Println(client.Options().DisableMessageChecksumValidation)
	// Output: true
}
