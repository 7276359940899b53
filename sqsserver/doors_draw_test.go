package sqsserver_test

import (
	"encoding/base64"
	"strings"
)

// draws are choices, made by bytes: those of a fuzzer or of a seed. When they have run out, each choice is the
// first.
type draws struct{ rest []byte }

func (d *draws) next(n int) int {
	if len(d.rest) == 0 {
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return int(b) % n
}

// one returns one of the values, in three of four cases the first.
func one[T any](d *draws, values ...T) T {
	if d.next(4) > 0 {
		return values[0]
	}
	return values[d.next(len(values))]
}

// object is a JSON object whose members keep their order and may be repeated.
type object []member

type member struct {
	name  string
	value any
}

// handleOf stands for the receipt handle of a message that was received, the latest first, and taskOf for
// the handle of a task: each door has its own.
type (
	handleOf int
	taskOf   int
)

// operation is an action with its input.
type operation struct {
	action string
	input  object
	typed  bool // a member has the type of another
	gaps   int  // how far the numbers of the elements of a list are apart, in a form
}

func drawOperation(d *draws) operation {
	all := [...]struct {
		action string
		input  func(*draws) object
	}{
		{"SendMessage", func(d *draws) object { return append(object{{"QueueUrl", drawQueue(d)}}, drawMessage(d)...) }},
		{"ReceiveMessage", drawReceive},
		{"SendMessageBatch", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"Entries", drawEntries(d, drawMessage)}}
		}},
		{"DeleteMessage", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"ReceiptHandle", drawHandle(d)}}
		}},
		{"DeleteMessageBatch", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"Entries", drawEntries(d, func(d *draws) object { return object{{"ReceiptHandle", drawHandle(d)}} })}}
		}},
		{"ChangeMessageVisibility", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"ReceiptHandle", drawHandle(d)}, {"VisibilityTimeout", drawNumber(d, 0, 43200)}}
		}},
		{"ChangeMessageVisibilityBatch", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"Entries", drawEntries(d, func(d *draws) object {
				return object{{"ReceiptHandle", drawHandle(d)}, {"VisibilityTimeout", drawNumber(d, 0, 43200)}}
			})}}
		}},
		{"CreateQueue", func(d *draws) object {
			return object{{"QueueName", drawName(d)}, {"Attributes", drawAttributes(d)}, {"tags", drawTags(d)}}
		}},
		{"DeleteQueue", drawQueueOnly},
		{"PurgeQueue", drawQueueOnly},
		{"ListQueueTags", drawQueueOnly},
		{"GetQueueUrl", func(d *draws) object {
			return object{{"QueueName", drawName(d)}, {"QueueOwnerAWSAccountId", one[any](d, any(nil), "000000000000", "123456789012", "x", "")}}
		}},
		{"ListQueues", func(d *draws) object {
			return object{{"QueueNamePrefix", one[any](d, any(nil), "p", "", "plain", drawText(d))}, {"MaxResults", one[any](d, any(nil), drawNumber(d, 1, 1000))}, {"NextToken", one[any](d, any(nil), "", "x", drawText(d))}}
		}},
		{"ListDeadLetterSourceQueues", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"MaxResults", one[any](d, any(nil), drawNumber(d, 1, 1000))}, {"NextToken", one[any](d, any(nil), "", drawText(d))}}
		}},
		{"GetQueueAttributes", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"AttributeNames", drawList(d, "All", "QueueArn", "VisibilityTimeout", "RedrivePolicy", "FifoQueue", "Nothing", "")}}
		}},
		{"SetQueueAttributes", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"Attributes", drawAttributes(d)}}
		}},
		{"TagQueue", func(d *draws) object { return object{{"QueueUrl", drawQueue(d)}, {"Tags", drawTags(d)}} }},
		{"UntagQueue", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"TagKeys", drawList(d, "a", "b", "", "aws:x", drawText(d))}}
		}},
		{"AddPermission", func(d *draws) object {
			return object{{"QueueUrl", drawQueue(d)}, {"Label", drawName(d)}, {"AWSAccountIds", drawList(d, "123456789012", "1", "", "x")}, {"Actions", drawList(d, "SendMessage", "*", "ReceiveMessage", "Nothing", "")}}
		}},
		{"RemovePermission", func(d *draws) object { return object{{"QueueUrl", drawQueue(d)}, {"Label", drawName(d)}} }},
		{"StartMessageMoveTask", func(d *draws) object {
			return object{{"SourceArn", drawARN(d, "dead")}, {"DestinationArn", one[any](d, any(nil), drawARN(d, "plain"))}, {"MaxNumberOfMessagesPerSecond", one[any](d, any(nil), drawNumber(d, 1, 500))}}
		}},
		{"ListMessageMoveTasks", func(d *draws) object {
			return object{{"SourceArn", drawARN(d, "dead")}, {"MaxResults", one[any](d, any(nil), drawNumber(d, 1, 10))}}
		}},
		{"CancelMessageMoveTask", func(d *draws) object {
			return object{{"TaskHandle", one[any](d, any(taskOf(0)), "x", "", drawText(d))}}
		}},
	}
	chosen := all[d.next(len(all))]
	input := chosen.input(d)
	typed := false
	switch d.next(64) {
	case 60, 61, 62, 63: // a member too few
		i := d.next(len(input))
		input = append(input[:i:i], input[i+1:]...)
	case 58, 59: // one that nobody knows
		input = append(input, member{one(d, "Unknown", "", ".", "a.b.c.d.e.f.g.h.i.j", strings.Repeat("unknown", 9000)), drawText(d)})
	case 57: // one twice
		input = append(input, input[d.next(len(input))])
	case 56: // one of another type
		i := d.next(len(input))
		wrong := []any{"5", 5, true, object{{"a", "b"}}, []any{"a"}, 1.5}
		input[i].value, typed = wrong[d.next(len(wrong))], true
	}
	return operation{chosen.action, input, typed, one(d, 1, 3)}
}

func drawQueueOnly(d *draws) object { return object{{"QueueUrl", drawQueue(d)}} }

// odd are texts that some encoding might spoil.
var odd = [...]string{
	"", " ", "a b+c%20d&e=f;g", "<a href=\"x\">&amp;</a>", "ünï—🙂", "tab\there", "line\nbreak", "carriage\rreturn\r\n", "nul\x00", "bell\x07",
	"\ufffe", "\uffff", "\ufffd", "\u2028", "]]>", "'\"\\", " leading and trailing ", "\u202eright to left", "a\u0301", strings.Repeat("x", 300), "0x10", "null", "true", "#%zz", "\U0010ffff", "\x7f\u0085",
}

func drawText(d *draws) string { return odd[d.next(len(odd))] }

func drawNumber(d *draws, low, high int) any {
	return one[any](d, low, high, low-1, high+1, (low+high)/2, 2147483647, -2147483648, 2147483648, -9223372036854775808, 1.5, nil)
}

func drawQueue(d *draws) any {
	const host = "http://sqs.us-east-1.localhost/"
	return one[any](d, host+"000000000000/plain", host+"000000000000/line.fifo", host+"000000000000/dead", host+"000000000000/made", host+"000000000000/none",
		"plain", "line.fifo", "", "/000000000000/plain", "https://elsewhere.example/000000000000/plain", host+"000000000000/plain/", host+"000000000000/", host+"123456789012/plain", drawText(d), nil)
}

func drawARN(d *draws, queue string) any {
	return one[any](d, "arn:aws:sqs:us-east-1:000000000000:"+queue, "arn:aws:sqs:us-east-1:000000000000:plain", "arn:aws:sqs:us-east-1:000000000000:line.fifo", "arn:aws:sqs:eu-west-1:000000000000:dead", "arn:", "", drawText(d), nil)
}

func drawName(d *draws) any {
	return one[any](d, "made", "made.fifo", "plain", "line.fifo", "", ".fifo", "a.b", strings.Repeat("n", 80), strings.Repeat("n", 81), drawText(d), nil)
}

func drawHandle(d *draws) any {
	return one[any](d, handleOf(d.next(3)), handleOf(0), "x", "", drawText(d), nil)
}

func drawList(d *draws, values ...string) any {
	n := d.next(5)
	if n == 4 {
		return nil
	}
	list := []any{}
	for range n {
		list = append(list, one(d, values...))
	}
	return list
}

func drawMap(d *draws, most int, entry func(d *draws) member) any {
	n := d.next(most + 2)
	if n == most+1 {
		return nil
	}
	m := object{}
	for range n {
		m = append(m, entry(d))
	}
	return m
}

func drawTags(d *draws) any {
	return drawMap(d, 3, func(d *draws) member {
		return member{one(d, "a", "b", "", "aws:x", strings.Repeat("k", 129), drawText(d)), one[any](d, "1", "", strings.Repeat("v", 257), drawText(d))}
	})
}

func drawAttributes(d *draws) any {
	return drawMap(d, 3, func(d *draws) member {
		name := one(d, "VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds", "FifoQueue", "ContentBasedDeduplication", "RedrivePolicy", "RedriveAllowPolicy", "Policy", "KmsMasterKeyId", "DeduplicationScope", "FifoThroughputLimit", "Nothing", "", drawText(d))
		return member{name, one[any](d, "60", "0", "", "-1", "43201", "true", "false", " 60", "6e1", "+60", "060", "99999999999999999999",
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}`, `{"deadLetterTargetArn":"x","maxReceiveCount":"0"}`, `{}`, `{`, `{"redrivePermission":"denyAll"}`, "messageGroup", drawText(d))}
	})
}

func drawMessageAttributes(d *draws) any {
	return drawMap(d, 3, func(d *draws) member {
		kind := one(d, "String", "Number", "Binary", "String.label", "Number.int", "Nothing", "", "string", drawText(d))
		value := object{{"DataType", kind}}
		if d.next(8) < 7 {
			if strings.HasPrefix(kind, "Binary") {
				value = append(value, member{"BinaryValue", base64.StdEncoding.EncodeToString([]byte(drawText(d)))})
			} else {
				value = append(value, member{"StringValue", one(d, "12", "1e400", "0x1", "-0.50", drawText(d))})
			}
		}
		return member{one(d, "name", "other", "a.b", ".a", "a..b", "AWS.x", "", strings.Repeat("n", 257), drawText(d)), value}
	})
}

func drawMessage(d *draws) object {
	m := object{{"MessageBody", one[any](d, "body", drawText(d), drawText(d), nil, strings.Repeat("long ", 60_000))}}
	if d.next(2) == 1 {
		m = append(m, member{"DelaySeconds", drawNumber(d, 0, 900)})
	}
	if d.next(2) == 1 {
		m = append(m, member{"MessageAttributes", drawMessageAttributes(d)})
	}
	if d.next(2) == 1 {
		m = append(m, member{"MessageGroupId", one[any](d, "g", "", nil, drawText(d), strings.Repeat("g", 129))})
	}
	if d.next(2) == 1 {
		m = append(m, member{"MessageDeduplicationId", one[any](d, "id", "", nil, drawText(d), strings.Repeat("d", 129))})
	}
	if d.next(8) == 7 {
		m = append(m, member{"MessageSystemAttributes", object{{one(d, "AWSTraceHeader", "Nothing", ""), object{{"DataType", "String"}, {"StringValue", one(d, "Root=1-5759e988-bd862e3fe1be46a994272793", drawText(d))}}}}})
	}
	return m
}

func drawEntries(d *draws, draw func(*draws) object) any {
	n := one(d, 2, 0, 1, 3, 10, 11)
	entries := []any{}
	for i := range n {
		id := one[any](d, string(rune('a'+i)), "a", "", strings.Repeat("i", 81), "a.b", drawText(d), nil)
		entries = append(entries, append(object{{"Id", id}}, draw(d)...))
	}
	return entries
}

func drawReceive(d *draws) object {
	in := object{{"QueueUrl", drawQueue(d)}, {"MaxNumberOfMessages", one[any](d, any(10), drawNumber(d, 1, 10))}, {"WaitTimeSeconds", one[any](d, any(nil), drawNumber(d, 0, 20))}}
	if d.next(2) == 1 {
		in = append(in, member{"VisibilityTimeout", drawNumber(d, 0, 43200)})
	}
	if d.next(2) == 1 {
		in = append(in, member{"AttributeNames", drawList(d, "All", "SentTimestamp", "ApproximateReceiveCount", "Nothing", "")})
	}
	if d.next(2) == 1 {
		in = append(in, member{"MessageSystemAttributeNames", drawList(d, "All", "SenderId", "MessageGroupId", "Nothing", "")})
	}
	if d.next(2) == 1 {
		in = append(in, member{"MessageAttributeNames", drawList(d, "All", "name", ".*", "a.*", "*", "Nothing", "", drawText(d))})
	}
	if d.next(4) == 3 {
		in = append(in, member{"ReceiveRequestAttemptId", one[any](d, "attempt", "", nil, drawText(d))})
	}
	return in
}
