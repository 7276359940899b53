package configfile

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Key is a key of a configuration that is named as a flag of the command line.
type Key struct {
	Name  string
	Type  string // of the value: one of JSON Schema's
	About string
}

// Schema is the JSON Schema of configurations with these keys beside their own:
// what editors complete and check files by. What it accepts is read, but for values
// that only the server can judge, such as an address or the range of an attribute.
func Schema(keys []Key) ([]byte, error) {
	properties := object{
		"queues": object{"type": "array", "items": reference("queue"), "description": "queues that exist from the start"},
		"faults": object{"type": "object", "additionalProperties": reference("faults"),
			"description": "faults by the name of the queue; \"*\" is every one"},
	}
	for _, key := range keys {
		properties[key.Name] = object{"type": key.Type, "description": key.About}
	}
	text, err := json.MarshalIndent(object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Configuration of reprise serve",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
		"$defs": object{
			"queue": object{
				"type": "object", "properties": queueProperties, "additionalProperties": false, "required": []string{"name"},
				"dependentRequired": object{"max-receives": []string{"dead-letter"}},
			},
			"faults": object{"type": "array", "items": reference("fault")},
			"fault":  object{"type": "object", "properties": faultProperties, "additionalProperties": false, "required": []string{"kind"}},
		},
	}, "", "  ")
	return append(text, '\n'), err
}

// object is one of JSON; encoding/json sorts its members.
type object map[string]any

func reference(definition string) object { return object{"$ref": "#/$defs/" + definition} }

// queueProperties are the keys of a queue: queueForm's, and its faults.
var queueProperties = object{
	"name": object{"type": "string", "minLength": 1, "description": "a name that ends in .fifo makes a FIFO queue"},
	"attributes": object{
		"type": "object", "propertyNames": object{"enum": daemon.QueueAttributes},
		"additionalProperties": object{"type": []string{"string", "number", "boolean"}},
		"description":          "attributes of CreateQueue",
	},
	"dead-letter":  object{"type": "string", "description": "name of the dead-letter queue, which is created if it is not there"},
	"max-receives": object{"type": "integer", "minimum": 1, "maximum": 1000, "description": "receives after which a message goes to the dead-letter queue; default 20"},
	"tags":         object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "added to those that the queue has"},
	"faults":       reference("faults"),
}

// faultProperties are the keys of a fault, as its MarshalJSON has them.
var faultProperties = object{
	"kind":        object{"enum": faultKinds},
	"action":      object{"type": "string", "description": "only this action, such as ReceiveMessage; default every one that the kind can strike"},
	"skip":        object{"type": "integer", "minimum": 0, "description": "let so many chances pass first"},
	"every":       object{"type": "integer", "minimum": 0, "description": "strike each Nth chance; default each one"},
	"probability": object{"type": "number", "minimum": 0, "maximum": 1, "description": "of the chances that the rest selects, strike this part; default all"},
	"limit":       object{"type": "integer", "minimum": 0, "description": "end after so many strikes; default never"},
	"delay":       object{"type": "string", "description": "of slow-reply and early-redelivery, like 2s; default 1s"},
}

var faultKinds = []sqsserver.FaultKind{
	sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultOverLimit, sqsserver.FaultDropConnection,
	sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultWrongCounts, sqsserver.FaultFailEntry,
	sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery, sqsserver.FaultLoseDelete, sqsserver.FaultStaleHandle,
	sqsserver.FaultLoseLease,
}

// keysOf are the keys of a form, for those who used another.
func keysOf(form any) []string {
	switch form.(type) {
	case *sqsserver.Fault:
		return slices.Sorted(maps.Keys(faultProperties))
	case *queueForm:
		return slices.Sorted(maps.Keys(queueProperties))
	}
	return nil
}
