package sqsserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A transport is a way to call a server.
type transport interface {
	// call returns the reply's JSON, or the code and the message of the error that
	// SQS reports; err is what SQS never answers.
	call(ctx context.Context, action string, input []byte) (reply []byte, code, message string, err error)
}

func openTransport(name string, s *sqsserver.Server) transport {
	if name == "typed" {
		return typedTransport{s}
	}
	return openHTTPTransport(name, "http://sqs.localhost", inProcess{s})
}

func openHTTPTransport(name, url string, client sqs.HTTPClient) transport {
	switch name {
	case "json":
		return jsonTransport{client, url}
	case "query":
		return queryTransport{client, url}
	case "query json":
		return queryJSONTransport{client, url}
	}
	return sdkTransport{sdkClient(url, client)}
}

type typedTransport struct{ server *sqsserver.Server }

func (d typedTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	method := reflect.ValueOf(d.server).MethodByName(action)
	in := reflect.New(method.Type().In(1).Elem())
	err := sqsserver.DecodeJSON(input, in.Interface())
	var results []reflect.Value
	if err == nil {
		results = method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
		err, _ = results[len(results)-1].Interface().(error)
	}
	var e *sqsserver.Error
	switch {
	case errors.As(err, &e):
		return nil, e.Code, e.Message, nil
	case err != nil || len(results) == 1:
		return nil, "", "", err
	}
	return sqsserver.AppendJSON(nil, results[0].Interface()), "", "", nil
}

type jsonTransport struct {
	client sqs.HTTPClient
	url    string
}

func (d jsonTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	status, header, reply, err := post(ctx, d.client, d.url, input, http.Header{
		"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS." + action},
	})
	if err != nil || status == http.StatusOK {
		return reply, "", "", err
	}
	var problem struct{ Message string }
	code, _, found := strings.Cut(header.Get("X-Amzn-Query-Error"), ";")
	if json.Unmarshal(reply, &problem) != nil || !found {
		return nil, "", "", fmt.Errorf("answers with status %d and no reply of SQS", status)
	}
	return nil, code, problem.Message, nil
}

func post(ctx context.Context, client sqs.HTTPClient, url string, body []byte, header http.Header) (status int, _ http.Header, reply []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header = header
	w, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer w.Body.Close()
	reply, err = io.ReadAll(w.Body)
	return w.StatusCode, w.Header, reply, err
}

type sdkTransport struct{ client *sqs.Client }

func (d sdkTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	method := reflect.ValueOf(d.client).MethodByName(action)
	in := reflect.New(method.Type().In(1).Elem())
	if err := json.Unmarshal(input, in.Interface()); err != nil {
		return nil, "", "", fmt.Errorf("not an input of the SDK: %w", err)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, _ := results[1].Interface().(error); err != nil {
		var e smithy.APIError
		if errors.As(err, &e) {
			return nil, e.ErrorCode(), e.ErrorMessage(), nil
		}
		return nil, "", "", err
	}
	reply, err := json.Marshal(results[0].Interface())
	if action == "ListDeadLetterSourceQueues" { // AWS spells this one member as no other
		reply = bytes.Replace(reply, []byte(`"QueueUrls"`), []byte(`"queueUrls"`), 1)
	}
	return reply, "", "", err
}

func sdkClient(url string, client sqs.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: client,
	})
}

// inProcess carries requests to a handler without a network.
type inProcess struct{ handler http.Handler }

func (p inProcess) Do(r *http.Request) (reply *http.Response, err error) {
	defer func() {
		if problem := recover(); problem == http.ErrAbortHandler {
			err = errors.New("the connection was cut")
		} else if problem != nil {
			panic(problem)
		}
	}()
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}
