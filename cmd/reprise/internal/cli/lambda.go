package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

func (a *app) lambda() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lambda",
		Short: "Run Lambda functions, queues and mappings of a template on this machine",
		Long: `Run what a SAM or CloudFormation template declares on this machine, and invoke
its functions.`,
		Args: cobra.NoArgs,
		// A command without an action would ignore unknown arguments.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.lambdaUp(), a.invoke(), a.send("reprise lambda"))
	return cmd
}

type invokeFlags struct {
	aws   awsFlags
	event bool
}

func (a *app) invoke() *cobra.Command {
	var f invokeFlags
	cmd := &cobra.Command{
		Use:   "invoke NAME [PAYLOAD | @FILE | -]",
		Short: "Invoke a Lambda function",
		Long: `Invoke a function, by its name or ARN, and print what it returns. The payload
is JSON: an argument, the file whose name follows @, or the standard input for -.
The default is {}.

--event invokes it asynchronously: Lambda retries it by itself, and sends the
result to the function's destinations.

No invoke is repeated. With exit code 3 the function failed, and its error is the
output.

` + aboutLambdaEndpoint,
		Example: `  reprise lambda invoke Flaky '{"id": "o-1"}'
  reprise lambda invoke Flaky --event @event.json
  echo '{}' | reprise lambda invoke Flaky -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: run(func(args []string) error { return a.runInvoke(f, args) }),
	}
	flags := cmd.Flags()
	f.aws.register(flags)
	flags.BoolVar(&f.event, "event", false, "invoke it asynchronously, without waiting for the result")
	return cmd
}

func (a *app) runInvoke(f invokeFlags, args []string) error {
	name := args[0]
	payload, err := a.payload(args[1:])
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	endpoint := f.aws.lambdaEndpoint()
	client, err := awsclient.NewLambda(ctx, endpoint, f.aws.region)
	if err != nil {
		return err
	}
	in := &lambda.InvokeInput{FunctionName: &name, Payload: payload}
	if f.event {
		in.InvocationType = types.InvocationTypeEvent
	}
	out, err := client.Invoke(ctx, in)
	switch {
	case err != nil:
		return invokeError(ctx, err, name, endpoint)
	case f.event:
		id, _ := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
		fmt.Fprintf(a.stdout, "accepted, request %s\n", id)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s\n", bytes.TrimRight(out.Payload, "\n"))
	if out.FunctionError != nil {
		return unsettled(fmt.Errorf("function %s failed (%s)", name, *out.FunctionError))
	}
	return nil
}

// payload returns the payload that the argument after the function's name gives.
func (a *app) payload(args []string) ([]byte, error) {
	text := []byte("{}")
	source := "the payload"
	switch {
	case len(args) == 0:
	case args[0] == "-":
		source = "the standard input"
		var err error
		if text, err = io.ReadAll(a.stdin); err != nil {
			return nil, fmt.Errorf("reading the standard input: %w", err)
		}
	case strings.HasPrefix(args[0], "@"):
		source = args[0][1:]
		var err error
		if text, err = os.ReadFile(source); err != nil {
			return nil, fmt.Errorf("the payload: %w", err)
		}
	default:
		text = []byte(args[0])
	}
	if !json.Valid(text) {
		return nil, usage(fmt.Errorf("%s is not valid JSON: put double quotes around strings", source))
	}
	return text, nil
}

// invokeError explains the most common failures, with a remedy.
func invokeError(ctx context.Context, err error, name string, endpoint awsclient.Endpoint) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Errorf("invoking %q at %s: %s: %s", name, endpoint, apiText(api.ErrorCode()), apiText(api.ErrorMessage()))
	}
	if redirect, ok := errors.AsType[*awsclient.RedirectError](err); ok {
		return fmt.Errorf("invoking %q: %s", name, apiText(redirect.Error()))
	}
	if dial, ok := errors.AsType[*url.Error](err); ok {
		return noAnswer(endpoint, dial.Err, "reprise lambda up TEMPLATE")
	}
	return fmt.Errorf("invoking %q at %s: %w", name, endpoint, err)
}
