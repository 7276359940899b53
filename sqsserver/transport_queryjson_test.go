package sqsserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// queryJSONTransport sends inputs as forms and reads replies in the Query protocol's JSON,
// which has lists of names and values where AWS JSON 1.0 has maps, and null for what
// is absent.
type queryJSONTransport struct {
	client sqs.HTTPClient
	url    string
}

func (d queryJSONTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	parameters, err := toForm(action, input)
	if err != nil {
		return nil, "", "", err
	}
	status, header, reply, err := post(ctx, d.client, d.url, []byte(parameters), http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"},
	})
	if err != nil {
		return nil, "", "", err
	}
	if got := header.Get("Content-Type"); got != "application/json" {
		return nil, "", "", fmt.Errorf("answers with the content type %q, want application/json", got)
	}
	var root map[string]map[string]any
	if status != http.StatusOK {
		var problem struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(reply, &problem); err != nil {
			return nil, "", "", err
		}
		message := problem.Error.Message
		if message == "The specified queue does not exist for this wsdl version." {
			message = "The specified queue does not exist."
		}
		return nil, problem.Error.Code, message, nil
	}
	if err := json.Unmarshal(reply, &root); err != nil {
		return nil, "", "", err
	}
	response := root[action+"Response"]
	if response["ResponseMetadata"] == nil {
		return nil, "", "", fmt.Errorf("the reply has no metadata: %s", reply)
	}
	members, answered := mapped(response[action+"Result"]).(map[string]any)
	if !answered {
		return nil, "", "", nil
	}
	for queryName, name := range map[string]string{"messages": "Messages", "queueUrls": "QueueUrls"} {
		if value := members[queryName]; value != nil && action != "ListDeadLetterSourceQueues" {
			members[name] = value
			delete(members, queryName)
		}
	}
	result, err := json.Marshal(members)
	return result, "", "", err
}

// mapped makes maps of lists of names and values, and leaves out nulls and empty lists.
func mapped(value any) any {
	switch value := value.(type) {
	case map[string]any:
		members := make(map[string]any)
		for name, member := range value {
			if list, isList := member.([]any); member != nil && (!isList || len(list) > 0) {
				members[name] = mapped(member)
			}
		}
		return members
	case []any:
		pairs := make(map[string]any)
		var elements []any
		for _, element := range value {
			elements = append(elements, mapped(element))
			pair, _ := element.(map[string]any)
			for _, key := range []string{"Name", "Key"} {
				if name, ok := pair[key].(string); ok {
					pairs[name] = mapped(pair["Value"])
				}
			}
		}
		if len(pairs) > 0 {
			return pairs
		}
		return elements
	}
	return value
}
