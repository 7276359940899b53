package sqsserver

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// recordKinds decode a value and encode what they made of it.
var recordKinds = []struct {
	name  string
	again func(value []byte) ([]byte, error)
}{
	{"message", func(value []byte) ([]byte, error) {
		s := engine.State{Sequence: 7}
		err := decodeState(value, &s)
		return appendState(nil, &s), err
	}},
	{"acceptance", func(value []byte) ([]byte, error) {
		var a engine.Acceptance
		err := decodeAcceptance(value, &a)
		return appendAcceptance(nil, &a), err
	}},
	{"content", func(value []byte) ([]byte, error) {
		c, err := decodeContent(value)
		if err != nil {
			return nil, err
		}
		return appendContent(nil, c), nil
	}},
	{"queue", func(value []byte) ([]byte, error) {
		q, err := decodeQueue(value)
		return q.append(nil), err
	}},
	{"moves", func(value []byte) ([]byte, error) {
		tasks, err := decodeMoves(value)
		return appendMoves(nil, tasks), err
	}},
	{"deletion", func(value []byte) ([]byte, error) {
		at, err := decodeDeletion(value)
		return appendDeletion(nil, at), err
	}},
	{"sequence", func(value []byte) ([]byte, error) {
		sequence, err := decodeSequence(value)
		return appendSequence(nil, sequence), err
	}},
}

// exampleRecords are records by their kind.
func exampleRecords() map[string][][]byte {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	return map[string][][]byte{
		"message": {
			appendState(nil, &engine.State{Sequence: 7, SendNumber: 7, Slot: 1, FirstReceived: engine.Never, Received: engine.Never, HiddenUntil: engine.Never}),
			appendState(nil, &engine.State{
				ID: engine.ID{1, 2, 3}, Group: "group", Dedup: "dedup", Slot: 1 << 20, Sequence: 7, SendNumber: 5,
				SentAt: at.UnixNano(), FirstReceived: at.UnixNano() + 1, Received: -1, HiddenUntil: math.MaxInt64,
				Receives: math.MaxUint32, Before: 3, Source: "arn",
			}),
		},
		"acceptance": {appendAcceptance(nil, &engine.Acceptance{ID: engine.ID{9}, At: at.UnixNano(), Group: "g", Dedup: "d"})},
		"content": {appendContent(nil, &content{
			body: body{text: `\"body\"`, quoted: true}, bodyMD5: MD5{1}, sender: "000000000000", traceHeader: "Root=1", traceHeaderMD5: MD5{2}, attributesMD5: MD5{3},
			attributes: []MessageAttribute{{Name: "a", DataType: "Binary", BinaryValue: []byte{0}}, {Name: "b", DataType: "String", StringValue: "v"}},
		})},
		"queue": {(&queueRecord{
			name:    queueName{account: "1", region: "eu-west-1", name: "q"},
			created: at.UnixNano(), modified: at.UnixNano(), dedupPerGroup: true,
			tags: map[string]string{"a": "b", "c": ""}, attributes: map[string]string{"DelaySeconds": "0"},
		}).append(nil)},
		"moves": {appendMoves(nil, []*moveTask{
			{id: UUID{1}, source: "a", destination: "b", rate: 5, started: at, status: moveFailed, reason: "r", moved: 1, toMove: 2}})},
		"deletion": {appendDeletion(nil, at)},
		"sequence": {appendSequence(nil, math.MaxUint64)},
	}
}

// A decoder never panics, and the encoder writes an accepted text again byte for byte: so the
// decoder has neither ignored nor added anything.
func FuzzRecords(f *testing.F) {
	for _, values := range exampleRecords() {
		for _, value := range values {
			f.Add(value)
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, kind := range recordKinds {
			again, err := kind.again(value)
			switch {
			case err != nil:
			case value[0] == recordVersion:
				if !bytes.Equal(again, value) {
					t.Errorf("%s: %x was read, and written as %x", kind.name, value, again)
				}
			default: // of the version before
				same, err := kind.again(again)
				if err != nil || !bytes.Equal(same, again) || kind.name != "content" && !bytes.Equal(again[1:], value[1:]) {
					t.Errorf("%s: %x was read and written as %x, which is then %x, %v", kind.name, value, again, same, err)
				}
			}
		}
	})
}

// A record that lacks its end, or has more than that, is refused.
func TestRecordsAreReadToTheEnd(t *testing.T) {
	for _, kind := range recordKinds {
		for _, value := range exampleRecords()[kind.name] {
			if _, err := kind.again(value); err != nil {
				t.Errorf("%s: %x: %v", kind.name, value, err)
			}
			for end := range value {
				if _, err := kind.again(value[:end]); err == nil {
					t.Errorf("%s: the first %d bytes of %x were read", kind.name, end, value)
				}
			}
			if _, err := kind.again(append(bytes.Clone(value), 0)); err == nil {
				t.Errorf("%s: %x was read with a byte behind it", kind.name, value)
			}
		}
	}
}

func TestStateSurvives(t *testing.T) {
	want := engine.State{
		ID: engine.ID{1, 2, 3}, Group: "group", Dedup: "dedup", Slot: 1 << 20, Sequence: 7, SendNumber: 5,
		SentAt: 1, FirstReceived: 2, Received: 3, HiddenUntil: 4, Receives: 5, Before: 3, Source: "arn",
	}
	got := engine.State{Sequence: 7}
	if err := decodeState(appendState(nil, &want), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The keys of a kind are in the order of their numbers, and following ends what
// begins with a prefix.
func TestKeys(t *testing.T) {
	numbers := []uint64{0, 1, 255, 256, 1 << 40, math.MaxUint64}
	for i, n := range numbers {
		for _, m := range numbers[i+1:] {
			if bytes.Compare(appendMessageKey(nil, 5, n), appendMessageKey(nil, 5, m)) >= 0 || bytes.Compare(appendMessageKey(nil, n, 9), appendMessageKey(nil, m, 1)) >= 0 {
				t.Errorf("the keys of %d and %d are not in order", n, m)
			}
		}
		start := appendQueueKey(nil, messageKey, n)
		end := following(start)
		inside := appendMessageKey(nil, n, math.MaxUint64)
		if bytes.Compare(inside, end) >= 0 || bytes.HasPrefix(end, start) {
			t.Errorf("queue %d: %x is not before the end %x, or the end is inside", n, inside, end)
		}
		if n < math.MaxUint64 && bytes.Compare(appendQueueKey(nil, messageKey, n+1), end) < 0 {
			t.Errorf("the end %x of queue %d takes the next one in", end, n)
		}
		var queue, sequence uint64
		if err := parseKey(appendMessageKey(nil, n, 3), &queue, &sequence); err != nil || queue != n || sequence != 3 {
			t.Errorf("parsed %d and %d, %v", queue, sequence, err)
		}
	}
	name := queueName{account: "000000000000", region: "us-east-1", name: "q.fifo"}
	if got, err := parseNameKey(appendNameKey(nil, name)); err != nil || got != name {
		t.Errorf("parsed %+v, %v, want %+v", got, err, name)
	}
}

// The texts of attributes are what with takes, for every attribute.
func TestSettableAttributesSurvive(t *testing.T) {
	for _, given := range []map[string]string{
		{},
		{"KmsDataKeyReusePeriodSeconds": "600"},
		{"KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "600"},
		{"SqsManagedSseEnabled": "false"},
		{"FifoQueue": "true"},
		{"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId", "ContentBasedDeduplication": "true"},
		{"DelaySeconds": "1", "MaximumMessageSize": "2048", "MessageRetentionPeriod": "60", "ReceiveMessageWaitTimeSeconds": "2", "VisibilityTimeout": "0",
			"Policy": `{"Statement":[]}`, "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:d","maxReceiveCount":"3"}`,
			"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`},
	} {
		fifo := given["FifoQueue"] == "true"
		want, err := defaultAttributes(fifo).with(given)
		if err != nil {
			t.Fatal(err)
		}
		got, err := defaultAttributes(fifo).with(want.settable())
		if err != nil {
			t.Fatalf("%v: %v", given, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(attributes{}, redrivePolicy{}, redriveAllowPolicy{})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", given, diff)
		}
	}
}
