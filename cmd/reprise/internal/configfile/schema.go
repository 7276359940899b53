package configfile

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Keys are the keys that a configuration may have besides those of queues, pools and faults.
type Keys struct {
	// Top are keys of the file, Consume those below a queue's consume.
	Top, Consume keyList
}

type keyList []Key

// Key is a key with the name of a command-line flag.
type Key struct {
	Name  string
	Type  string   // of the value, in JSON Schema
	List  bool     // it may have a list of such values; its flag is a [pflag.SliceValue]
	Words []string // those it may have; nil: any
	About string
}

func (l keyList) have(name string) bool {
	return slices.ContainsFunc(l, func(k Key) bool { return k.Name == name })
}

// list reports whether the key called name may have a list.
func (l keyList) list(name string) bool {
	return slices.ContainsFunc(l, func(k Key) bool { return k.Name == name && k.List })
}

// Schema returns the JSON Schema of configurations with these keys. Editors use it to complete and check files. Read accepts what it
// accepts, except for values that only the server or the consumer can check, such as an
// address or the range of an attribute.
func Schema(keys Keys) ([]byte, error) {
	properties := object{
		"queues": object{"type": "array", "items": reference("queue"), "description": "queues: serve and up create them, run and up consume them"},
		"pools": object{"type": "object", "additionalProperties": reference("pool"),
			"description": "places for messages at work that several queues share, by the name of the pool"},
		"faults": object{"type": "object", "additionalProperties": reference("faults"),
			"description": "faults by the name of the queue; \"*\" is every queue"},
	}
	for _, key := range keys.Top {
		properties[key.Name] = key.schema()
	}
	consumed := object{}
	for _, key := range keys.Consume {
		consumed[key.Name] = key.schema()
	}
	text, err := json.MarshalIndent(object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Configuration of reprise serve, run and up",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
		"$defs": object{
			"queue": object{
				"type": "object", "properties": queueProperties, "additionalProperties": false, "required": []string{"name"},
				"dependentRequired": object{"max-receives": []string{"dead-letter"}},
			},
			"consume": object{"type": []string{"object", "null"}, "properties": consumed, "additionalProperties": false},
			"pool":    object{"type": "object", "properties": poolProperties, "additionalProperties": false, "required": []string{"concurrency"}},
			"faults":  object{"type": "array", "items": reference("fault")},
			"fault":   object{"type": "object", "properties": faultProperties, "additionalProperties": false, "required": []string{"kind"}},
		},
	}, "", "  ")
	return append(text, '\n'), err
}

// schema returns the schema of the key's value.
func (k Key) schema() object {
	single := object{"type": k.Type}
	if k.Words != nil {
		single["enum"] = k.Words
	}
	if !k.List {
		single["description"] = k.About
		return single
	}
	single["type"] = []string{"string", "integer"} // a code, say
	return object{"anyOf": []object{single, {"type": "array", "items": single}}, "description": k.About}
}

// object is an object of JSON; encoding/json sorts its members.
type object map[string]any

func reference(definition string) object { return object{"$ref": "#/$defs/" + definition} }

// queueProperties are the keys of a queue: queueForm's, and its faults.
var queueProperties = object{
	"name": object{"type": "string", "minLength": 1, "description": "a name that ends in .fifo makes a FIFO queue; for run it may be a URL"},
	"attributes": object{
		"type": "object", "propertyNames": object{"enum": daemon.QueueAttributes},
		"additionalProperties": object{"type": []string{"string", "number", "boolean"}},
		"description":          "attributes of CreateQueue",
	},
	"dead-letter":  object{"type": "string", "description": "name of the dead-letter queue, which is created if it does not exist"},
	"max-receives": object{"type": "integer", "minimum": 1, "maximum": 1000, "description": "receives after which a message goes to the dead-letter queue; default 20"},
	"tags":         object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "added to the tags that the queue has"},
	"faults":       reference("faults"),
	"consume":      reference("consume"),
}

// poolProperties are the keys of a pool.
var poolProperties = object{
	"concurrency": object{"type": "integer", "minimum": 1, "maximum": maxPool, "description": "how many messages its queues handle at once"},
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
	case *poolForm:
		return slices.Sorted(maps.Keys(poolProperties))
	}
	return nil
}
