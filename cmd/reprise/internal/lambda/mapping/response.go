package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errResponse is wrapped by errors of replies that fail the whole batch.
var errResponse = errors.New("the function's reply fails the whole batch")

// failures reads the reply of a function with ReportBatchItemFailures: the ids of the messages
// that failed. An error means that all of them failed. See
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
//
// AWS does not document replies that are other JSON, such as "done" or true. Here they fail the
// batch, so that no message is deleted by mistake.
func failures(reply []byte, messages []message) (map[string]bool, error) {
	switch string(bytes.TrimSpace(reply)) {
	case "", "null", "{}", `""`, "[]":
		return nil, nil
	}
	var response map[string]json.RawMessage // the names of a struct would match in upper case too
	if err := json.Unmarshal(reply, &response); err != nil {
		return nil, fmt.Errorf(`%w: it is not of the form {"batchItemFailures":[{"itemIdentifier":"..."}]}: %w`, errResponse, err)
	}
	var items []map[string]any
	if list := response["batchItemFailures"]; list != nil {
		if err := json.Unmarshal(list, &items); err != nil {
			return nil, fmt.Errorf("%w: batchItemFailures is not a list of objects: %w", errResponse, err)
		}
	}
	known := make(map[string]bool, len(messages))
	for i := range messages {
		known[messages[i].id] = true
	}
	failed := make(map[string]bool, len(items))
	for i, item := range items {
		id, isText := item["itemIdentifier"].(string)
		switch {
		case !isText || id == "":
			return nil, fmt.Errorf("%w: item %d of batchItemFailures has no itemIdentifier: give it the messageId of a record", errResponse, i)
		case !known[id]:
			return nil, fmt.Errorf("%w: itemIdentifier %q is not a messageId of the batch", errResponse, id)
		}
		failed[id] = true
	}
	return failed, nil
}
