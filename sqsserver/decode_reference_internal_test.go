package sqsserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// What encoding/json reads from a request, for FuzzDecode.

// parseReference reads an object with encoding/json: without members that are
// null, the last of equal ones.
func parseReference(body []byte) (tree any, valid bool) {
	if !json.Valid(body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value func() any
	value = func() any {
		token, _ := decoder.Token()
		switch token {
		case json.Delim('{'):
			object := map[string]any{}
			for decoder.More() {
				name, _ := decoder.Token()
				if v := value(); v != nil {
					object[name.(string)] = v
				}
			}
			decoder.Token()
			return object
		case json.Delim('['):
			array := []any{}
			for decoder.More() {
				array = append(array, value())
			}
			decoder.Token()
			return array
		}
		return token
	}
	tree = value()
	_, valid = tree.(map[string]any)
	return tree, valid
}

// assignReference assigns the values of tree to an input by the names of its
// fields.
func assignReference(to reflect.Value, tree any) error {
	switch target := to.Addr().Interface().(type) {
	case *string:
		s, ok := tree.(string)
		if !ok {
			return fmt.Errorf("%v is no string", tree)
		}
		*target = s
		return nil
	case *OptionalInt:
		number, ok := tree.(json.Number)
		if !ok {
			return fmt.Errorf("%v is no number", tree)
		}
		n, err := strconv.ParseInt(number.String(), 10, 32)
		*target = Int(int32(n))
		return err
	case *[]byte:
		s, ok := tree.(string)
		if !ok {
			return fmt.Errorf("%v is no string", tree)
		}
		var err error
		*target, err = base64.StdEncoding.DecodeString(s)
		return err
	case *[]MessageAttribute:
		return assignAttributes(target, tree)
	}
	switch to.Kind() {
	case reflect.Slice:
		array, ok := tree.([]any)
		if !ok {
			return fmt.Errorf("%v is no array", tree)
		}
		if to.Type().Elem().Kind() == reflect.Struct && len(array) > maxBatchEntries {
			return errors.New("too many entries")
		}
		to.Set(reflect.MakeSlice(to.Type(), len(array), len(array)))
		for i, element := range array {
			if err := assignReference(to.Index(i), element); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		object, ok := tree.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", tree)
		}
		to.Set(reflect.MakeMap(to.Type()))
		for name, v := range object {
			s, ok := v.(string)
			if !ok {
				return fmt.Errorf("%v is no string", v)
			}
			to.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(s))
		}
		return nil
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", tree)
	}
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name := field.Name
		if name == "Tags" {
			name = "tags"
		}
		v, present := object[name]
		if field.Anonymous {
			v, present = tree, true
		}
		if !present {
			continue
		}
		if err := assignReference(to.Field(i), v); err != nil {
			return err
		}
	}
	return nil
}

func assignAttributes(to *[]MessageAttribute, tree any) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", tree)
	}
	for name, v := range object {
		var attribute MessageAttribute
		if err := assignReference(reflect.ValueOf(&attribute).Elem(), v); err != nil {
			return err
		}
		for _, list := range []string{"StringListValues", "BinaryListValues"} {
			values, present := v.(map[string]any)[list]
			var strings []string
			if !present {
				continue
			}
			if err := assignReference(reflect.ValueOf(&strings).Elem(), values); err != nil {
				return err
			}
			if len(strings) > 0 {
				return errors.New("lists of values")
			}
		}
		attribute.Name = name
		*to = append(*to, attribute)
	}
	*to = sortAttributes(*to)
	return nil
}
