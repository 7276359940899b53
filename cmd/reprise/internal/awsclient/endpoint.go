package awsclient

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Endpoint is where a service is called.
type Endpoint struct {
	// URL is its http or https URL. Empty: AWS's own endpoint of the region.
	URL string
	// SetBy is the setting that names the URL, such as AWS_ENDPOINT_URL. Messages name it, since
	// a user may have forgotten it. Empty: the user has just named it, or no setting does.
	SetBy string
}

// EndpointFromEnvironment returns the endpoint of the first of the variables that is set,
// else fallback. Like the AWS CLI it ignores them if AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is
// true.
func EndpointFromEnvironment(fallback string, variables ...string) Endpoint {
	if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		return Endpoint{URL: fallback}
	}
	for _, name := range variables {
		if value := os.Getenv(name); value != "" {
			return Endpoint{value, name}
		}
	}
	return Endpoint{URL: fallback}
}

// String returns the endpoint for messages: its URL, or AWS, and the setting that names
// it.
func (e Endpoint) String() string {
	text := cmp.Or(e.URL, "AWS")
	if e.SetBy != "" {
		text += " (set by " + e.SetBy + ")"
	}
	return text
}

// check fails if the URL cannot be called.
func (e Endpoint) check() error {
	switch {
	case e.URL == "" || endpointOf(e.URL) != "":
		return nil
	case e.SetBy == "":
		return &SettingsError{fmt.Errorf("endpoint %q is not an http or https URL: pass one like http://127.0.0.1:9324", e.URL)}
	}
	return &SettingsError{fmt.Errorf("endpoint %q is not an http or https URL: set %s to one like http://127.0.0.1:9324, or unset it", e.URL, e.SetBy)}
}

// host returns the URL's host; empty for AWS's own endpoint.
func (e Endpoint) host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "" // check has failed before
	}
	return u.Hostname()
}

// foreign reports whether the service is not AWS's.
func (e Endpoint) foreign() bool { return e.URL != "" && !ofAWS(e.host()) }

// LocalRegion returns the region in which queues of a local server live: the one
// that the environment names, so that the AWS CLI and SDKs started beside this
// program find them without a setting, else us-east-1.
func LocalRegion() string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

// endpointOf returns the scheme and host of text; empty if it is not an http or https URL.
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

// ofAWS reports whether host is one of AWS's.
func ofAWS(host string) bool {
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// regionOf returns the region that a host of AWS names, such as
// sqs.eu-west-1.amazonaws.com; empty if it is not one of SQS or Lambda.
func regionOf(host string) string {
	service, rest, _ := strings.Cut(host, ".")
	if service != "sqs" && service != "lambda" {
		return ""
	}
	region, _, _ := strings.Cut(rest, ".")
	return region
}
