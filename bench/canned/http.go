package canned

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SDK returns the real client with q in the place of its HTTP client: the cost of the SDK, without
// a network.
func (q *Queue) SDK(opts ...func(*sqs.Options)) *sqs.Client {
	inPlace := func(o *sqs.Options) { o.HTTPClient = q }
	return Client("https://sqs.us-east-1.amazonaws.com", append([]func(*sqs.Options){inPlace}, opts...)...)
}

// Client returns an SDK client of endpoint.
func Client(endpoint string, opts ...func(*sqs.Options)) *sqs.Client {
	keys := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}, nil
	})
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials:  aws.NewCredentialsCache(keys),
	}, opts...)
}

// Do answers a request of the SDK.
func (q *Queue) Do(r *http.Request) (*http.Response, error) {
	request := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, request); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	reply := q.reply(r.Context(), r.Header.Get("X-Amz-Target"), request)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Status:     "200 OK",
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":     {"application/x-amz-json-1.0"},
			"Date":             {time.Now().UTC().Format(http.TimeFormat)},
			"X-Amzn-Requestid": {"2b3f1c86-70f0-5d5a-a5f6-7d4a0d3e9f11"},
		},
		Body:          io.NopCloser(bytes.NewReader(reply)),
		ContentLength: int64(len(reply)),
		Request:       r,
	}, nil
}

// ServeHTTP answers a request that came over a network.
func (q *Queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := q.reply(r.Context(), r.Header.Get("X-Amz-Target"), request)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = w.Write(reply) // the client may have gone: it will ask again
}

// reply is the answer to a request.
func (q *Queue) reply(ctx context.Context, target string, request []byte) []byte {
	entries := min(maxBatch, bytes.Count(request, []byte(`"ReceiptHandle":`)))
	switch strings.TrimPrefix(target, "AmazonSQS.") {
	case "ReceiveMessage":
		first, n := q.take(ctx, wanted(request))
		const head, tail, most = `{"Messages":[`, `]}`, 2 * bodySize // more than an object's size
		reply := append(make([]byte, 0, len(head)+n*most+len(tail)), head...)
		return append(messages().appendJSON(reply, first, n), tail...)
	case "DeleteMessageBatch":
		q.deleted(entries)
		return confirmation(request)
	case "DeleteMessage":
		q.deleted(1)
	case "ChangeMessageVisibilityBatch":
		q.others.Add(1)
		return confirmation(request)
	case "GetQueueAttributes":
		q.others.Add(1)
		return attributesReply
	case "GetQueueUrl":
		q.others.Add(1)
		return []byte(`{"QueueUrl":"` + URL + `"}`)
	}
	return []byte(`{}`)
}

// wanted is the number of messages that a receive asks for.
func wanted(request []byte) int {
	_, after, found := bytes.Cut(request, []byte(`"MaxNumberOfMessages":`))
	if !found {
		return 1
	}
	digits := after[:len(after)-len(bytes.TrimLeft(after, "0123456789"))]
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		return 1
	}
	return n
}

// confirmation is the reply to a batch request that confirms every entry, by the id in the request.
func confirmation(request []byte) []byte {
	const head, key, tail = `{"Failed":[],"Successful":[`, `{"Id":"`, `]}`
	reply := append(make([]byte, 0, 512), head...)
	for _, entry := range bytes.SplitAfter(request, []byte(key))[1:] {
		id, _, _ := bytes.Cut(entry, []byte(`"`))
		if len(reply) > len(head) {
			reply = append(reply, ',')
		}
		reply = append(reply, key...)
		reply = append(reply, id...)
		reply = append(reply, `"}`...)
	}
	return append(reply, tail...)
}

var attributesReply = func() []byte {
	reply, err := json.Marshal(map[string]any{"Attributes": queueAttributes})
	if err != nil {
		panic(err) // of strings
	}
	return reply
}()
