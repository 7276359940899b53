package cli

import (
	"cmp"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

// awsFlags are the flags of every command that calls SQS or Lambda.
type awsFlags struct{ endpoint, region string }

func (f *awsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.endpoint, "endpoint", "", "`URL` of the service (default: see above)")
	flags.StringVar(&f.region, "region", "", "AWS region (default that of the queue's URL or the endpoint, then that of the AWS settings; us-east-1 for servers that are not AWS's)")
}

// aboutEndpoint describes the endpoint of commands that call a queue.
const aboutEndpoint = `The endpoint is --endpoint, else that of the queue's URL, AWS_ENDPOINT_URL_SQS,
AWS_ENDPOINT_URL, or a reprise server on this machine (http://` + defaultAddr + `).
` + aboutSettings

// aboutLambdaEndpoint describes the endpoint of commands that call a function.
const aboutLambdaEndpoint = `The endpoint is --endpoint, else AWS_ENDPOINT_URL_LAMBDA, AWS_ENDPOINT_URL, or
what reprise lambda up runs on this machine (http://` + defaultAddr + `).
` + aboutSettings

// aboutSettings describes the other settings of awsFlags.
const aboutSettings = `For AWS's own endpoints, region and credentials are found as the AWS CLI finds
them: in AWS_REGION, AWS_PROFILE and the rest of the environment, in
~/.aws/config and ~/.aws/credentials, and in the roles of containers and
machines. Other servers need neither. AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true
turns the endpoints of variables and files off. Redirects are not followed.`

// queueEndpoint returns the endpoint for a queue that is given by URL or name.
func (f *awsFlags) queueEndpoint(queue string) awsclient.Endpoint {
	if f.endpoint != "" {
		return awsclient.Endpoint{URL: f.endpoint}
	}
	if u, err := url.Parse(queue); err == nil && u.Host != "" {
		return awsclient.Endpoint{URL: u.Scheme + "://" + u.Host}
	}
	return awsclient.EndpointFromEnvironment("http://"+defaultAddr, "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL")
}

// lambdaEndpoint returns the endpoint for functions.
func (f *awsFlags) lambdaEndpoint() awsclient.Endpoint {
	if f.endpoint != "" {
		return awsclient.Endpoint{URL: f.endpoint}
	}
	return awsclient.EndpointFromEnvironment("http://"+defaultAddr, "AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")
}

// serverRegion is the flag --region of every command that runs a server.
type serverRegion string

func (r *serverRegion) register(flags *pflag.FlagSet) {
	flags.StringVar((*string)(r), "region", "", "region of the server's queues and functions (default AWS_REGION, AWS_DEFAULT_REGION, us-east-1)")
}

// name returns the region.
func (r serverRegion) name() string { return cmp.Or(string(r), awsclient.LocalRegion()) }
