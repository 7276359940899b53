// Package awsclient makes the program's clients of SQS and Lambda: for AWS by the
// AWS settings of the environment, for a server on one's own machine without any.
package awsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
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
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
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
				return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}, nil
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
