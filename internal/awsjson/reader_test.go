package awsjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/awsjson"
)

// value reads whatever comes, as encoding/json would have it.
func value(r *awsjson.Reader) any {
	object := map[string]any{}
	for name := range r.Members() {
		key := string(name)
		switch key {
		case "text":
			object[key] = r.Text()
		case "texts":
			object[key] = r.Texts(nil)
		case "map":
			object[key] = r.TextMap()
		case "blob":
			object[key] = r.Blob()
		case "number":
			object[key] = r.Int32()
		case "list":
			var list []any
			for range r.Elements() {
				list = append(list, value(r))
			}
			object[key] = list
		default:
			r.Skip()
		}
	}
	return object
}

func TestReader(t *testing.T) {
	tests := []struct {
		name, json string
		want       any
		nulls      int
	}{
		{"nothing in it", `{}`, map[string]any{}, 0},
		{"all kinds", ` {"text":"a\"\u00e9\ud83d\ude00\/","texts":["a","b"],"map":{"k":"v"},"blob":"AQID","number":-7,"list":[{"text":"b"},{}]} `,
			map[string]any{"text": "a\"é😀/", "texts": []string{"a", "b"}, "map": map[string]string{"k": "v"}, "blob": []byte{1, 2, 3},
				"number": int32(-7), "list": []any{map[string]any{"text": "b"}, map[string]any{}}}, 0},
		{"unknown members", `{"x":[1,2.5e-3,true,{"y":"z"}],"text":"a"}`, map[string]any{"text": "a"}, 0},
		{"nulls", `{"text":null,"x":[null,{"y":null}]}`, map[string]any{}, 3},
		{"the last of equal members", `{"text":"a","text":"b"}`, map[string]any{"text": "b"}, 0},
		{"half of a surrogate pair", `{"text":"\ud83d"}`, map[string]any{"text": "\xed\xa0\xbd"}, 0},
	}
	var r awsjson.Reader // one for all: nothing of a value is left for the next
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r.Reset([]byte(test.json))
			got := value(&r)
			r.End()
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if r.Nulls() != test.nulls {
				t.Errorf("%d nulls, want %d", r.Nulls(), test.nulls)
			}
		})
	}
}

// The first problem is told, with its place, and nothing is read behind it.
func TestProblems(t *testing.T) {
	mine := errors.New("mine")
	tests := []struct {
		name, json string
		want       error
	}{
		{"no object", `[]`, &awsjson.SyntaxError{Offset: 0, Problem: "an object is expected"}},
		{"another type", `{"text":1}`, &awsjson.SyntaxError{Offset: 8, Problem: "a string is expected"}},
		{"something behind", `{} x`, &awsjson.SyntaxError{Offset: 3, Problem: "something follows the object"}},
		{"the caller's own", `{"list":[{"mine":1}],"text":1}`, mine},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r awsjson.Reader
			r.Reset([]byte(test.json))
			for name := range r.Members() {
				switch string(name) {
				case "text":
					r.Text()
				case "list":
					r.Skip()
					r.Fail(mine)
				}
			}
			r.End()
			if diff := cmp.Diff(test.want.Error(), r.Err().Error()); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
			if again := r.Text(); again != "" {
				t.Errorf("read %q behind the problem", again)
			}
		})
	}
}

// FuzzText: what is written is read as it was, here and by encoding/json.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "plain and longer than eight bytes", `{"a":"b\\c"}`, "\x00\x1f\x7f\n\r\t", "Zoë 😀\u2028", "a\xffb\xed\xa0\xbd", strings.Repeat(`"`, 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := awsjson.AppendText(nil, text)
		want := text
		if !utf8.ValidString(text) {
			want = string([]rune(text))
		}
		var r awsjson.Reader
		r.Reset(written)
		got, quoted := r.Bytes()
		if r.End(); r.Err() != nil || string(got) != want {
			t.Errorf("%q was written as %s and read as %q, %v", text, written, got, r.Err())
		}
		if unescaped := awsjson.Unescape(string(quoted)); unescaped != want {
			t.Errorf("%q was written as %s and unescaped to %q", text, written, unescaped)
		}
		var theirs string
		if err := json.Unmarshal(written, &theirs); err != nil || theirs != want {
			t.Errorf("%q was written as %s, which encoding/json reads as %q, %v", text, written, theirs, err)
		}
	})
}

// Shared texts are read like others.
func TestShare(t *testing.T) {
	const body = `{"list":[{"text":"a"},{"text":"b\n"},{"text":""},{"texts":["c","d\u00e9"]}],"text":"Zoë"}`
	var alone, shared awsjson.Reader
	alone.Reset([]byte(body))
	shared.Reset([]byte(body))
	shared.Share()
	if diff := cmp.Diff(value(&alone), value(&shared)); diff != "" || shared.Err() != nil {
		t.Errorf("%v; read (-alone +shared):\n%s", shared.Err(), diff)
	}
	many := []byte(`{"texts":["` + strings.Repeat(`one that has to be copied","`, 100) + `"]}`)
	allocations := testing.AllocsPerRun(100, func() {
		shared.Reset(many)
		shared.Share()
		for range shared.Members() {
			texts = shared.Texts(texts[:0])
		}
	})
	if len(texts) != 101 || allocations > 1 {
		t.Errorf("%v allocations for %d texts, want 1", allocations, len(texts))
	}
}

var texts []string
