package awsjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
		{"halves of surrogate pairs", `{"text":"\ud83d\ud800 \udfff"}`, map[string]any{"text": "\xed\xa0\xbd\xed\xa0\x80 \xed\xbf\xbf"}, 0},
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
		{"no colon", `{"text" "a"}`, &awsjson.SyntaxError{Offset: 8, Problem: "a colon is missing"}},
		{"no comma", `{"text":"a" "text":"b"}`, &awsjson.SyntaxError{Offset: 12, Problem: "a comma or '}' is expected"}},
		{"no value", `{"list":[1,]}`, &awsjson.SyntaxError{Offset: 11, Problem: "a value is expected"}},
		{"no end of a string", `{"text":"a`, &awsjson.SyntaxError{Offset: 10, Problem: "a string has no end or holds a control character that is not escaped"}},
		{"no end of a string behind an escape", `{"text":"\u0061`, &awsjson.SyntaxError{Offset: 15, Problem: "a string has no end or holds a control character that is not escaped"}},
		{"a string that ends in a backslash", `{"text":"\`, &awsjson.SyntaxError{Offset: 10, Problem: "a string ends in a backslash"}},
		{"an unknown escape", `{"text":"\x"}`, &awsjson.SyntaxError{Offset: 10, Problem: "an unknown escape sequence is in a string"}},
		{"an escape that is too short", `{"text":"\u12"}`, &awsjson.SyntaxError{Offset: 10, Problem: `\u needs four hexadecimal digits`}},
		{"a string that is not UTF-8", "{\"text\":\"\xff\"}", &awsjson.SyntaxError{Offset: 10, Problem: "the string before is not UTF-8"}},
		{"no number", `{"number":"1"}`, &awsjson.SyntaxError{Offset: 10, Problem: "an integer is expected"}},
		{"a fraction", `{"number":1.5}`, &awsjson.SyntaxError{Offset: 13, Problem: "the number before is not an integer"}},
		{"a number beyond 32 bits", `{"number":2147483648}`, &awsjson.SyntaxError{Offset: 20, Problem: "the number before is out of range"}},
		{"no base64", `{"blob":"AQI"}`, &awsjson.SyntaxError{Offset: 13, Problem: "the string before is not base64"}},
		{"more strings than any request has", `{"texts":[` + listOf(2001, `""`) + `]}`, &awsjson.SyntaxError{Offset: 6010, Problem: "there are more than 2000 strings"}},
		{"more named strings than any request has", `{"map":{` + namedTexts(2001) + `}}`, &awsjson.SyntaxError{Offset: 30020, Problem: "there are more than 2000 strings"}},
		{"too deep", `{"list":` + nested(101) + `}`, &awsjson.SyntaxError{Offset: 108, Problem: "values are nested more than 100 deep"}},
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
				case "texts":
					r.Texts(nil)
				case "map":
					r.TextMap()
				case "number":
					r.Int32()
				case "blob":
					r.Blob()
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

func listOf(n int, value string) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// namedTexts is the inside of an object of n strings, 15 bytes each.
func namedTexts(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"name-%04d":""`, i))
	}
	return strings.Join(list, ",")
}

// The limits are allowed, and values beside each other are not nested.
func TestLimits(t *testing.T) {
	for _, text := range []string{
		`{"texts":[` + listOf(2000, `""`) + `]}`,
		`{"map":{` + namedTexts(2000) + `}}`,
		`{"x":` + nested(awsjson.MaxDepth) + `}`,
		`{"x":[` + listOf(2*awsjson.MaxDepth, `[]`) + `]}`,
	} {
		var r awsjson.Reader
		r.Reset([]byte(text))
		value(&r)
		if r.End(); r.Err() != nil {
			t.Errorf("%.20s...: %v", text, r.Err())
		}
	}
}

// A reader needs no memory for a short string with escapes, as it keeps its buffer; it does not keep a large one.
func TestBufferIsKeptIfSmall(t *testing.T) {
	short := []byte(`"\n"`)
	var r awsjson.Reader
	read := func(text []byte) float64 {
		return testing.AllocsPerRun(1, func() { // which runs it once before it counts
			r.Reset(text)
			if r.Bytes(); r.Err() != nil {
				t.Fatal(r.Err())
			}
		})
	}
	if n := read(short); n != 0 {
		t.Errorf("%v allocations for a second short string, want 0", n)
	}
	large := []byte(`"` + strings.Repeat(`\n`, 1<<20) + `"`)
	if n := read(large); n == 0 {
		t.Error("the buffer of a string of 1 MiB is kept")
	}
}

// withoutHalves replaces halves of surrogate pairs, which a reader keeps in three bytes, as encoding/json does.
func withoutHalves(text string) string {
	var b strings.Builder
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		if c == utf8.RuneError && size == 1 {
			size = 3
		}
		b.WriteRune(c)
		text = text[size:]
	}
	return b.String()
}

// agree checks that a text is read as encoding/json reads it, by each method that reads a value.
// Readers are stricter about UTF-8 and about null, and encoding/json replaces halves of surrogate pairs.
func agree(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) || strings.Trim(text, " \t\r\n") == "null" {
		return
	}
	var r awsjson.Reader
	begin := func() { r.Reset([]byte(text)) }
	compare := func(what string, err error, got, want any) {
		t.Helper()
		if r.End(); (err == nil) != (r.Err() == nil) {
			t.Errorf("%s of %q: the problem is %v, for encoding/json %v", what, text, r.Err(), err)
		} else if err == nil && got != want {
			t.Errorf("%s of %q: %#v, encoding/json reads %#v", what, text, got, want)
		}
	}

	var raw json.RawMessage
	begin()
	r.Skip()
	compare("Skip", json.Unmarshal([]byte(text), &raw), nil, nil)

	var number int32
	begin()
	n := r.Int32()
	compare("Int32", json.Unmarshal([]byte(text), &number), n, number)

	var theirs string
	begin()
	ours := withoutHalves(r.Text())
	compare("Text", json.Unmarshal([]byte(text), &theirs), ours, theirs)

	var blob []byte
	begin()
	b := r.Blob()
	compare("Blob", json.Unmarshal([]byte(text), &blob), string(b), string(blob))
}

// near is JSON with all that its grammar has.
var near = []string{
	`{"a":1,"b":[true,false,null,{}],"c":{"d":[]}}`,
	` { "a" : 1 , "b" : [ 1 , 2 ] } `,
	"\t[\r\n1,\n-0.5e+10, 1E-2]\n",
	`"a\"\\\/\b\f\n\r\t "`,
	`"eight bytes and more\u00e9\u0041"`,
	`"\ud83d\ude00\ud800\udc00\udbff\udfff"`,
	`"\ud7ff\ud800\udbff\udc00\udfff\ue000\uffff"`,
	`"\ud83d\n", `,
	`"AQID+/=="`,
	`"AQI="`,
	`true`, `false`, `0`, `-0`, `-1`, `10`, `214748364`, `-2147483648`, `2147483647`, `2147483649`, `4294967297`, `99999999999999999999`,
	fmt.Sprint(math.MinInt64),
}

// FuzzReader: texts are read as encoding/json reads them.
func FuzzReader(f *testing.F) {
	for _, seed := range near {
		f.Add(seed)
	}
	f.Fuzz(agree)
}

// Texts with one byte replaced, left out or added are read as encoding/json reads them, and so
// are their beginnings.
func TestNearJSON(t *testing.T) {
	const others = "\x00\t\n\x1f !\"#+,-./01789:;AFGZ[\\]^_`abefgnqtuxz{|}~\x7f"
	for _, text := range near {
		for i := range len(text) + 1 {
			agree(t, text[:i])
			for _, c := range others {
				agree(t, text[:i]+string(c)+text[i:])
				if i < len(text) {
					agree(t, text[:i]+string(c)+text[i+1:])
				}
			}
			if i < len(text) {
				agree(t, text[:i]+text[i+1:])
			}
		}
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
