// Package table serves the part of DynamoDB that records of idempotency need: tables whose key is
// one string, and conditional reads and writes of single items. Every other action, and every
// other expression, is refused by name.
package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Table is a table whose partition key is a string, without a sort key.
type Table struct{ Name, Key string }

// Journal keeps items on a disk: see emulator.Journal.
type Journal interface {
	Scan(prefix []byte, f func(key, value []byte) error) error
	Commit(b *sqsserver.Batch, sync bool) error
}

// itemKey begins the journal's keys of items; the table's name, a zero byte and the
// item's key follow.
const itemKey = 'i'

// TargetPrefix begins the X-Amz-Target of requests to DynamoDB.
const TargetPrefix = "DynamoDB_20120810."

// Tables answers DynamoDB's API. It is made by [New].
type Tables struct {
	journal Journal // nil: none

	mu    sync.Mutex
	keys  map[string]string          // of the tables, by name
	items map[string]map[string]item // by table and key
}

// item is an item: attributes by name, in the API's form.
type item map[string]value

// value is the value of an attribute: its type, such as S or N, and the content.
type value map[string]any

// New returns tables, with their items in the journal; without a journal items are in memory.
func New(tables []Table, journal Journal) (*Tables, error) {
	t := &Tables{journal: journal, keys: make(map[string]string), items: make(map[string]map[string]item)}
	for _, table := range tables {
		t.keys[table.Name] = table.Key
		t.items[table.Name] = make(map[string]item)
	}
	if journal == nil {
		return t, nil
	}
	err := journal.Scan([]byte{itemKey}, func(key, text []byte) error {
		table, id, found := bytes.Cut(key[1:], []byte{0})
		items, known := t.items[string(table)]
		if found && !known {
			return nil // of another template
		}
		var it item
		if err := json.Unmarshal(text, &it); err != nil || !found {
			return fmt.Errorf("the item %q of the journal cannot be understood: %w", key, err)
		}
		items[string(id)] = it
		return nil
	})
	return t, err
}

// request has the members of all actions' inputs.
type request struct {
	TableName                           string
	Key, Item                           item
	UpdateExpression                    string
	ConditionExpression                 string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]value
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
}

// failure is an error in the API's form.
type failure struct {
	code, message string
	item          item // that did not meet the condition, if it was asked for
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func invalid(format string, args ...any) *failure {
	return &failure{code: "ValidationException", message: fmt.Sprintf(format, args...)}
}

const maxRequest = 1 << 20

// ServeHTTP answers the API. Requests are not authenticated.
func (t *Tables) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := t.serve(w, r)
	if err == nil {
		write(w, http.StatusOK, answer)
		return
	}
	f, ok := errors.AsType[*failure](err)
	status := http.StatusBadRequest
	if !ok {
		f, status = &failure{code: "InternalServerError", message: err.Error()}, http.StatusInternalServerError
	}
	writeFailure(w, status, f)
}

// Refuse answers a request that is not permitted.
func (t *Tables) Refuse(w http.ResponseWriter, err error) {
	writeFailure(w, http.StatusForbidden, &failure{code: "AccessDeniedException", message: err.Error()})
}

func writeFailure(w http.ResponseWriter, status int, f *failure) {
	answer := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + f.code, "message": f.message}
	if f.item != nil {
		answer["Item"] = f.item
	}
	write(w, status, answer)
}

func write(w http.ResponseWriter, status int, answer map[string]any) {
	text, err := json.Marshal(answer)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte("{}") // values that were read as JSON can be written
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10)) // SDKs check it
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller may have gone
}

func (t *Tables) serve(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	var in request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	if err := decoder.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return nil, &failure{code: "SerializationException", message: err.Error()}
	}
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), TargetPrefix)
	t.mu.Lock()
	defer t.mu.Unlock()
	key, known := t.keys[in.TableName[strings.LastIndexByte(in.TableName, '/')+1:]]
	if !known {
		return nil, &failure{code: "ResourceNotFoundException", message: fmt.Sprintf("Requested resource not found: Table: %s not found", in.TableName)}
	}
	in.TableName = in.TableName[strings.LastIndexByte(in.TableName, '/')+1:]
	switch action {
	case "GetItem", "UpdateItem", "DeleteItem":
	case "PutItem":
		in.Key = item{key: in.Item[key]}
	default:
		return nil, &failure{code: "UnknownOperationException", message: fmt.Sprintf("%s is not emulated: GetItem, PutItem, UpdateItem and DeleteItem are", action)}
	}
	id, ok := in.Key[key]["S"].(string)
	if !ok || id == "" || len(in.Key) != 1 {
		return nil, invalid("the key of table %s is one string that is not empty, %s", in.TableName, key)
	}
	return t.act(action, &in, key, id)
}

// act carries out an action on an item.
func (t *Tables) act(action string, in *request, key, id string) (map[string]any, error) {
	items := t.items[in.TableName]
	old := items[id]
	if action == "GetItem" {
		if old == nil {
			return map[string]any{}, nil
		}
		return map[string]any{"Item": old}, nil
	}
	e := expression{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, item: old}
	if in.ConditionExpression != "" {
		holds, err := e.condition(in.ConditionExpression)
		switch {
		case err != nil:
			return nil, err
		case !holds:
			f := &failure{code: "ConditionalCheckFailedException", message: "The conditional request failed"}
			if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
				f.item = old
			}
			return nil, f
		}
	}
	var changed item // the attributes that the action has set
	next := in.Item
	switch action {
	case "DeleteItem":
		next = nil
	case "UpdateItem":
		var err error
		if next, changed, err = e.update(in.UpdateExpression); err != nil {
			return nil, err
		}
		next[key] = in.Key[key]
	}
	if err := t.keep(in.TableName, id, next); err != nil {
		return nil, err
	}
	switch answer := map[string]any{}; {
	case in.ReturnValues == "ALL_OLD" && old != nil:
		answer["Attributes"] = old
		return answer, nil
	case in.ReturnValues == "ALL_NEW":
		answer["Attributes"] = next
		return answer, nil
	case in.ReturnValues == "UPDATED_NEW":
		answer["Attributes"] = changed
		return answer, nil
	default:
		return answer, nil
	}
}

// keep stores an item, or removes it if next is nil: first on the disk.
func (t *Tables) keep(table, id string, next item) error {
	if t.journal != nil {
		var b sqsserver.Batch
		key := append(append(append([]byte{itemKey}, table...), 0), id...)
		if next == nil {
			b.Delete(key)
		} else {
			text, err := json.Marshal(next)
			if err != nil {
				return err
			}
			b.Set(key, text)
		}
		if err := t.journal.Commit(&b, true); err != nil {
			return err
		}
	}
	if next == nil {
		delete(t.items[table], id)
	} else {
		t.items[table][id] = next
	}
	return nil
}
