package repriselambda

import (
	"bytes"
	"encoding/json"
	"time"
)

// wrapping is the envelope in which a retry of an asynchronous invocation reaches its function: the
// payload, and two facts that Lambda does not keep.
//
//	{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670},"_original_payload":{...}}
type wrapping struct {
	retry   int       // 1 for the first retry, the second run; 0 if Lambda gave the event up without a run
	failed  time.Time // when Lambda first gave the event up, to the second
	payload []byte    // as it was sent
}

// metadataKey and payloadKey are the only members of an envelope.
const (
	metadataKey = "_retry_metadata"
	payloadKey  = "_original_payload"
)

// unwrap opens an envelope, and reports whether it is one: an object with those two
// members and no other, whose metadata has a number of the retry and a time in
// seconds since 1970, both whole numbers. Anything else is a payload of the user, even if it has
// such a member.
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
	retry, isRetry := whole(metadata["attempt"])
	failed, isTime := whole(metadata["initial_timestamp"])
	if !isRetry || !isTime {
		return wrapping{}, false
	}
	return wrapping{retry: int(retry), failed: time.Unix(failed, 0), payload: members[payloadKey]}, true
}

// maxWhole is the largest whole number that JSON parsers of all languages read exactly.
const maxWhole = 1<<53 - 1

// whole reads a whole number that is not negative.
func whole(text json.RawMessage) (n int64, ok bool) {
	var read *int64 // null is no number
	if json.Unmarshal(text, &read) != nil || read == nil || *read < 0 || *read > maxWhole {
		return 0, false
	}
	return *read, true
}
