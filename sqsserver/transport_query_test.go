package sqsserver_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// queryTransport sends inputs as forms and reads replies in XML, by a translation that
// shares nothing with the server's own.
type queryTransport struct {
	client sqs.HTTPClient
	url    string
}

func (d queryTransport) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	parameters, err := toForm(action, input)
	if err != nil {
		return nil, "", "", err
	}
	status, header, reply, err := post(ctx, d.client, d.url, []byte(parameters), http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"},
	})
	if err != nil {
		return nil, "", "", err
	}
	var root node
	if err := xml.Unmarshal(reply, &root); err != nil {
		return nil, "", "", fmt.Errorf("answers with status %d and no reply of SQS", status)
	}
	if got := header.Get("Content-Type"); !strings.HasPrefix(got, "text/xml") {
		return nil, "", "", fmt.Errorf("answers with the content type %q, want text/xml", got)
	}
	if status != http.StatusOK {
		code, message := root.child("Error").text("Code"), root.child("Error").text("Message")
		// The one text that differs between the protocols.
		if code == "AWS.SimpleQueueService.NonExistentQueue" {
			if message != "The specified queue does not exist for this wsdl version." {
				return nil, "", "", fmt.Errorf("an unknown queue has the text %q", message)
			}
			message = "The specified queue does not exist."
		}
		return nil, code, message, nil
	}
	if root.XMLName.Local != action+"Response" || root.XMLName.Space != "http://queue.amazonaws.com/doc/2012-11-05/" {
		return nil, "", "", fmt.Errorf("the reply is a %v", root.XMLName)
	}
	result, err := json.Marshal(root.child(action + "Result").toJSON(action))
	return result, "", "", err
}

func toForm(action string, input []byte) (string, error) {
	parameters := url.Values{"Action": {action}, "Version": {"2012-11-05"}}
	var members map[string]any
	if err := json.Unmarshal(input, &members); err != nil {
		return "", err
	}
	if deprecated, both := members["AttributeNames"].([]any); both && members["MessageSystemAttributeNames"] != nil {
		members["AttributeNames"] = append(deprecated, members["MessageSystemAttributeNames"].([]any)...)
		delete(members, "MessageSystemAttributeNames") // a form has one list for both
	}
	addParameters(parameters, "", action, members)
	return parameters.Encode(), nil
}

// lists and pairs say how the members of inputs that are no scalars are spelled
// in a form.
var (
	lists = map[string]string{
		"AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName",
		"MessageSystemAttributeNames": "AttributeName", "TagKeys": "TagKey",
		"AWSAccountIds": "AWSAccountId", "Actions": "ActionName",
		"StringListValues": "StringListValue", "BinaryListValues": "BinaryListValue",
	}
	pairs = map[string][3]string{
		"Attributes": {"Attribute", "Name", "Value"}, "tags": {"Tag", "Key", "Value"}, "Tags": {"Tag", "Key", "Value"},
		"MessageAttributes":       {"MessageAttribute", "Name", "Value"},
		"MessageSystemAttributes": {"MessageSystemAttribute", "Name", "Value"},
	}
)

func addParameters(parameters url.Values, prefix, action string, members map[string]any) {
	for name, member := range members {
		switch value := member.(type) {
		case map[string]any:
			pair := pairs[name]
			for i, key := range slices.Sorted(maps.Keys(value)) {
				element := fmt.Sprintf("%s%s.%d.", prefix, pair[0], i+1)
				parameters.Set(element+pair[1], key)
				if attribute, ok := value[key].(map[string]any); ok {
					addParameters(parameters, element+pair[2]+".", action, attribute)
				} else {
					parameters.Set(element+pair[2], fmt.Sprint(value[key]))
				}
			}
		case []any:
			for i, element := range value {
				if entry, ok := element.(map[string]any); ok {
					addParameters(parameters, fmt.Sprintf("%s%sRequestEntry.%d.", prefix, action, i+1), action, entry)
				} else {
					parameters.Set(fmt.Sprintf("%s%s.%d", prefix, lists[name], i+1), fmt.Sprint(element))
				}
			}
		case float64:
			parameters.Set(prefix+name, strconv.FormatFloat(value, 'f', -1, 64))
		default:
			parameters.Set(prefix+name, fmt.Sprint(value))
		}
	}
}

// node is an element of XML.
type node struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	Children []node `xml:",any"`
}

// child returns the first child of that name, or an empty node.
func (n node) child(name string) node {
	for _, child := range n.Children {
		if child.XMLName.Local == name {
			return child
		}
	}
	return node{}
}

func (n node) text(name string) string { return n.child(name).Text }

// toJSON makes of a result, or a part of one, what a reply in JSON has.
func (n node) toJSON(action string) map[string]any {
	object := make(map[string]any)
	put := func(member, key string, value any) { // into the map that member is
		if object[member] == nil {
			object[member] = make(map[string]any)
		}
		object[member].(map[string]any)[key] = value
	}
	add := func(member string, value any) { // to the list that member is
		list, _ := object[member].([]any)
		object[member] = append(list, value)
	}
	for _, child := range n.Children {
		switch name := child.XMLName.Local; name {
		case "Attribute":
			put("Attributes", child.text("Name"), child.text("Value"))
		case "MessageAttribute":
			put("MessageAttributes", child.text("Name"), child.child("Value").toJSON(action))
		case "Tag":
			put("Tags", child.text("Key"), child.text("Value"))
		case "Message":
			if action == "ReceiveMessage" {
				add("Messages", child.toJSON(action))
			} else {
				object[name] = child.Text
			}
		case "BatchResultErrorEntry":
			add("Failed", child.toJSON(action))
		case "ListMessageMoveTasksResultEntry":
			add("Results", child.toJSON(action))
		case action + "ResultEntry":
			add("Successful", child.toJSON(action))
		case "QueueUrl":
			switch action {
			case "ListQueues":
				add("QueueUrls", child.Text)
			case "ListDeadLetterSourceQueues":
				add("queueUrls", child.Text)
			default:
				object[name] = child.Text
			}
		case "SenderFault":
			object[name] = child.Text == "true"
		case "ApproximateNumberOfMessagesMoved", "ApproximateNumberOfMessagesToMove", "StartedTimestamp", "MaxNumberOfMessagesPerSecond":
			object[name] = json.Number(strings.TrimSpace(child.Text))
		default:
			object[name] = child.Text
		}
	}
	return object
}
