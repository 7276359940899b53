package repriselambda

import (
	"bytes"
	"encoding/json"
	"time"
)

// wrapping is the envelope in which a retry of an asynchronous invocation reaches
// its function: the payload, and what Lambda does not keep about it.
//
//	{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670},"_original_payload":{...}}
type wrapping struct {
	retry   int       // 1 for the first retry, the second run
	failed  time.Time // when the first run had failed, to the second
	payload []byte    // as it was sent
}

// metadataKey and payloadKey are all members of an envelope.
const (
	metadataKey = "_retry_metadata"
	payloadKey  = "_original_payload"
)

// unwrap opens an envelope, and says whether it is one: an object with those two
// members and no other, whose metadata has a number of the retry and a time in
// seconds since 1970, both whole and above zero. Anything else is somebody's payload,
// even if it has such a member.
func unwrap(payload []byte) (wrapping, bool) {
	if !bytes.Contains(payload, []byte(`"`+metadataKey+`"`)) {
		return wrapping{}, false // without decoding it
	}
	var members, metadata map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || len(members) != 2 {
		return wrapping{}, false
	}
	if json.Unmarshal(members[metadataKey], &metadata) != nil || members[payloadKey] == nil {
		return wrapping{}, false
	}
	retry, failed := counting(metadata["attempt"]), counting(metadata["initial_timestamp"])
	if retry == 0 || failed == 0 {
		return wrapping{}, false
	}
	return wrapping{retry: int(retry), failed: time.Unix(failed, 0), payload: members[payloadKey]}, true
}

// maxCounting is the largest whole number on which the JSON of every language agrees.
const maxCounting = 1<<53 - 1

// counting returns the number that text is, or 0 if it is not a whole one above zero.
func counting(text json.RawMessage) int64 {
	var n int64
	if json.Unmarshal(text, &n) != nil || n < 0 || n > maxCounting {
		return 0
	}
	return n
}
