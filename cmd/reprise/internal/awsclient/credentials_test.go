package awsclient_test

import (
	"crypto/sha1" //nolint:gosec // G505: the AWS CLI names files by it
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

// credentialService plays the services of AWS that hand out credentials: of containers, of EC2
// instances, of STS and of SSO. It gives them to who identifies itself as AWS demands.
func credentialService(w http.ResponseWriter, r *http.Request) {
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	keys := func(id string) {
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":"secret","Token":"token","Expiration":%q}`, id, expires)
	}
	_ = r.ParseForm()
	switch {
	case r.URL.Path == "/container" && r.Header.Get("Authorization") == "of the pod":
		keys("CONTAINER")

	case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		io.WriteString(w, "session")
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "session" && strings.TrimSuffix(r.URL.Path, "/") == "/latest/meta-data/iam/security-credentials":
		io.WriteString(w, "machine")
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "session" && r.URL.Path == "/latest/meta-data/iam/security-credentials/machine":
		keys("INSTANCE")

	case r.PostForm.Get("Action") == "AssumeRoleWithWebIdentity" && r.PostForm.Get("WebIdentityToken") == "of the account" && r.PostForm.Get("RoleArn") == role:
		assumed(w, "AssumeRoleWithWebIdentity", "WEBIDENTITY", expires)
	case r.PostForm.Get("Action") == "AssumeRole" && r.PostForm.Get("RoleArn") == role && strings.Contains(r.Header.Get("Authorization"), "Credential=BASE/"):
		assumed(w, "AssumeRole", "ASSUMED", expires)

	case r.URL.Path == "/federation/credentials" && r.Header.Get("X-Amz-Sso_bearer_token") == "logged in" && r.URL.Query().Get("role_name") == "dev":
		fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"SSO","secretAccessKey":"secret","sessionToken":"token","expiration":%d}}`, time.Now().Add(time.Hour).UnixMilli())
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"code":"AccessDenied","message":"the role does not trust you"}`)
	}
}

const role = "arn:aws:iam::123456789012:role/orders"

func assumed(w io.Writer, action, id, expires string) {
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, id, expires)
}

// TestFindCredentials: each place where the AWS CLI finds credentials, in its order.
func TestFindCredentials(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(credentialService))
	defer service.Close()
	home := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	session := sha1.Sum([]byte("shop")) //nolint:gosec // G401: as above
	write(".aws/sso/cache/"+hex.EncodeToString(session[:])+".json", fmt.Sprintf(`{"accessToken":"logged in","expiresAt":%q,"startUrl":%q,"region":"eu-west-1"}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), service.URL))
	shared := write(".aws/config", `
[profile sso]
sso_session = shop
sso_account_id = 123456789012
sso_role_name = dev
[sso-session shop]
sso_region = eu-west-1
sso_start_url = `+service.URL+`
[profile base]
aws_access_key_id = BASE
aws_secret_access_key = secret
[profile assumes]
role_arn = `+role+`
source_profile = base
region = eu-west-1
[profile process]
credential_process = echo '{"Version":1,"AccessKeyId":"PROCESS","SecretAccessKey":"secret"}'
`)
	machine := map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.URL, "AWS_EC2_METADATA_DISABLED": "false"}
	container := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": service.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": write("pod", "of the pod")}
	identity := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": write("identity", "of the account"), "AWS_ROLE_ARN": role, "AWS_ENDPOINT_URL_STS": service.URL}
	profile := func(name string) map[string]string {
		return map[string]string{"AWS_PROFILE": name, "AWS_CONFIG_FILE": shared, "AWS_ENDPOINT_URL_SSO": service.URL, "AWS_ENDPOINT_URL_STS": service.URL}
	}
	for _, test := range []struct {
		name     string
		env      []map[string]string
		key, of  string
		unstated bool // no session token
	}{
		{"role of an instance", []map[string]string{machine}, "INSTANCE", "EC2RoleProvider", false},
		{"role of a container before that of its instance", []map[string]string{machine, container}, "CONTAINER", "CredentialsEndpointProvider", false},
		{"token of a container in the environment", []map[string]string{{"AWS_CONTAINER_CREDENTIALS_FULL_URI": service.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of the pod"}}, "CONTAINER", "CredentialsEndpointProvider", false},
		{"web identity before both", []map[string]string{machine, container, identity}, "WEBIDENTITY", "WebIdentityCredentials", false},
		{"SSO cache", []map[string]string{profile("sso")}, "SSO", "SSOProvider", false},
		{"role of a profile", []map[string]string{profile("assumes")}, "ASSUMED", "AssumeRoleProvider", false},
		{"process", []map[string]string{profile("process")}, "PROCESS", "ProcessProvider", true},
		{"environment before all", []map[string]string{machine, container, identity, {"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "secret"}}, "ENVIRONMENT", "EnvConfigCredentials", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := map[string]string{"AWS_EC2_METADATA_DISABLED": "true"} // there may be one
			for _, env := range test.env {
				for name, value := range env {
					all[name] = value
				}
			}
			setEnv(t, all)
			t.Setenv("HOME", home)
			found, err := awsclient.Find(t.Context(), "", "", "https://sqs.eu-west-1.amazonaws.com/123456789012/orders")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := found.Client.Options().Credentials.Retrieve(t.Context())
			if err != nil || keys.AccessKeyID != test.key || (keys.SessionToken == "token") == test.unstated {
				t.Errorf("access key %q with the token %q, %v; want %q", keys.AccessKeyID, keys.SessionToken, err, test.key)
			}
			if !strings.HasPrefix(found.Credentials, test.of) {
				t.Errorf("it says that the credentials are of %q, want %q", found.Credentials, test.of)
			}
		})
	}
}

// TestFindRefusedCredentials: a source that refuses is named, and what could be done.
func TestFindRefusedCredentials(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(credentialService))
	defer service.Close()
	setEnv(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": service.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a guess"})
	_, err := awsclient.Find(t.Context(), "", "", "https://sqs.eu-west-1.amazonaws.com/123456789012/orders")
	if err == nil || !strings.Contains(err.Error(), "no usable AWS credentials") || !strings.Contains(err.Error(), "the role does not trust you") {
		t.Errorf("Find = %v", err)
	}
}
