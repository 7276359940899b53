package envelope

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzParse: the object's members are those that encoding/json finds.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"a":1}`, ` { "a" : "b\"}" , "c":[{"d":"]"},[]] ,"e":{"f":{}}, "g" : null, "a":-2.5e3}`, `{"\u0061":true,"":""}`,
		`{`, `[{"a":1}]`, `{"a"}`, `{"a":"\ud83d"}`, "{\"\xff\":\"\xff\"}", "{\n\"a\":1\r\n}\t", `{"a":1}{}`, `{"a":"` + strings.Repeat("x", 100) + `"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal([]byte(text), &want) == nil && want != nil && len(want) > 0
		name := "a"
		for name = range want {
			break
		}
		o, ok := parse(text, name)
		if !ok {
			// A name that is escaped in the text does not stand there.
			if valid && strings.Contains(text, name) {
				t.Fatalf("%q is an object with %q, and was not read", text, name)
			}
			return
		}
		if !valid {
			t.Fatalf("%q was read as %q", text, o.members)
		}
		if got, want := slices.Sorted(maps.Keys(o.members)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
			t.Fatalf("members %q, want %q", got, want)
		}
		for name, raw := range want {
			if !bytes.Equal([]byte(o.members[name]), raw) {
				t.Errorf("member %q is %q, want %q", name, o.members[name], raw)
			}
			var s string
			isString := raw[0] == '"' && json.Unmarshal(raw, &s) == nil
			if got, ok := unquote(o.members[name]); ok != isString || got != s {
				t.Errorf("%q unquoted is %q, %v, want %q", raw, got, ok, s)
			}
		}
	})
}
