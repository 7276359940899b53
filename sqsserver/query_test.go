package sqsserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func formRequest(method, path, parameters string) *http.Request {
	if method == http.MethodGet {
		return httptest.NewRequest(method, "http://localhost:9324"+path+"?"+parameters, nil)
	}
	r := httptest.NewRequest(method, "http://localhost:9324"+path, strings.NewReader(parameters))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

const (
	xmlStart = `<\?xml version="1.0"\?>`
	xmlSpace = ` xmlns="http://queue.amazonaws.com/doc/2012-11-05/"`
	xmlID    = `<RequestId>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}</RequestId>`
)

func xmlReply(action, result string) string {
	return xmlStart + "<" + action + "Response" + xmlSpace + ">" + result + "<ResponseMetadata>" + xmlID + "</ResponseMetadata></" + action + "Response>"
}

func xmlError(fault, code, message string) string {
	return xmlStart + "<ErrorResponse" + xmlSpace + "><Error><Type>" + fault + "</Type><Code>" + regexp.QuoteMeta(code) + "</Code><Message>" +
		message + "</Message><Detail/></Error>" + xmlID + "</ErrorResponse>"
}

// Replies of the Query protocol to the byte, but for ids, on a server that has the
// queues q and other, in which there is a message.
func TestQueryReplies(t *testing.T) {
	const (
		md5   = "[0-9a-f]{32}"
		queue = "/000000000000/q"
	)
	tests := []struct {
		name                     string
		method, path, parameters string
		status                   int
		body                     string // a pattern
	}{
		{"an action by POST to the root", "POST", "/", "Action=GetQueueUrl&QueueName=q&Version=2012-11-05", 200,
			xmlReply("GetQueueUrl", "<GetQueueUrlResult><QueueUrl>http://localhost:9324/000000000000/q</QueueUrl></GetQueueUrlResult>")},
		{"an action by GET to a queue", "GET", queue, "Action=SendMessage&MessageBody=hello+w%6Frld", 200,
			xmlReply("SendMessage", "<SendMessageResult><MessageId>.{36}</MessageId><MD5OfMessageBody>5eb63bbbe01eeed093cb22bb8f5acdc3</MD5OfMessageBody></SendMessageResult>")},
		{"an action by POST to a queue, with a slash at its end", "POST", queue + "/", "Action=GetQueueAttributes&AttributeName.1=DelaySeconds", 200,
			xmlReply("GetQueueAttributes", "<GetQueueAttributesResult><Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute></GetQueueAttributesResult>")},
		{"a list that is a bare name", "GET", queue, "Action=GetQueueAttributes&AttributeName=DelaySeconds", 200,
			xmlReply("GetQueueAttributes", "<GetQueueAttributesResult><Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute></GetQueueAttributesResult>")},
		{"a bare name beside a numbered one", "GET", queue, "Action=GetQueueAttributes&AttributeName=All&AttributeName.1=DelaySeconds", 200,
			xmlReply("GetQueueAttributes", "<GetQueueAttributesResult><Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute></GetQueueAttributesResult>")},
		{"the parameters of the URL and those of the body", "POST", queue + "?Action=SendMessage&MessageBody=no", "MessageBody=hello", 200,
			xmlReply("SendMessage", "<SendMessageResult><MessageId>.{36}</MessageId><MD5OfMessageBody>5d41402abc4b2a76b9719d911017c592</MD5OfMessageBody></SendMessageResult>")},
		{"a parameter overrides the path", "GET", queue, "Action=ReceiveMessage&QueueUrl=http://x/000000000000/other&AttributeName.1=SenderId&AttributeName.2=ApproximateReceiveCount&MessageAttributeName.1=All", 200,
			xmlReply("ReceiveMessage", "<ReceiveMessageResult><Message><MessageId>.{36}</MessageId><ReceiptHandle>[+/0-9A-Za-z]+</ReceiptHandle>"+
				"<MD5OfBody>"+md5+"</MD5OfBody><Body>a&#xD;\n&quot;b&quot;&lt;&amp;&gt;'é</Body>"+
				"<Attribute><Name>SenderId</Name><Value>000000000000</Value></Attribute><Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute>"+
				"<MD5OfMessageAttributes>"+md5+"</MD5OfMessageAttributes>"+
				"<MessageAttribute><Name>blob</Name><Value><BinaryValue>AQID</BinaryValue><DataType>Binary</DataType></Value></MessageAttribute>"+
				"<MessageAttribute><Name>color</Name><Value><StringValue>blue</StringValue><DataType>String.x</DataType></Value></MessageAttribute>"+
				"</Message></ReceiveMessageResult>")},
		{"system attributes by their own name and by the older one", "POST", queue, "Action=ReceiveMessage&QueueUrl=other&MessageSystemAttributeName.1=ApproximateReceiveCount&MessageSystemAttributeName.2=Unknown&AttributeName.1=SenderId", 200,
			xmlReply("ReceiveMessage", ".*</Body><Attribute><Name>SenderId</Name><Value>000000000000</Value></Attribute>"+
				"<Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute></Message></ReceiveMessageResult>")},
		{"an unknown system attribute by the older name", "POST", queue, "Action=ReceiveMessage&AttributeName.1=Unknown", 400, xmlError("Sender", "InvalidAttributeName", "Unknown Attribute Unknown.")},
		{"an empty result", "POST", queue, "Action=ReceiveMessage", 200, xmlReply("ReceiveMessage", "<ReceiveMessageResult/>")},
		{"an empty list", "POST", "/", "Action=ListQueues&QueueNamePrefix=none", 200, xmlReply("ListQueues", "<ListQueuesResult/>")},
		{"an action that answers nothing", "POST", queue, "Action=PurgeQueue", 200, xmlReply("PurgeQueue", "")},
		{"a batch", "POST", queue, "Action=DeleteMessageBatch&DeleteMessageBatchRequestEntry.1.Id=a&DeleteMessageBatchRequestEntry.1.ReceiptHandle=x", 200,
			xmlReply("DeleteMessageBatch", "<DeleteMessageBatchResult><BatchResultErrorEntry><Id>a</Id><Code>ReceiptHandleIsInvalid</Code>"+
				"<Message>The input receipt handle &quot;x&quot; is not a valid receipt handle.</Message><SenderFault>true</SenderFault></BatchResultErrorEntry></DeleteMessageBatchResult>")},
		{"list elements in the order of their numbers", "POST", queue,
			"Action=SendMessageBatch&SendMessageBatchRequestEntry.10.Id=b&SendMessageBatchRequestEntry.10.MessageBody=x&SendMessageBatchRequestEntry.2.Id=a&SendMessageBatchRequestEntry.2.MessageBody=x&SendMessageBatchRequestEntry.x.Id=ignored", 200,
			xmlReply("SendMessageBatch", "<SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id>.*</SendMessageBatchResultEntry><SendMessageBatchResultEntry><Id>b</Id>.*</SendMessageBatchResultEntry></SendMessageBatchResult>")},

		{"GET of a queue without an action", "GET", queue, "", 404, "<UnknownOperationException/>"},
		{"POST to the root without an action", "POST", "/", "a=b", 404, "<UnknownOperationException/>"},
		{"GET of the root with parameters and no action", "GET", "/", "a=b", 404, "<UnknownOperationException/>"},
		{"an unknown action", "POST", "/", "Action=Launch", 400, xmlError("Sender", "InvalidAction", "The action Launch is not valid for this endpoint.")},
		{"CreateQueue on the path of a queue", "POST", queue, "Action=CreateQueue&QueueName=a", 400,
			xmlError("Sender", "InvalidAction", "The action CreateQueue is not valid for this endpoint.")},
		{"ListQueues on the path of a queue", "GET", queue, "Action=ListQueues", 400,
			xmlError("Sender", "InvalidAction", "The action ListQueues is not valid for this endpoint.")},
		{"GetQueueUrl on the path of a queue", "GET", queue, "Action=GetQueueUrl&QueueName=other", 200, xmlReply("GetQueueUrl", ".*/000000000000/other.*")},
		{"an unknown queue", "GET", "/000000000000/no", "Action=ReceiveMessage", 400,
			xmlError("Sender", "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist for this wsdl version.")},
		{"an error of status 404", "POST", queue, "Action=DeleteMessage&ReceiptHandle=%00", 404,
			xmlError("Sender", "ReceiptHandleIsInvalid", "The input receipt handle &quot;\ufffd&quot; is not a valid receipt handle.")},
		{"no integer", "POST", queue, "Action=ReceiveMessage&WaitTimeSeconds=soon", 400, xmlError("Sender", "MalformedInput", ".*WaitTimeSeconds must be an integer, not soon.")},
		{"no base64", "POST", queue, "Action=SendMessage&MessageBody=x&MessageAttribute.1.Name=a&MessageAttribute.1.Value.BinaryValue=!", 400,
			xmlError("Sender", "MalformedInput", ".*BinaryValue must be base64.")},
		{"a broken escape", "POST", queue, "Action=SendMessage&MessageBody=%4", 400, xmlError("Sender", "MalformedInput", `.*in the parameter &quot;MessageBody&quot;.`)},
		{"too many parameters", "POST", queue, "Action=SendMessage" + strings.Repeat("&a=b", 2000), 400, xmlError("Sender", "MalformedInput", ".*more than 2000 parameters.")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t)
			for _, setUp := range []string{
				"Action=CreateQueue&QueueName=q", "Action=CreateQueue&QueueName=other",
				"Action=SendMessage&QueueUrl=other&MessageBody=" + neturl.QueryEscape("a\r\n\"b\"<&>'é") +
					"&MessageAttribute.2.Name=color&MessageAttribute.2.Value.DataType=String.x&MessageAttribute.2.Value.StringValue=blue" +
					"&MessageAttribute.1.Name=blob&MessageAttribute.1.Value.DataType=Binary&MessageAttribute.1.Value.BinaryValue=AQID",
			} {
				w := httptest.NewRecorder()
				if server.ServeHTTP(w, formRequest("POST", "/", setUp)); w.Code != 200 {
					t.Fatalf("%s: %s", setUp, w.Body)
				}
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, formRequest(test.method, test.path, test.parameters))
			body, _ := io.ReadAll(w.Body)
			if w.Code != test.status || !regexp.MustCompile(`(?s)^`+test.body+`$`).Match(body) {
				t.Errorf("status %d, want %d; body\n%s\nwant one that matches\n%s", w.Code, test.status, body, test.body)
			}
			header := w.Result().Header
			if got := header.Get("Content-Type"); got != "text/xml" {
				t.Errorf("content type %q, want text/xml", got)
			}
			if len(header.Get("X-Amzn-Requestid")) != 36 || header.Get("X-Amzn-Query-Error") != "" {
				t.Errorf("header %v", header)
			}
		})
	}
}

// Replies to requests that accept JSON, to the byte but for ids and handles. Those of
// SendMessage, ReceiveMessage, ListQueues and GetQueueAttributes and the error are in
// the form of replies of AWS that are on record; the others are made alike.
func TestQueryRepliesInJSON(t *testing.T) {
	const (
		id       = `"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`
		metadata = `"ResponseMetadata":{"RequestId":` + id + `}`
		queue    = "/000000000000/q"
		url      = "http://localhost:9324/000000000000/"
	)
	tests := []struct {
		path, parameters string
		status           int
		body             string // a pattern, but for braces and brackets
	}{
		{queue, "Action=SendMessage&MessageBody=hello", 200, `{"SendMessageResponse":{` + metadata + `,"SendMessageResult":{"MD5OfMessageAttributes":null,` +
			`"MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592","MD5OfMessageSystemAttributes":null,"MessageId":` + id + `,"SequenceNumber":null}}}`},
		{queue, "Action=ReceiveMessage", 200, `{"ReceiveMessageResponse":{"ReceiveMessageResult":{"messages":null},` + metadata + `}}`},
		{"/", "Action=ReceiveMessage&QueueUrl=other", 200, `{"ReceiveMessageResponse":{"ReceiveMessageResult":{"messages":[{"Attributes":null,"Body":"<a>&\"b\"",` +
			`"MD5OfBody":".{32}","MD5OfMessageAttributes":null,"MessageAttributes":null,"MessageId":` + id + `,"ReceiptHandle":".*"}]},` + metadata + `}}`},
		{"/", "Action=ReceiveMessage&QueueUrl=other&AttributeName.1=ApproximateReceiveCount&MessageAttributeName.1=All", 200,
			`{"ReceiveMessageResponse":{"ReceiveMessageResult":{"messages":[{"Attributes":[{"Name":"ApproximateReceiveCount","Value":"1"}],"Body":".*",` +
				`"MD5OfBody":".{32}","MD5OfMessageAttributes":".{32}","MessageAttributes":[` +
				`{"Name":"blob","Value":{"BinaryListValues":null,"BinaryValue":"AQID","DataType":"Binary","StringListValues":null,"StringValue":null}},` +
				`{"Name":"color","Value":{"BinaryListValues":null,"BinaryValue":null,"DataType":"String","StringListValues":null,"StringValue":"blue"}}],` +
				`"MessageId":` + id + `,"ReceiptHandle":".*"}]},` + metadata + `}}`},
		{"/", "Action=ListQueues&QueueNamePrefix=q", 200, `{"ListQueuesResponse":{"ListQueuesResult":{"NextExclusiveStartQueueName":null,"NextToken":null,` +
			`"queueUrls":["` + url + `q"]},` + metadata + `}}`},
		{"/", "Action=ListQueues&QueueNamePrefix=none", 200, `{"ListQueuesResponse":{"ListQueuesResult":{"NextExclusiveStartQueueName":null,"NextToken":null,` +
			`"queueUrls":null},` + metadata + `}}`},
		{queue, "Action=GetQueueAttributes&AttributeName.1=DelaySeconds&AttributeName.2=VisibilityTimeout", 200,
			`{"GetQueueAttributesResponse":{"GetQueueAttributesResult":{"Attributes":[{"Name":"DelaySeconds","Value":"0"},{"Name":"VisibilityTimeout","Value":"30"}]},` + metadata + `}}`},
		{queue, "Action=PurgeQueue", 200, `{"PurgeQueueResponse":{` + metadata + `}}`},
		{queue, "Action=DeleteMessageBatch&DeleteMessageBatchRequestEntry.1.Id=a&DeleteMessageBatchRequestEntry.1.ReceiptHandle=x", 200,
			`{"DeleteMessageBatchResponse":{"DeleteMessageBatchResult":{"Failed":[{"Code":"ReceiptHandleIsInvalid","Id":"a","Message":".*","SenderFault":true}],"Successful":[]},` + metadata + `}}`},
		{"/000000000000/no", "Action=ReceiveMessage", 400, `{"Error":{"Code":"AWS.SimpleQueueService.NonExistentQueue",` +
			`"Message":"The specified queue does not exist for this wsdl version.","Type":"Sender"},"RequestId":` + id + `}`},
		{queue, "", 404, "<UnknownOperationException/>"}, // in this form to whomever
	}
	for i, test := range tests {
		t.Run(test.parameters, func(t *testing.T) {
			server := newServer(t)
			for _, setUp := range []string{
				"Action=CreateQueue&QueueName=q", "Action=CreateQueue&QueueName=other",
				"Action=SendMessage&QueueUrl=other&MessageBody=" + neturl.QueryEscape(`<a>&"b"`) +
					"&MessageAttribute.1.Name=color&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=blue" +
					"&MessageAttribute.2.Name=blob&MessageAttribute.2.Value.DataType=Binary&MessageAttribute.2.Value.BinaryValue=AQID",
			} {
				server.ServeHTTP(httptest.NewRecorder(), formRequest("POST", "/", setUp))
			}
			r := formRequest("POST", test.path, test.parameters)
			r.Header.Set("Accept", []string{"application/json", "text/html;q=0.5, Application/JSON;q=0.9"}[i%2])
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			pattern := strings.NewReplacer("{\"", "\\{\"", "[{", "\\[{", "[\"", "\\[\"", "[]", "\\[\\]", "\\\"", "\\\\\"").Replace(test.body)
			body := w.Body.String()
			if w.Code != test.status || !regexp.MustCompile(`^`+pattern+`$`).MatchString(body) {
				t.Errorf("status %d, want %d; body\n%s\nwant one that matches\n%s", w.Code, test.status, body, pattern)
			}
			want := "application/json"
			if test.status == 404 {
				want = "text/xml"
			}
			if got := w.Result().Header.Get("Content-Type"); got != want {
				t.Errorf("content type %q, want %q", got, want)
			}
		})
	}
}

// The access key of a request names the account, if it is one's number, and its
// scope the region; the queue URL names the account whose queue is meant.
func TestAccountsAndRegions(t *testing.T) {
	server := newServer(t)
	do := func(credential, action, body string) (status int, reply string) {
		t.Helper()
		r := request("POST", action, body, nil)
		if credential != "" {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+credential+"/sqs/aws4_request, SignedHeaders=host, Signature=00")
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const (
		one      = "111111111111/20261121/us-east-1"
		two      = "222222222222/20261121/us-east-1"
		twoNorth = "222222222222/20261121/eu-north-1"
		key      = "AKIAIOSFODNN7EXAMPLE/20261121/us-east-1"
	)
	for _, credential := range []string{"", one, two, twoNorth} {
		if status, reply := do(credential, "CreateQueue", `{"QueueName":"q"}`); status != 200 {
			t.Fatalf("create as %q: %s", credential, reply)
		}
	}
	send := func(credential, queueURL, body string) {
		t.Helper()
		if status, reply := do(credential, "SendMessage", `{"QueueUrl":"`+queueURL+`","MessageBody":"`+body+`"}`); status != 200 {
			t.Fatalf("send as %q to %s: %s", credential, queueURL, reply)
		}
	}
	send("", "q", "default")
	send(key, "q", "also default")
	send(one, "q", "one")
	send(one, "http://localhost:9324/222222222222/q", "two, by one")
	send(twoNorth, "q", "two, in the north")

	for _, test := range []struct{ credential, url, arn, bodies string }{
		{"", "http://localhost:9324/000000000000/q", "arn:aws:sqs:us-east-1:000000000000:q", "default, also default"},
		{key, "http://localhost:9324/000000000000/q", "arn:aws:sqs:us-east-1:000000000000:q", "default, also default"},
		{one, "http://localhost:9324/111111111111/q", "arn:aws:sqs:us-east-1:111111111111:q", "one"},
		{two, "http://localhost:9324/222222222222/q", "arn:aws:sqs:us-east-1:222222222222:q", "two, by one"},
		{twoNorth, "http://localhost:9324/222222222222/q", "arn:aws:sqs:eu-north-1:222222222222:q", "two, in the north"},
	} {
		if _, reply := do(test.credential, "ListQueues", `{}`); reply != `{"QueueUrls":["`+test.url+`"]}` {
			t.Errorf("as %q the queues are %s, want %s", test.credential, reply, test.url)
		}
		if _, reply := do(test.credential, "GetQueueAttributes", `{"QueueUrl":"q","AttributeNames":["QueueArn"]}`); reply != `{"Attributes":{"QueueArn":"`+test.arn+`"}}` {
			t.Errorf("as %q the attributes are %s, want the ARN %s", test.credential, reply, test.arn)
		}
		_, reply := do(test.credential, "ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":10,"VisibilityTimeout":0}`)
		var bodies []string
		for _, match := range regexp.MustCompile(`"Body":"([^"]*)"`).FindAllStringSubmatch(reply, -1) {
			bodies = append(bodies, match[1])
		}
		if got := strings.Join(bodies, ", "); got != test.bodies {
			t.Errorf("as %q received %q, want %q", test.credential, got, test.bodies)
		}
	}
	if _, reply := do(one, "GetQueueUrl", `{"QueueName":"q","QueueOwnerAWSAccountId":"222222222222"}`); reply != `{"QueueUrl":"http://localhost:9324/222222222222/q"}` {
		t.Errorf("the queue of the other account: %s", reply)
	}
	if status, reply := do(one, "CreateQueue", `{"QueueName":"r","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:222222222222:q\",\"maxReceiveCount\":1}"}}`); status != 400 {
		t.Errorf("a dead-letter queue of another account: %d %s", status, reply)
	}
	if status, reply := do(two, "CreateQueue", `{"QueueName":"r","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:eu-north-1:222222222222:q\",\"maxReceiveCount\":1}"}}`); status != 400 {
		t.Errorf("a dead-letter queue of another region: %d %s", status, reply)
	}
	if status, reply := do(two, "StartMessageMoveTask", `{"SourceArn":"arn:aws:sqs:eu-north-1:222222222222:q"}`); status != 404 {
		t.Errorf("a move task of another region: %d %s", status, reply)
	}

	// Presigned URLs carry the credentials as a parameter.
	w := httptest.NewRecorder()
	server.ServeHTTP(w, formRequest("GET", "/", "Action=ListQueues&X-Amz-Credential="+neturl.QueryEscape(twoNorth+"/sqs/aws4_request")))
	if !strings.Contains(w.Body.String(), "<QueueUrl>http://localhost:9324/222222222222/q</QueueUrl>") {
		t.Errorf("by a presigned URL: %s", w.Body)
	}
}

// Method calls in the process see no difference between the two protocols.
func TestQueryMembersAreThoseOfJSON(t *testing.T) {
	server := newServer(t)
	b := &testServer{T: t, server: server}
	b.url = b.create("q", nil)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, formRequest("POST", "/", "Action=SendMessage&QueueUrl=q&MessageBody=x&MessageGroupId=g&DelaySeconds=0"+
		"&MessageSystemAttribute.1.Name=AWSTraceHeader&MessageSystemAttribute.1.Value.DataType=String"+
		"&MessageSystemAttribute.1.Value.StringValue=Root%3D1-5759e988-bd862e3fe1be46a994272793"))
	if w.Code != 200 {
		t.Fatal(w.Body)
	}
	got := b.receive(b.url)
	if len(got) != 1 {
		t.Fatalf("received %v", got)
	}
	if diff := cmp.Diff([]string{"x", "g", "Root=1-5759e988-bd862e3fe1be46a994272793"},
		[]string{got[0].Body, got[0].Attributes.MessageGroupId, got[0].Attributes.AWSTraceHeader}); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}
