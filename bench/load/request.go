package load

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// requests are those of one queue, headers and all.
type requests struct {
	host     string
	queueURL string // as JSON has it, with its quotes

	send, receive, poll []byte
}

func newRequests(host, queueURL string) *requests {
	quoted := quote(queueURL)
	r := &requests{host: host, queueURL: quoted}
	entries := ""
	for i := range BatchSize {
		if i > 0 {
			entries += ","
		}
		entries += fmt.Sprintf(`{"Id":"%d","MessageBody":%s}`, i, quote(Body(i)))
	}
	r.send = r.append(nil, "SendMessageBatch", []byte(`{"QueueUrl":`+quoted+`,"Entries":[`+entries+`]}`))
	receive := func(wait int) []byte {
		return r.append(nil, "ReceiveMessage", fmt.Appendf(nil, `{"QueueUrl":%s,"MaxNumberOfMessages":%d,"VisibilityTimeout":600,`+
			`"WaitTimeSeconds":%d,"MessageAttributeNames":["All"],"MessageSystemAttributeNames":["All"]}`, quoted, BatchSize, wait))
	}
	r.receive, r.poll = receive(0), receive(20)
	return r
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // of a string
	}
	return string(quoted)
}

// appendDelete appends the request that deletes messages.
func (r *requests) appendDelete(request []byte, handles []string) []byte {
	body := append(make([]byte, 0, 8<<10), `{"QueueUrl":`...)
	body = append(body, r.queueURL...)
	body = append(body, `,"Entries":[`...)
	for i, handle := range handles {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"Id":"`...)
		body = strconv.AppendInt(body, int64(i), 10)
		body = append(body, `","ReceiptHandle":"`...)
		body = append(body, handle...)
		body = append(body, `"}`...)
	}
	return r.append(request, "DeleteMessageBatch", append(body, "]}"...))
}

// append appends a request with the headers that an SDK sends.
func (r *requests) append(request []byte, action string, body []byte) []byte {
	request = append(request, "POST / HTTP/1.1\r\nHost: "...)
	request = append(request, r.host...)
	request = append(request, "\r\nX-Amz-Target: AmazonSQS."...)
	request = append(request, action...)
	request = append(request, sdkHeaders...)
	request = strconv.AppendInt(request, int64(len(body)), 10)
	request = append(request, "\r\n\r\n"...)
	return append(request, body...)
}

// authorization is a signature that no server here verifies.
const authorization = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sqs/aws4_request, " +
	"SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target, " +
	"Signature=0000000000000000000000000000000000000000000000000000000000000000"

const contentType = "application/x-amz-json-1.0"

const sdkHeaders = "\r\nUser-Agent: reprise-bench\r\nContent-Type: " + contentType +
	"\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: " + authorization + "\r\nContent-Length: "
