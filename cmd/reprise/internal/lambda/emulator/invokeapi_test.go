package emulator_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// serve serves the Invoke API of l and returns its URL.
func serve(t testing.TB, l *emulator.Lambda) string {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return server.URL
}

func sdk(endpoint string) *lambdaclient.Client {
	return lambdaclient.New(lambdaclient.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("any", "thing", ""),
	})
}

// TestNames: every form of a function's name that the service's model allows, as the
// real client sends it.
func TestNames(t *testing.T) {
	t.Parallel()
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}})
	client := sdk(serve(t, l))
	for _, test := range []struct {
		name, qualifier string
		code, message   string // of the refusal; "": it is invoked
	}{
		{name: "f"},
		{name: "f", qualifier: "$LATEST"},
		{name: "f:$LATEST"},
		{name: "f:$LATEST", qualifier: "$LATEST"},
		{name: "function:f"},
		{name: "000000000000:function:f"},
		{name: "000000000000:function:f:$LATEST"},
		{name: "arn:aws:lambda:us-east-1:000000000000:function:f"},
		{name: "arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST"},
		{name: "g", code: "ResourceNotFoundException", message: "Function not found: arn:aws:lambda:us-east-1:000000000000:function:g"},
		{name: "f:live", code: "ResourceNotFoundException", message: "Function not found: arn:aws:lambda:us-east-1:000000000000:function:f:live"},
		{name: "f", qualifier: "3", code: "ResourceNotFoundException", message: "function:f:3"},
		{name: "f:live", qualifier: "$LATEST", code: "InvalidParameterValueException", message: "The derived qualifier from the function name does not match the specified qualifier."},
		{name: "arn:aws:lambda:eu-west-1:000000000000:function:f", code: "ResourceNotFoundException", message: "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')"},
		{name: "arn:aws:lambda:us-east-1:123456789012:function:f", code: "ResourceNotFoundException", message: "the local account is 000000000000"},
		{name: "arn:aws:sqs:us-east-1:000000000000:f", code: "ValidationException", message: "neither a name nor an ARN"},
	} {
		in := &lambdaclient.InvokeInput{FunctionName: &test.name, Payload: []byte(`{"do":"echo"}`)}
		if test.qualifier != "" {
			in.Qualifier = &test.qualifier
		}
		out, err := client.Invoke(t.Context(), in)
		if test.code == "" {
			if err != nil || string(out.Payload) != `{"do":"echo"}` || out.StatusCode != 200 || aws.ToString(out.ExecutedVersion) != "$LATEST" || out.FunctionError != nil {
				t.Errorf("%s %s: %+v, %v", test.name, test.qualifier, out, err)
			}
			continue
		}
		refused, ok := errors.AsType[smithy.APIError](err)
		if !ok || refused.ErrorCode() != test.code || !strings.Contains(refused.ErrorMessage(), test.message) {
			t.Errorf("%s %s: %v, want %s with %q", test.name, test.qualifier, err, test.code, test.message)
		}
	}
}

// TestInvocationTypes: the statuses and headers of each.
func TestInvocationTypes(t *testing.T) {
	t.Parallel()
	none := self(t, "none")
	none.Concurrency = -1
	l, j := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f"), none}})
	client := sdk(serve(t, l))

	out, err := client.Invoke(t.Context(), &lambdaclient.InvokeInput{
		FunctionName: aws.String("f"), LogType: types.LogTypeTail, Payload: encode(t, order{Do: "print", Text: "hello"}),
		ClientContext: aws.String(base64.StdEncoding.EncodeToString([]byte(`{"custom":{"tenant":"ж"}}`))),
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult))
	if err != nil || !strings.Contains(string(log), "\nhello\nto stderr\nunfinished\nEND RequestId: ") {
		t.Errorf("LogResult = %q, %v", log, err)
	}

	out, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("f"), Payload: encode(t, order{Do: "fail", Text: "no"})})
	if err != nil || out.StatusCode != 200 || aws.ToString(out.FunctionError) != "Unhandled" || string(out.Payload) != `{"errorMessage":"no","errorType":"refusal"}` || out.LogResult != nil {
		t.Errorf("a failure: %+v, %v", out, err)
	}

	out, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{
		FunctionName: aws.String("f"), Payload: encode(t, order{Do: "context"}),
		ClientContext: aws.String(base64.StdEncoding.EncodeToString([]byte(`{"custom":{"tenant":"ж"}}`))),
	})
	if err != nil || !strings.Contains(string(out.Payload), `"client":"ж"`) {
		t.Errorf("the client's context did not arrive: %+v, %v", out, err)
	}

	starts := len(j.texts(emulator.SourcePlatform))
	out, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("f"), InvocationType: types.InvocationTypeDryRun})
	if err != nil || out.StatusCode != 204 || len(out.Payload) != 0 || len(j.texts(emulator.SourcePlatform)) != starts {
		t.Errorf("DryRun: %+v, %v", out, err)
	}

	out, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent, Payload: encode(t, order{Do: "echo"})})
	if err != nil || out.StatusCode != 202 || len(out.Payload) != 0 || out.ExecutedVersion != nil {
		t.Errorf("Event: %+v, %v", out, err)
	}

	_, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)})
	if large, ok := errors.AsType[*types.RequestTooLargeException](err); !ok || large.ErrorMessage() != "1048578 byte payload is too large for the Event invocation type (limit 1048576 bytes)" {
		t.Errorf("an event too large: %v", err)
	}
	_, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("none")})
	if throttle, ok := errors.AsType[*types.TooManyRequestsException](err); !ok || throttle.Reason != types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded || throttle.ErrorMessage() != "Rate Exceeded." {
		t.Errorf("a throttle: %v", err)
	}
	_, err = client.Invoke(t.Context(), &lambdaclient.InvokeInput{FunctionName: aws.String("f"), Payload: []byte(`{`)})
	if _, ok := errors.AsType[*types.InvalidRequestContentException](err); !ok {
		t.Errorf("half of a payload: %v", err)
	}
}

// TestDescribing: what clients ask for before they invoke, and what is refused.
func TestDescribing(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	f.Runtime, f.Handler, f.MemorySize, f.Concurrency = "python3.13", "app.main", 512, 3
	f.Environment = map[string]string{"TABLE": "orders"}
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{self(t, "g"), f}})
	client := sdk(serve(t, l))

	described, err := client.GetFunction(t.Context(), &lambdaclient.GetFunctionInput{FunctionName: aws.String("f")})
	if err != nil {
		t.Fatal(err)
	}
	c := described.Configuration
	got := []any{aws.ToString(c.FunctionName), aws.ToString(c.FunctionArn), string(c.Runtime), aws.ToString(c.Handler), aws.ToInt32(c.Timeout),
		aws.ToInt32(c.MemorySize), string(c.State), string(c.LastUpdateStatus), c.Environment.Variables["TABLE"], aws.ToInt32(described.Concurrency.ReservedConcurrentExecutions)}
	want := []any{"f", "arn:aws:lambda:us-east-1:000000000000:function:f", "python3.13", "app.main", int32(60), int32(512), "Active", "Successful", "orders", int32(3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("GetFunction (-want +got):\n%s", diff)
	}
	configured, err := client.GetFunctionConfiguration(t.Context(), &lambdaclient.GetFunctionConfigurationInput{FunctionName: aws.String("f")})
	if err != nil || aws.ToInt32(configured.MemorySize) != 512 {
		t.Errorf("GetFunctionConfiguration = %+v, %v", configured, err)
	}
	reserved, err := client.GetFunctionConcurrency(t.Context(), &lambdaclient.GetFunctionConcurrencyInput{FunctionName: aws.String("g")})
	if err != nil || reserved.ReservedConcurrentExecutions != nil {
		t.Errorf("GetFunctionConcurrency = %+v, %v", reserved, err)
	}
	list, err := client.ListFunctions(t.Context(), &lambdaclient.ListFunctionsInput{})
	if err != nil || len(list.Functions) != 2 || aws.ToString(list.Functions[0].FunctionName) != "f" || aws.ToString(list.Functions[1].FunctionName) != "g" {
		t.Errorf("ListFunctions = %+v, %v", list, err)
	}
	if _, err := client.GetFunction(t.Context(), &lambdaclient.GetFunctionInput{FunctionName: aws.String("h")}); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		t.Errorf("GetFunction of none = %v", err)
	}
	_, err = client.DeleteFunction(t.Context(), &lambdaclient.DeleteFunctionInput{FunctionName: aws.String("f")})
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "UnsupportedOperationException" || !strings.Contains(refused.ErrorMessage(), "DELETE /2015-03-31/functions/f is not emulated") {
		t.Errorf("DeleteFunction = %v", err)
	}
	_, err = client.InvokeWithResponseStream(t.Context(), &lambdaclient.InvokeWithResponseStreamInput{FunctionName: aws.String("f")})
	if err == nil || !strings.Contains(err.Error(), "InvokeWithResponseStream is not emulated") {
		t.Errorf("InvokeWithResponseStream = %v", err)
	}
}

// TestErrorOnTheWire: SDKs read the type from the header, and the message under
// either spelling.
func TestErrorOnTheWire(t *testing.T) {
	t.Parallel()
	l, _ := open(t, emulator.Config{})
	endpoint := serve(t, l)
	resp, err := http.Post(endpoint+"/2015-03-31/functions/"+url.PathEscape("arn:aws:lambda:us-east-1:000000000000:function:f")+"/invocations", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 404 || resp.Header.Get("X-Amzn-Errortype") != "ResourceNotFoundException" || resp.Header.Get("X-Amzn-Requestid") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	if want := `{"Type":"User","message":"Function not found: arn:aws:lambda:us-east-1:000000000000:function:f"}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
}
