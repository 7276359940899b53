package serving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/reprise-sqs/reprise/bench/load"
)

// reply is a server's answer.
type reply struct {
	Header http.Header
	Body   []byte
}

const target = "X-Amz-Target"

// canned answers with the reply for the action, and reads the requests without parsing them.
func canned(replies map[string]reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		known, found := replies[strings.TrimPrefix(r.Header.Get(target), "AmazonSQS.")]
		if _, err := io.Copy(io.Discard, r.Body); err != nil || !found {
			http.Error(w, "there is no reply to this", http.StatusBadRequest)
			return
		}
		header := w.Header()
		for name, values := range known.Header {
			header[name] = values
		}
		_, _ = w.Write(known.Body) // a client that is gone asks again
	}
}

// record returns a server's replies to the requests of a load.
func record(url string) (map[string]reply, error) {
	replies := make(map[string]reply)
	do := func(action string, in map[string]any, out any) error {
		r, err := exchange(url, action, in)
		if err != nil {
			return fmt.Errorf("record a reply to %s: %w", action, err)
		}
		replies[action] = r
		return json.Unmarshal(r.Body, out)
	}
	var queue struct{ QueueUrl string }
	if err := do("CreateQueue", map[string]any{"QueueName": "recorded"}, &queue); err != nil {
		return nil, err
	}
	type entry struct {
		Id                         string
		MessageBody, ReceiptHandle string `json:",omitempty"`
	}
	entries := make([]entry, load.BatchSize)
	for i := range entries {
		entries[i] = entry{Id: fmt.Sprint(i), MessageBody: load.Body(i)}
	}
	var ignored any
	if err := do("SendMessageBatch", map[string]any{"QueueUrl": queue.QueueUrl, "Entries": entries}, &ignored); err != nil {
		return nil, err
	}
	var received struct{ Messages []entry }
	err := do("ReceiveMessage", map[string]any{
		"QueueUrl": queue.QueueUrl, "MaxNumberOfMessages": load.BatchSize, "MessageSystemAttributeNames": []string{"All"},
	}, &received)
	if err != nil {
		return nil, err
	}
	if len(received.Messages) != load.BatchSize {
		return nil, fmt.Errorf("%d messages were received instead of %d", len(received.Messages), load.BatchSize)
	}
	for i := range entries {
		entries[i] = entry{Id: entries[i].Id, ReceiptHandle: received.Messages[i].ReceiptHandle}
	}
	return replies, do("DeleteMessageBatch", map[string]any{"QueueUrl": queue.QueueUrl, "Entries": entries}, &ignored)
}

func exchange(url, action string, in map[string]any) (reply, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set(target, "AmazonSQS."+action)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200q", response.StatusCode, answer)
	}
	return reply{response.Header, answer}, err
}
