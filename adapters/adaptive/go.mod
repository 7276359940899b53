module github.com/reprise-sqs/reprise/adapters/adaptive

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2/service/sqs v1.52.9
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/reprise-sqs/reprise v0.0.0
)

require (
	github.com/aws/aws-sdk-go-v2 v1.47.7 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/influxdata/tdigest v0.0.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/net v0.59.0 // indirect
)

replace github.com/reprise-sqs/reprise => ../..
