// Package awsclient makes the program's clients of SQS and Lambda: for AWS by the
// AWS settings of the environment, for a server on one's own machine without any.
package awsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// LocalRegion returns the region in which queues of a local server live: the one
// that the environment names, so that the AWS CLI and SDKs started beside this
// program find them without a setting, else us-east-1.
func LocalRegion() string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

// Local returns a client of the server at endpoint. It reads no settings and needs
// no credentials. Options may give it some all the same.
func Local(endpoint, region string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       region,
		Credentials:  madeUp,
		BaseEndpoint: &endpoint,
	}, append(options, reprise.Tuned(reprise.Transport{}))...)
}

// New returns a client of the service at endpoint; of AWS itself if endpoint is
// empty. AWS's own endpoints get the credentials and, if region is empty, the
// region that the environment and the shared files give, or that the endpoint
// names; a server of one's own gets AWS_ACCESS_KEY_ID if that is set, else made-up
// credentials, and LocalRegion.
func New(ctx context.Context, endpoint, region string) (*sqs.Client, error) {
	cfg, err := settings(ctx, endpoint, region)
	if err != nil {
		return nil, err
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}, reprise.Tuned(reprise.Transport{})), nil
}

// NewLambda returns a client of Lambda, with the settings of [New]. It tries nothing
// twice: an invoke whose answer is lost may have run.
func NewLambda(ctx context.Context, endpoint, region string) (*lambda.Client, error) {
	cfg, err := settings(ctx, endpoint, region)
	if err != nil {
		return nil, err
	}
	return lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.Retryer = aws.NopRetryer{}
	}), nil
}

// settings are those of every client.
func settings(ctx context.Context, endpoint, region string) (aws.Config, error) {
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return aws.Config{}, fmt.Errorf("endpoint %q is not an http or https URL: pass one like http://127.0.0.1:9324", endpoint)
		}
		if ofAWS(u.Hostname()) {
			region = cmp.Or(region, regionOf(u.Hostname()))
		} else {
			region = cmp.Or(region, LocalRegion())
			if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
				return aws.Config{Region: region, Credentials: madeUp}, nil
			}
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return aws.Config{}, fmt.Errorf("reading the AWS settings: %w", err)
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("no AWS region is set: pass --region, or set AWS_REGION")
	}
	return cfg, nil
}

// Found is a client made by the AWS settings, and what they say.
type Found struct {
	Client *sqs.Client
	// Endpoint is the URL that is called; empty for AWS's own endpoint of the region.
	Endpoint string
	Region   string
	// Credentials names where they come from; made-up ones where nothing asks for any.
	Credentials string
}

// SettingsError says which of the AWS settings is missing or cannot be used.
type SettingsError struct{ Err error }

func (e *SettingsError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SettingsError) Unwrap() error { return e.Err }

// Find returns a client by the settings that the AWS CLI goes by: the environment, and
// the profile in the shared files. Arguments that are not empty win. Where neither names
// an endpoint it is that of the queue, if that is a URL, else AWS's own. Servers that are
// not AWS's get made-up credentials and [LocalRegion] where none are set.
func Find(ctx context.Context, endpoint, region, queue string) (Found, error) {
	if endpoint != "" && endpointOf(endpoint) == "" {
		return Found{}, &SettingsError{fmt.Errorf("endpoint %q is not an http or https URL: pass one like http://127.0.0.1:9324", endpoint)}
	}
	named, host := endpointOf(queue), ""
	if u, err := url.Parse(named); err == nil {
		host = u.Hostname()
	}
	cfg, err := load(ctx, cmp.Or(region, regionOf(host)))
	if err != nil {
		return Found{}, err
	}
	found := Found{Endpoint: endpoint}
	if found.Endpoint == "" {
		found.Endpoint = aws.ToString(sqs.NewFromConfig(cfg).Options().BaseEndpoint) // of the settings
	}
	if found.Endpoint == "" {
		found.Endpoint = named
	}
	u, err := url.Parse(found.Endpoint)
	if err != nil || found.Endpoint != "" && endpointOf(found.Endpoint) == "" {
		return Found{}, &SettingsError{fmt.Errorf("the AWS settings name the endpoint %q, which is not an http or https URL: correct AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL or endpoint_url in the AWS configuration file", found.Endpoint)}
	}
	foreign := found.Endpoint != "" && !ofAWS(u.Hostname())
	if foreign && onThisNetwork(u.Hostname()) {
		// Nobody answers there: to ask for the credentials of an EC2 instance would take
		// seconds on every other machine.
		if cfg, err = load(ctx, cfg.Region, config.WithEC2IMDSClientEnableState(imds.ClientDisabled)); err != nil {
			return Found{}, err
		}
	}
	if cfg.Region == "" && foreign {
		cfg.Region = LocalRegion()
	}
	if cfg.Region == "" {
		return Found{}, &SettingsError{errors.New("no AWS region is set: pass --region, set AWS_REGION or the region of the profile, or pass the queue's URL")}
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
		if found.Endpoint != "" {
			o.BaseEndpoint = &found.Endpoint
		}
	}, reprise.Tuned(reprise.Transport{}))
	return found, nil
}

// madeUp are credentials for servers that look at none.
var madeUp = credentials.NewStaticCredentialsProvider("local", "local", "")

// load reads the AWS settings.
func load(ctx context.Context, region string, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, append(options, config.WithRegion(region))...)
	if err != nil {
		return aws.Config{}, &SettingsError{fmt.Errorf("reading the AWS settings: %w", err)}
	}
	return cfg, nil
}

// endpointOf is the scheme and host of text; empty if it is no http or https URL.
func endpointOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// onThisNetwork reports whether host is this machine, or a name without a domain, such
// as Docker's names of services.
func onThisNetwork(host string) bool {
	if sqsserver.IsLoopbackName(host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err != nil && !strings.Contains(host, ".")
}

// ofAWS says that host is one of AWS's.
func ofAWS(host string) bool {
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// regionOf returns the region that a host of AWS names, such as
// sqs.eu-west-1.amazonaws.com; empty if it is none of SQS or Lambda.
func regionOf(host string) string {
	service, rest, _ := strings.Cut(host, ".")
	if service != "sqs" && service != "lambda" {
		return ""
	}
	region, _, _ := strings.Cut(rest, ".")
	return region
}
