//go:build unix

package main_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// TestDashboardLambda: an event that failed shows with its error and the time of its retry, and the function's log
// grows, while somebody looks.
func TestDashboardLambda(t *testing.T) {
	t.Parallel()
	chromium(t)
	template := lambdaFolder(t, `Transform: AWS::Serverless-2016-10-31
Resources:
  Charge:
    Type: AWS::Serverless::Function
    Properties: {FunctionName: charge, CodeUri: python, Handler: app.handler, Runtime: python$PYTHON}
`)
	p := startIn(t, lambdaEnvironment(t), "lambda", "up", template, "--addr", "127.0.0.1:0")
	endpoint := p.await("Lambda API    ")
	b := newTab(t, endpoint)
	b.open("/ui/lambda")
	b.awaitText("charge")
	b.awaitText("None. Lambda invokes a function again")
	client := lambda.New(lambda.Options{BaseEndpoint: &endpoint, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}})
	if _, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("charge"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"fail": true}`)}); err != nil {
		t.Fatal(err)
	}
	b.awaitText("ValueError: as asked")
	b.awaitText("1 time")
	b.awaitText("the asynchronous event is invoked again in 1m0s")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.look(width, scheme)
			b.checkLook(scheme)
		}
	}
	b.open("/ui/lambda?function=charge")
	b.awaitText("Log of charge")
	b.checkWeight("Lambda", "/ui/lambda?function=charge")
}
