// Package awsclient makes the program's clients of SQS and Lambda. Clients of AWS use the
// AWS settings of the environment; clients of other servers need none.
package awsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// Local returns a client of the server at the URL endpoint. It reads no settings and
// needs no credentials; options may give it some.
func Local(endpoint, region string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       region,
		Credentials:  madeUp,
		BaseEndpoint: &endpoint,
	}, append(options, reprise.Tuned(reprise.Transport{}))...)
}

// New returns a client of SQS at endpoint. AWS's own endpoints get the credentials and,
// if region is empty, the region that the environment and the shared files give, or that
// the endpoint names. Other servers get AWS_ACCESS_KEY_ID if that is set, else made-up
// credentials, and [LocalRegion]. A mistake in the settings is a [*SettingsError].
func New(ctx context.Context, endpoint Endpoint, region string) (*sqs.Client, error) {
	cfg, err := settings(ctx, endpoint, region)
	if err != nil {
		return nil, err
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if endpoint.URL != "" {
			o.BaseEndpoint = &endpoint.URL
		}
	}, reprise.Tuned(reprise.Transport{})), nil
}

// NewLambda returns a client of Lambda, with the settings of [New]. It repeats no request:
// an invoke whose answer is lost may have run. It waits for a reply as long as the context
// permits: functions run for up to 15 minutes.
func NewLambda(ctx context.Context, endpoint Endpoint, region string) (*lambda.Client, error) {
	cfg, err := settings(ctx, endpoint, region)
	if err != nil {
		return nil, err
	}
	cfg.HTTPClient = patient(cfg.HTTPClient.(httpClient))
	return lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		if endpoint.URL != "" {
			o.BaseEndpoint = &endpoint.URL
		}
		o.Retryer = aws.NopRetryer{}
	}), nil
}

// NewDynamoDB returns a client of DynamoDB, with the settings of [New].
func NewDynamoDB(ctx context.Context, endpoint Endpoint) (*dynamodb.Client, error) {
	cfg, err := settings(ctx, endpoint, "")
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if endpoint.URL != "" {
			o.BaseEndpoint = &endpoint.URL
		}
	}), nil
}

// NewS3 returns a client of S3, with the settings of [New]. Servers that are not AWS's are
// called with the bucket in the path: their names for buckets may not resolve.
func NewS3(ctx context.Context, endpoint Endpoint) (*s3.Client, error) {
	cfg, err := settings(ctx, endpoint, "")
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if endpoint.URL != "" {
			o.BaseEndpoint = &endpoint.URL
			o.UsePathStyle = endpoint.foreign()
		}
	}), nil
}

// settings returns the settings of a client of endpoint.
func settings(ctx context.Context, endpoint Endpoint, region string) (aws.Config, error) {
	if err := endpoint.check(); err != nil {
		return aws.Config{}, err
	}
	if endpoint.foreign() {
		region = cmp.Or(region, LocalRegion())
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			return aws.Config{Region: region, Credentials: madeUp, HTTPClient: newHTTPClient(nil)}, nil
		}
	}
	cfg, err := load(ctx, cmp.Or(region, regionOf(endpoint.host())))
	if err != nil {
		return aws.Config{}, err
	}
	if cfg.Region == "" {
		return aws.Config{}, errNoRegion
	}
	return cfg, nil
}

// Found is a client made by the AWS settings, with the settings that were used.
type Found struct {
	Client   *sqs.Client
	Endpoint Endpoint
	Region   string
	// Credentials is the source of the credentials, or "made up" for a server that needs
	// none.
	Credentials string
}

// SettingsError is an AWS setting that is missing or cannot be used.
type SettingsError struct{ Err error }

func (e *SettingsError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SettingsError) Unwrap() error { return e.Err }

var errNoRegion = &SettingsError{errors.New("no AWS region is set: pass --region, set AWS_REGION or the region of the profile, or pass the queue's URL; for a server that is not AWS's pass --endpoint, such as http://127.0.0.1:9324 for reprise serve")}

// Find returns a client of SQS by the settings that the AWS CLI uses: the environment, and
// the profile in the shared files. Arguments that are not empty win. If neither names an
// endpoint, it is that of the queue, if that is a URL, else AWS's own. Servers that are not
// AWS's get made-up credentials and [LocalRegion] if none are set. A mistake in the settings
// is a [*SettingsError].
func Find(ctx context.Context, endpoint, region, queue string) (Found, error) {
	found := Found{Endpoint: Endpoint{URL: endpoint}}
	if err := found.Endpoint.check(); err != nil {
		return Found{}, err
	}
	named := Endpoint{URL: endpointOf(queue)}
	cfg, err := load(ctx, cmp.Or(region, regionOf(named.host())))
	if err != nil {
		return Found{}, err
	}
	if endpoint == "" {
		found.Endpoint = configured(cfg)
	}
	if found.Endpoint.URL == "" {
		found.Endpoint = named
	}
	if err := found.Endpoint.check(); err != nil {
		return Found{}, err
	}
	foreign := found.Endpoint.foreign()
	if foreign && onThisNetwork(found.Endpoint.host()) {
		// Asking for the credentials of an EC2 instance takes seconds on other machines,
		// and this server needs none.
		if cfg, err = load(ctx, cfg.Region, config.WithEC2IMDSClientEnableState(imds.ClientDisabled)); err != nil {
			return Found{}, err
		}
	}
	if cfg.Region == "" && foreign {
		cfg.Region = LocalRegion()
	}
	if cfg.Region == "" {
		return Found{}, errNoRegion
	}
	found.Region = cfg.Region
	retrieved, err := cfg.Credentials.Retrieve(ctx)
	switch {
	case err == nil:
		found.Credentials = retrieved.Source
	case ctx.Err() != nil:
		return Found{}, context.Cause(ctx)
	case foreign:
		cfg.Credentials, found.Credentials = madeUp, "made up"
	default:
		return Found{}, &SettingsError{fmt.Errorf("there are no usable AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run aws sso login, or give the machine a role (%w)", err)}
	}
	found.Client = sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if found.Endpoint.URL != "" {
			o.BaseEndpoint = &found.Endpoint.URL
		}
	}, reprise.Tuned(reprise.Transport{}))
	return found, nil
}

// configured returns the endpoint of the AWS settings. The SDK decides which setting wins and
// does not report it, so it is found by comparison.
func configured(cfg aws.Config) Endpoint {
	e := Endpoint{URL: aws.ToString(sqs.NewFromConfig(cfg).Options().BaseEndpoint)}
	switch e.URL {
	case "":
	case os.Getenv("AWS_ENDPOINT_URL_SQS"):
		e.SetBy = "AWS_ENDPOINT_URL_SQS"
	case os.Getenv("AWS_ENDPOINT_URL"):
		e.SetBy = "AWS_ENDPOINT_URL"
	default:
		e.SetBy = "endpoint_url in the AWS configuration file"
	}
	return e
}

// madeUp are credentials for servers that check none.
var madeUp = credentials.NewStaticCredentialsProvider("local", "local", "")

// load reads the AWS settings.
func load(ctx context.Context, region string, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, append(options, config.WithRegion(region))...)
	if missing, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); ok {
		return aws.Config{}, &SettingsError{fmt.Errorf("the AWS profile %q does not exist: correct AWS_PROFILE, or unset it (aws configure list-profiles names those of ~/.aws/config and ~/.aws/credentials)", missing.Profile)}
	}
	if err != nil {
		return aws.Config{}, &SettingsError{fmt.Errorf("reading the AWS settings: %w", err)}
	}
	cfg.HTTPClient = newHTTPClient(cfg.HTTPClient)
	return cfg, nil
}
