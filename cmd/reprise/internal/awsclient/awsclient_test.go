package awsclient_test

import (
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
			client, err := awsclient.New(t.Context(), test.endpoint, test.region)
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
		if _, err := awsclient.New(t.Context(), endpoint, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q) = %v, want an error with %q", endpoint, err, want)
		}
	}
}

// setEnv leaves no AWS settings but those given.
func setEnv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, env[name])
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
}
