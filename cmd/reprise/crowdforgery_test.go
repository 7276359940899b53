package main_test

import (
	"math"
	"strings"
	"testing"
	"time"
)

// forgery is a record that a test makes up. Times are in seconds.
type forgery struct{ crowdRecord }

func seconds(s float64) int64 { return int64(s * float64(time.Second)) }

// ask adds a request that begins at a time and is answered half a second later.
func (f *forgery) ask(client, action, queue string, at float64, input crowdInput, reply *crowdReply) *crowdExchange {
	x := &crowdExchange{client: client, action: action, queue: queue, asked: seconds(at), told: seconds(at + 0.5), input: &input, reply: reply}
	f.exchanges = append(f.exchanges, x)
	return x
}

func (f *forgery) send(queue, id, body string, at float64, change ...func(*crowdInput)) *crowdExchange {
	in := crowdInput{MessageBody: body}
	for _, c := range change {
		c(&in)
	}
	return f.ask("a", "SendMessage", queue, at, in, &crowdReply{MessageID: id, MD5OfMessageBody: md5Of(body), MD5OfMessageAttributes: md5OfAttributes(in.MessageAttributes)})
}

// got is a message in a reply, for the nth time.
func got(id, body string, n string) crowdMessage {
	return crowdMessage{MessageID: id, ReceiptHandle: id + "#" + n, Body: body, MD5OfBody: md5Of(body), Attributes: map[string]string{"ApproximateReceiveCount": n, "SentTimestamp": "1000"}}
}

// numbered gives a message the server's sequence number.
func numbered(n string, m crowdMessage) crowdMessage {
	m.Attributes["SequenceNumber"] = n
	return m
}

func inGroup(m crowdMessage, group string) crowdMessage {
	m.Attributes["MessageGroupId"] = group
	return m
}

// receive receives for 3 seconds.
func (f *forgery) receive(queue string, at float64, messages ...crowdMessage) *crowdExchange {
	hidden := 3
	return f.ask("b", "ReceiveMessage", queue, at, crowdInput{MaxNumberOfMessages: 10, VisibilityTimeout: &hidden}, &crowdReply{Messages: messages})
}

func (f *forgery) delete(queue, handle string, at float64) *crowdExchange {
	return f.ask("b", "DeleteMessage", queue, at, crowdInput{ReceiptHandle: handle}, &crowdReply{})
}

func (f *forgery) change(queue, handle string, to int, at float64) *crowdExchange {
	return f.ask("b", "ChangeMessageVisibility", queue, at, crowdInput{ReceiptHandle: handle, VisibilityTimeout: &to}, &crowdReply{})
}

// fails makes an answer a failure.
func fails(x *crowdExchange, status int) *crowdExchange {
	x.reply, x.status = nil, status
	return x
}

func (f *forgery) breaks(kind string, from, to float64) {
	f.crowdRecord.breaks = append(f.crowdRecord.breaks, crowdBreak{kind: kind, from: seconds(from), to: seconds(to)})
}

func ofGroup(group, dedup string) func(*crowdInput) {
	return func(in *crowdInput) { in.MessageGroupID, in.MessageDeduplicationID = group, dedup }
}

// TestCrowdLog: a request without an answer is one whose outcome is not known, and a log with lines at the wrong place is
// refused.
func TestCrowdLog(t *testing.T) {
	const asked = `{"n":1,"at":5,"action":"SendMessage","input":{"QueueUrl":"http://x/0/q","MessageBody":"one"}}` + "\n"
	all, err := readCrowdLog("a", strings.NewReader(asked))
	if err != nil || len(all) != 1 || all[0].told != 0 || all[0].queue != "q" || settledBy(all[0]) != math.MaxInt64 {
		t.Errorf("%+v, %v", all, err)
	}
	all, err = readCrowdLog("a", strings.NewReader(asked+`{"n":1,"at":9,"reply":{"MessageId":"m"}}`))
	if err != nil || len(all) != 1 || all[0].told != 9 || all[0].reply.MessageID != "m" || settledBy(all[0]) != 9 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, wrong := range []string{asked + asked, `{"n":1,"at":9,"reply":{}}`, "{"} {
		if _, err := readCrowdLog("a", strings.NewReader(wrong)); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

// TestCrowdDigests: the digests are those of AWS's documentation and SDKs.
func TestCrowdDigests(t *testing.T) {
	got := md5OfAttributes(map[string]crowdAttribute{"tenant": {DataType: "String", StringValue: "ж<&>"}, "raw": {DataType: "Binary", BinaryValue: "AP8="}, "n": {DataType: "Number", StringValue: "12"}})
	if want := "4ef774887e13077a03d7d33b3c794496"; got != want { // which boto3 has checked
		t.Errorf("the digest is %s, want %s", got, want)
	}
}
