package dynamostore

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// result returns the result of a completed item: our bytes, the JSON text that we and Powertools
// for Python keep in a string, or the JSON of any other value, because Powertools for TypeScript
// keeps DynamoDB's own values.
func result(item map[string]types.AttributeValue) ([]byte, error) {
	if b, ok := item[attrResult].(*types.AttributeValueMemberB); ok {
		return b.Value, nil
	}
	switch data := item[attrData].(type) {
	case nil:
		return nil, nil
	case *types.AttributeValueMemberS:
		return []byte(data.Value), nil
	default:
		value, err := plain(data)
		if err != nil {
			return nil, fmt.Errorf("the item's attribute %s: %w", attrData, err)
		}
		return json.Marshal(value)
	}
}

// plain converts a value of DynamoDB to the form that package json writes.
func plain(value types.AttributeValue) (any, error) {
	switch value := value.(type) {
	case *types.AttributeValueMemberS:
		return value.Value, nil
	case *types.AttributeValueMemberN:
		return json.Number(value.Value), nil
	case *types.AttributeValueMemberBOOL:
		return value.Value, nil
	case *types.AttributeValueMemberNULL:
		return nil, nil
	case *types.AttributeValueMemberB:
		return value.Value, nil
	case *types.AttributeValueMemberSS:
		return value.Value, nil
	case *types.AttributeValueMemberBS:
		return value.Value, nil
	case *types.AttributeValueMemberNS:
		numbers := make([]json.Number, len(value.Value))
		for i, n := range value.Value {
			numbers[i] = json.Number(n)
		}
		return numbers, nil
	case *types.AttributeValueMemberL:
		list := make([]any, len(value.Value))
		for i, member := range value.Value {
			var err error
			if list[i], err = plain(member); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *types.AttributeValueMemberM:
		object := make(map[string]any, len(value.Value))
		for name, member := range value.Value {
			var err error
			if object[name], err = plain(member); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("it has the type %T, which is not one of DynamoDB's", value)
}
