package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Call carries out any action at the server at addr, before or after the load. in and out are JSON;
// out may be nil.
func Call(addr, action string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("X-Amz-Date", "20260101T000000Z")
	request.Header.Set("Authorization", authorization)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %.500q", action, response.StatusCode, reply)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return fmt.Errorf("%s: %w in %.500q", action, err, reply)
	}
	return nil
}

// CreateQueue creates a queue and returns its URL.
func CreateQueue(addr, name string) (url string, err error) {
	var out struct{ QueueUrl string }
	err = Call(addr, "CreateQueue", map[string]string{"QueueName": name}, &out)
	return out.QueueUrl, err
}
