package mapping

import (
	"fmt"
	"strings"
	"testing"
)

// TestFilter holds the patterns to
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html and
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html.
func TestFilter(t *testing.T) {
	for _, test := range []struct {
		body     string // what stands at "body" in the pattern
		matching []string
		others   []string
	}{
		{`{"a":["x"]}`, []string{`{"a":"x"}`, `{"a":["y","x"],"b":1}`, `[{"a":"x"}]`}, []string{`{"a":"y"}`, `{"a":"X"}`, `{"a":{"x":1}}`, `{}`, `[]`, `x`, `"x"`, ``, `{"a":"x"`, `["x"]`}},
		{`{"a":["x","y"]}`, []string{`{"a":"x"}`, `{"a":"y"}`}, []string{`{"a":"z"}`}},
		{`{"a":["x"],"b":["y"]}`, []string{`{"a":"x","b":"y"}`}, []string{`{"a":"x"}`, `{"a":"x","b":"z"}`}},
		{`{"$or":[{"a":["x"]},{"b":["y"]}]}`, []string{`{"a":"x"}`, `{"b":"y"}`}, []string{`{"a":"y","b":"x"}`, `{}`}},
		{`{"c":[1],"$or":[{"a":["x"]},{"b":["y"]}]}`, []string{`{"a":"x","c":1}`}, []string{`{"a":"x"}`, `{"c":1}`}},
		{`{"a":{"b":["x"]}}`, []string{`{"a":{"b":"x"}}`, `{"a":[{"b":"y"},{"b":"x"}]}`}, []string{`{"a":"x"}`, `{"b":"x"}`, `{"a":[]}`}},
		{`{"a":[null]}`, []string{`{"a":null}`}, []string{`{}`, `{"a":""}`, `{"a":false}`}},
		{`{"a":[""]}`, []string{`{"a":""}`}, []string{`{}`, `{"a":null}`, `{"a":" "}`}},
		{`{"a":[true]}`, []string{`{"a":true}`}, []string{`{"a":"true"}`, `{"a":false}`}},
		{`{"a":[300]}`, []string{`{"a":300}`}, []string{`{"a":300.0}`, `{"a":3e2}`, `{"a":"300"}`}},
		{`{"a":[{"prefix":"ab"}]}`, []string{`{"a":"abc"}`, `{"a":"ab"}`}, []string{`{"a":"cab"}`, `{"a":1}`, `{}`}},
		{`{"a":[{"suffix":"ab"}]}`, []string{`{"a":"cab"}`}, []string{`{"a":"abc"}`, `{}`}},
		{`{"a":[{"equals-ignore-case":"Ab"}]}`, []string{`{"a":"aB"}`}, []string{`{"a":"abc"}`}},
		{`{"a":[{"anything-but":"x"}]}`, []string{`{"a":"y"}`, `{"a":1}`}, []string{`{"a":"x"}`, `{}`}},
		{`{"a":[{"anything-but":["x",1]}]}`, []string{`{"a":"y"}`, `{"a":2}`}, []string{`{"a":"x"}`, `{"a":1}`, `{}`}},
		{`{"a":[{"numeric":[">",9999]}]}`, []string{`{"a":10000}`, `{"a":1e9}`}, []string{`{"a":9999}`, `{"a":"10000"}`, `{}`}},
		{`{"a":[{"numeric":[">=",1,"<",2.5]}]}`, []string{`{"a":1}`, `{"a":2.49}`}, []string{`{"a":0.9}`, `{"a":2.5}`}},
		{`{"a":[{"numeric":["=",300]}]}`, []string{`{"a":300}`, `{"a":300.0}`, `{"a":3e2}`}, []string{`{"a":301}`, `{"a":null}`}},
		{`{"a":[{"numeric":["<=",0]}]}`, []string{`{"a":0}`, `{"a":-1}`}, []string{`{"a":0.1}`}},
		{`{"a":[{"exists":true}]}`, []string{`{"a":1}`, `{"a":null}`, `{"a":["x"]}`}, []string{`{}`, `{"a":{"b":1}}`, `{"a":[]}`}},
		{`{"a":[{"exists":false}]}`, []string{`{}`, `{"a":{"b":1}}`}, []string{`{"a":1}`, `{"a":null}`, `x`}},
		{`{"a":{"b":[{"exists":false}]}}`, []string{`{}`, `{"a":{}}`, `{"a":1}`, `{"a":[]}`}, []string{`{"a":{"b":1}}`}},
		{`{"a":["x",{"prefix":"y"},{"exists":false}]}`, []string{`{"a":"x"}`, `{"a":"yes"}`, `{}`}, []string{`{"a":"z"}`}},
		// A text matches a pattern about a text only, and JSON one about JSON.
		{`["ping",{"prefix":"go"}]`, []string{`ping`, `gopher`}, []string{`pong`, `{"a":"ping"}`, `["ping"]`, `"ping"`}},
	} {
		t.Run(test.body, func(t *testing.T) {
			f, err := compileFilters([]string{`{"body":` + test.body + `}`})
			if err != nil {
				t.Fatal(err)
			}
			for _, body := range test.matching {
				if !f.match(body) {
					t.Errorf("%s does not match", body)
				}
			}
			for _, body := range test.others {
				if f.match(body) {
					t.Errorf("%s matches", body)
				}
			}
		})
	}
}

// TestFiltersAreAlternatives: one of several is enough, and none or an empty one lets
// everything pass.
func TestFiltersAreAlternatives(t *testing.T) {
	for _, test := range []struct {
		filters []string
		body    string
		want    bool
	}{
		{nil, "x", true},
		{[]string{`{}`}, "x", true},
		{[]string{`{"body":["a"]}`, `{"body":{"b":[1]}}`}, `{"b":1}`, true},
		{[]string{`{"body":["a"]}`, `{"body":{"b":[1]}}`}, `a`, true},
		{[]string{`{"body":["a"]}`, `{"body":{"b":[1]}}`}, `b`, false},
	} {
		f, err := compileFilters(test.filters)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.match(test.body); got != test.want {
			t.Errorf("%s by %v: %v, want %v", test.body, test.filters, got, test.want)
		}
	}
}

// TestFilterRefused: what Lambda refuses, and what is not supported, is named.
func TestFilterRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		``:                                  "not JSON",
		`{"body":["a"]} x`:                  "not JSON",
		`["a"]`:                             "not an object",
		`{"data":{"a":["x"]}}`:              `"data": on SQS Lambda filters by the body only`,
		`{"messageAttributes":{}}`:          `"messageAttributes": on SQS`,
		`{"body":null}`:                     "body is null",
		`{"body":"a"}`:                      `the condition of "body" is not a list`,
		`{"body":[]}`:                       `the condition of "body" is not a list`,
		`{"body":{}}`:                       "an object without members",
		`{"body":{"a":"x"}}`:                `the condition of "a" is not a list with a value or a rule in it: write it like ["value"]`,
		`{"body":{"a":[["x"]]}}`:            "a list in a list",
		`{"body":{"a":[{}]}}`:               "a rule has one operator, this one has 0",
		`{"body":{"a":[{"cidr":"1/2"}]}}`:   `no operator "cidr"`,
		`{"body":{"a":[{"wildcard":"*"}]}}`: `no operator "wildcard"`,
		`{"body":{"a":[{"prefix":1}]}}`:     "the operand of prefix is not a string",
		`{"body":{"a":[{"prefix":{"equals-ignore-case":"x"}}]}}`: "the operand of prefix is not a string",
		`{"body":{"a":[{"exists":"true"}]}}`:                     "the operand of exists",
		`{"body":{"a":[{"anything-but":{"prefix":"x"}}]}}`:       "the operand of anything-but",
		`{"body":{"a":[{"anything-but":null}]}}`:                 "the operand of anything-but",
		`{"body":{"a":[{"numeric":[">"]}]}}`:                     "the operand of numeric",
		`{"body":{"a":[{"numeric":["!=",1]}]}}`:                  "numeric has != 1",
		`{"body":{"a":[{"numeric":[">","1"]}]}}`:                 "numeric has > 1",
		`{"body":{"$or":{"a":[1]}}}`:                             "$or is not a list",
		`{"body":{"$or":["a"]}}`:                                 "$or is not a list",
		`{"body":{"$or":[{"a":1}]}}`:                             `the condition of "a"`,
		`{"body":{"a":{"b":1}}}`:                                 `the condition of "b"`,
	} {
		_, err := compileFilters([]string{pattern})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: the error is %v, want it to name the pattern and %q", pattern, err, want)
		}
	}
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf(`{"body":[%d]}`, i)
	}
	if _, err := compileFilters(many); err == nil || !strings.Contains(err.Error(), "11 filters") {
		t.Errorf("11 filters: the error is %v", err)
	}
}

// FuzzFilter: no pattern and no body breaks a filter, and what a pattern matches it
// matches among others too.
func FuzzFilter(f *testing.F) {
	f.Add(`{"body":{"a":["x",{"prefix":"y"}],"$or":[{"b":[1]},{"c":[{"exists":false}]}]}}`, `{"a":"x","b":1}`)
	f.Add(`{"body":["ping"]}`, `ping`)
	f.Add(`{"body":{"a":[{"numeric":[">",1]}]}}`, `{"a":[1,2]}`)
	f.Fuzz(func(t *testing.T, pattern, body string) {
		one, err := compileFilters([]string{pattern})
		if err != nil {
			return
		}
		both, err := compileFilters([]string{`{"body":[{"exists":false}]}`, pattern})
		if err != nil {
			t.Fatal(err)
		}
		if one.match(body) != both.match(body) {
			t.Errorf("a filter that matches nothing changes what %s does with %s", pattern, body)
		}
	})
}

// FuzzFailures: no reply breaks the reading, and it names messages of the batch only.
func FuzzFailures(f *testing.F) {
	f.Add(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`)
	f.Add(`{"batchItemFailures":[{"foo":null}]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, reply string) {
		failed, err := failures([]byte(reply), []message{{id: "a"}, {id: "b"}})
		if err != nil && len(failed) > 0 {
			t.Errorf("%s fails as a whole (%v) and names %v", reply, err, failed)
		}
		for id := range failed {
			if id != "a" && id != "b" || !strings.Contains(reply, "itemIdentifier") && !strings.Contains(reply, `\u`) {
				t.Errorf("%s names %q", reply, id)
			}
		}
	})
}
