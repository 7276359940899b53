package configfile

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Key is a key of a configuration with the name of a command-line flag.
type Key struct {
	Name  string
	Type  string // of the value, in JSON Schema
	About string
}

// Schema returns the JSON Schema of configurations with these keys, queues and faults.
// Editors use it to complete and check files. Read accepts what it accepts, except for
// values that only the server can check, such as an address or the range of an attribute.
func Schema(keys []Key) ([]byte, error) {
	properties := object{
		"queues": object{"type": "array", "items": reference("queue"), "description": "queues that exist from the start"},
		"faults": object{"type": "object", "additionalProperties": reference("faults"),
			"description": "faults by the name of the queue; \"*\" is every queue"},
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

// object is an object of JSON; encoding/json sorts its members.
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
	"dead-letter":  object{"type": "string", "description": "name of the dead-letter queue, which is created if it does not exist"},
	"max-receives": object{"type": "integer", "minimum": 1, "maximum": 1000, "description": "receives after which a message goes to the dead-letter queue; default 20"},
	"tags":         object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "added to the tags that the queue has"},
	"faults":       reference("faults"),
}

// faultProperties are the keys of a fault, as its MarshalJSON has them.
var faultProperties = object{
	"kind":        object{"enum": faultKinds},
	"action":      object{"type": "string", "description": "only this action, such as ReceiveMessage; default every action that the kind can affect"},
	"skip":        object{"type": "integer", "minimum": 0, "description": "skip this many chances first"},
	"every":       object{"type": "integer", "minimum": 0, "description": "strike every Nth chance; default every chance"},
	"probability": object{"type": "number", "minimum": 0, "maximum": 1, "description": "the share of the remaining chances to strike, from 0 to 1; default all"},
	"limit":       object{"type": "integer", "minimum": 0, "description": "end after so many strikes; default never"},
	"delay":       object{"type": "string", "description": "for slow-reply and early-redelivery, such as 2s; default 1s"},
}

var faultKinds = []sqsserver.FaultKind{
	sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultOverLimit, sqsserver.FaultDropConnection,
	sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultWrongCounts, sqsserver.FaultFailEntry,
	sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery, sqsserver.FaultLoseDelete, sqsserver.FaultStaleHandle,
	sqsserver.FaultLoseLease,
}

// keysOf returns the keys of a form, for errors about unknown keys.
func keysOf(form any) []string {
	switch form.(type) {
	case *sqsserver.Fault:
		return slices.Sorted(maps.Keys(faultProperties))
	case *queueForm:
		return slices.Sorted(maps.Keys(queueProperties))
	}
	return nil
}
