package sqsserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// compare lists, in an order that is always the same, where a reply is not what a
// step wants.
func compare(path string, want, got any) (differences []string) {
	if meets(want, got) {
		return nil
	}
	wantObject, isObject := want.(map[string]any)
	gotObject, isObjectToo := got.(map[string]any)
	wantList, isList := want.([]any)
	gotList, isListToo := got.([]any)
	switch {
	case isObject && isObjectToo:
		names := maps.Clone(wantObject)
		maps.Copy(names, gotObject)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			differences = append(differences, compare(strings.TrimPrefix(path+"."+name, "."), wantObject[name], gotObject[name])...)
		}
	case isList && isListToo && len(wantList) == len(gotList):
		for i := range wantList {
			differences = append(differences, compare(fmt.Sprintf("%s[%d]", path, i), wantList[i], gotList[i])...)
		}
	case !reflect.DeepEqual(want, got):
		differences = append(differences, fmt.Sprintf("%s: %s, want %s", path, printed(got), printed(want)))
	}
	return differences
}

// meets reports whether want is a pattern, and got meets it.
func meets(want, got any) bool {
	pattern, _ := want.(string)
	if pattern == "*" {
		return got != nil
	}
	text, isText := got.(string)
	if kept, other := strings.CutPrefix(pattern, "≠"); other {
		return isText && text != kept
	}
	kept, later := strings.CutPrefix(pattern, ">")
	return later && isText && text > kept
}

// printed shows a value of JSON.
func printed(value any) string {
	if value == nil {
		return "none"
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// trim removes members that mean the same as absent ones: the metadata that the SDK adds, and
// members that are null, false or empty. TestReplies checks that this server leaves empty
// members out, as AWS does.
func trim(value any) any {
	object, isObject := value.(map[string]any)
	if list, isList := value.([]any); isList {
		for i := range list {
			list[i] = trim(list[i])
		}
	}
	if !isObject {
		return value
	}
	for name, member := range object {
		member = trim(member)
		list, isList := member.([]any)
		part, isPart := member.(map[string]any)
		if member == nil || member == false || name == "ResultMetadata" || isList && len(list) == 0 || isPart && len(part) == 0 {
			delete(object, name)
		} else {
			object[name] = member
		}
	}
	return object
}

// keep stores the values that want names with "=x" and puts them into want.
func keep(want, got any, values map[string]string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, value := range w {
			text, isText := value.(string)
			if key, named := strings.CutPrefix(text, "="); isText && named && g[name] != nil {
				values[key] = fmt.Sprint(g[name])
				w[name] = g[name]
				continue
			}
			keep(value, g[name], values)
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			keep(w[i], g[i], values)
		}
	}
}
