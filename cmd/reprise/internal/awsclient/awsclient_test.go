package awsclient_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

// TestNew: which region and which credentials a client gets.
func TestNew(t *testing.T) {
	for _, test := range []struct {
		name, endpoint, region string
		env                    map[string]string
		wantRegion, wantKey    string
	}{
		{name: "local server, no settings", endpoint: "http://127.0.0.1:9324", wantRegion: "us-east-1", wantKey: "local"},
		{name: "other server, no settings", endpoint: "http://sqs.internal:9324", wantRegion: "us-east-1", wantKey: "local"},
		{name: "local server, region set", endpoint: "http://127.0.0.1:9324", env: map[string]string{"AWS_REGION": "eu-west-1"}, wantRegion: "eu-west-1", wantKey: "local"},
		{name: "local server, region given", endpoint: "http://127.0.0.1:9324", region: "eu-north-1", env: map[string]string{"AWS_REGION": "eu-west-1"}, wantRegion: "eu-north-1", wantKey: "local"},
		{name: "local server, credentials set", endpoint: "http://127.0.0.1:9324", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, wantRegion: "eu-west-1", wantKey: "AKID"},
		{name: "local server, credentials and no region", endpoint: "http://127.0.0.1:9324", env: map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, wantRegion: "us-east-1", wantKey: "AKID"},
		{name: "AWS, region in the host", endpoint: "https://sqs.ap-south-1.amazonaws.com", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, wantRegion: "ap-south-1", wantKey: "AKID"},
		{name: "AWS in China", endpoint: "https://sqs.cn-north-1.amazonaws.com.cn", env: map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, wantRegion: "cn-north-1", wantKey: "AKID"},
		{name: "AWS, no endpoint", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, wantRegion: "eu-west-1", wantKey: "AKID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			setEnv(t, test.env)
			client, err := awsclient.New(t.Context(), awsclient.Endpoint{URL: test.endpoint}, test.region)
			if err != nil {
				t.Fatal(err)
			}
			o := client.Options()
			if o.Region != test.wantRegion {
				t.Errorf("region %q, want %q", o.Region, test.wantRegion)
			}
			if c, err := o.Credentials.Retrieve(t.Context()); err != nil || c.AccessKeyID != test.wantKey {
				t.Errorf("access key %q, %v; want %q", c.AccessKeyID, err, test.wantKey)
			}
			if got := o.BaseEndpoint; (got == nil) != (test.endpoint == "") || got != nil && *got != test.endpoint {
				t.Errorf("endpoint %v, want %q", got, test.endpoint)
			}
		})
	}
}

func TestNewBad(t *testing.T) {
	setEnv(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"})
	for endpoint, want := range map[string]string{
		"127.0.0.1:9324":    "http://127.0.0.1:9324",
		"ftp://example.com": "not an http or https URL",
		"":                  "AWS_REGION",
	} {
		if _, err := awsclient.New(t.Context(), awsclient.Endpoint{URL: endpoint}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q) = %v, want an error with %q", endpoint, err, want)
		}
	}
}

// TestFind: which endpoint, region and credentials the settings give, by which of them
// wins.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "config")
	if err := os.WriteFile(shared, []byte("[default]\nregion = eu-south-1\n[profile own]\nregion = ap-east-1\nendpoint_url = http://127.0.0.1:4566\naws_access_key_id = OWN\naws_secret_access_key = s\n[profile bad]\nregion = ap-east-1\nendpoint_url = localhost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := func(more ...string) map[string]string {
		env := map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	const aws, local = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "http://127.0.0.1:9324/000000000000/orders"
	for _, test := range []struct {
		name, endpoint, region, queue string
		env                           map[string]string
		wantEndpoint, wantRegion      string
		wantKey                       string // empty: an error with want
		want                          string
	}{
		{name: "name and region", queue: "orders", env: key("AWS_REGION", "eu-west-1"), wantRegion: "eu-west-1", wantKey: "AKID"},
		{name: "region of the file", queue: "orders", env: key("AWS_CONFIG_FILE", shared), wantRegion: "eu-south-1", wantKey: "AKID"},
		{name: "flag before the environment", queue: "orders", region: "eu-north-1", env: key("AWS_REGION", "eu-west-1"), wantRegion: "eu-north-1", wantKey: "AKID"},
		{name: "URL names the region", queue: aws, env: key("AWS_REGION", "us-west-2"), wantEndpoint: "https://sqs.eu-west-1.amazonaws.com", wantRegion: "eu-west-1", wantKey: "AKID"},
		{name: "URL of a local server", queue: local, wantEndpoint: "http://127.0.0.1:9324", wantRegion: "us-east-1", wantKey: "local"},
		{name: "local server, credentials set", queue: local, env: key(), wantEndpoint: "http://127.0.0.1:9324", wantRegion: "us-east-1", wantKey: "AKID"},
		{name: "environment names the endpoint", queue: "orders", env: map[string]string{"AWS_ENDPOINT_URL_SQS": "http://reprise:9324", "AWS_ENDPOINT_URL": "http://other"}, wantEndpoint: "http://reprise:9324", wantRegion: "us-east-1", wantKey: "local"},
		{name: "of all services", queue: "orders", env: map[string]string{"AWS_ENDPOINT_URL": "http://localhost:4566", "AWS_REGION": "eu-west-1"}, wantEndpoint: "http://localhost:4566", wantRegion: "eu-west-1", wantKey: "local"},
		{name: "the endpoint that is set before the URL's", queue: local, env: map[string]string{"AWS_ENDPOINT_URL_SQS": "http://reprise:9324"}, wantEndpoint: "http://reprise:9324", wantRegion: "us-east-1", wantKey: "local"},
		{name: "flag before all", endpoint: "http://127.0.0.1:1", queue: local, env: map[string]string{"AWS_ENDPOINT_URL_SQS": "http://reprise:9324"}, wantEndpoint: "http://127.0.0.1:1", wantRegion: "us-east-1", wantKey: "local"},
		{name: "profile", queue: "orders", env: map[string]string{"AWS_CONFIG_FILE": shared, "AWS_PROFILE": "own"}, wantEndpoint: "http://127.0.0.1:4566", wantRegion: "ap-east-1", wantKey: "OWN"},
		{name: "settings ignored", queue: "orders", env: key("AWS_ENDPOINT_URL", "http://localhost:4566", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", "AWS_REGION", "eu-west-1"), wantRegion: "eu-west-1", wantKey: "AKID"},
		{name: "no region", queue: "orders", env: key(), want: "no AWS region is set"},
		{name: "no credentials", queue: aws, want: "no usable AWS credentials"},
		{name: "no profile", queue: aws, env: map[string]string{"AWS_PROFILE": "nosuch"}, want: "correct AWS_PROFILE"},
		{name: "no URL", queue: "orders", endpoint: "localhost:9324", want: "not an http or https URL"},
		{name: "no URL in the environment", queue: "orders", env: key("AWS_ENDPOINT_URL", "localhost:9324"), want: "AWS_ENDPOINT_URL to one like"},
		{name: "no URL in the profile", queue: "orders", env: map[string]string{"AWS_CONFIG_FILE": shared, "AWS_PROFILE": "bad"}, want: "endpoint_url in the AWS configuration file to one like"},
	} {
		t.Run(test.name, func(t *testing.T) {
			setEnv(t, test.env)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true") // there may be one
			found, err := awsclient.Find(t.Context(), test.endpoint, test.region, test.queue)
			if test.wantKey == "" {
				if _, ok := errors.AsType[*awsclient.SettingsError](err); !ok || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("Find = %v, want a SettingsError with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := found.Client.Options()
			if found.Endpoint.URL != test.wantEndpoint || found.Region != test.wantRegion || o.Region != test.wantRegion {
				t.Errorf("endpoint %q, region %q; want %q, %q", found.Endpoint, found.Region, test.wantEndpoint, test.wantRegion)
			}
			if got := o.BaseEndpoint; (got == nil) != (test.wantEndpoint == "") || got != nil && *got != test.wantEndpoint {
				t.Errorf("the client calls %v, want %q", got, test.wantEndpoint)
			}
			if c, err := o.Credentials.Retrieve(t.Context()); err != nil || c.AccessKeyID != test.wantKey {
				t.Errorf("access key %q, %v; want %q", c.AccessKeyID, err, test.wantKey)
			}
		})
	}
}

func TestEndpointFromEnvironment(t *testing.T) {
	const own, sqs, all = "http://127.0.0.1:9324", "http://sqs:1", "http://all:2"
	for _, test := range []struct {
		name string
		env  map[string]string
		want awsclient.Endpoint
	}{
		{"nothing is set", nil, awsclient.Endpoint{URL: own}},
		{"of all services", map[string]string{"AWS_ENDPOINT_URL": all}, awsclient.Endpoint{URL: all, SetBy: "AWS_ENDPOINT_URL"}},
		{"of SQS first", map[string]string{"AWS_ENDPOINT_URL": all, "AWS_ENDPOINT_URL_SQS": sqs}, awsclient.Endpoint{URL: sqs, SetBy: "AWS_ENDPOINT_URL_SQS"}},
		{"ignored", map[string]string{"AWS_ENDPOINT_URL": all, "AWS_ENDPOINT_URL_SQS": sqs, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "True"}, awsclient.Endpoint{URL: own}},
		{"not ignored", map[string]string{"AWS_ENDPOINT_URL": all, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false"}, awsclient.Endpoint{URL: all, SetBy: "AWS_ENDPOINT_URL"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			setEnv(t, test.env)
			if got := awsclient.EndpointFromEnvironment(own, "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"); got != test.want {
				t.Errorf("endpoint %v, want %v", got, test.want)
			}
		})
	}
}

// setEnv leaves no AWS settings but those given.
func setEnv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // which restores it
		}
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	for name, value := range env {
		t.Setenv(name, value)
	}
}
