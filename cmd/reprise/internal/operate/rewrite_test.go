package operate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestRewrite: what is found in a body is replaced, attributes are set and removed, and a message that has nothing of
// that is the same afterwards.
func TestRewrite(t *testing.T) {
	text := func(value string) operate.Attribute { return operate.Attribute{Type: "String", Value: value} }
	for name, test := range map[string]struct {
		rewrite       operate.Rewrite
		before, after operate.Message
		same          bool
	}{
		"nothing": {
			operate.Rewrite{},
			operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"a": text("1")}},
			operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"a": text("1")}},
			true,
		},
		"each match": {
			operate.Rewrite{Find: `"currency":"(\w\w)K"`, Replace: `"currency":"${1}R"`},
			operate.Message{Body: `[{"currency":"EUK"},{"currency":"EUK"}]`},
			operate.Message{Body: `[{"currency":"EUR"},{"currency":"EUR"}]`},
			false,
		},
		"no match": {
			operate.Rewrite{Find: "SEK", Replace: "EUR"},
			operate.Message{Body: "NOK"},
			operate.Message{Body: "NOK"},
			true,
		},
		"away with it": {
			operate.Rewrite{Find: "-+"},
			operate.Message{Body: "-4--2"},
			operate.Message{Body: "42"},
			false,
		},
		"attributes": {
			operate.Rewrite{Set: map[string]string{"a": "2", "new": "3"}, Remove: []string{"gone", "absent"}},
			operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"a": {Type: "Number", Value: "1"}, "gone": text("4"), "stays": text("5")}},
			operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"a": {Type: "Number", Value: "2"}, "new": text("3"), "stays": text("5")}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			apply, err := test.rewrite.Compile()
			if err != nil {
				t.Fatal(err)
			}
			after, err := apply(test.before)
			if err != nil || after.Body != test.after.Body {
				t.Errorf("%v, the body is %q, want %q", err, after.Body, test.after.Body)
			}
			if diff := cmp.Diff(test.after.Attributes, after.Attributes); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			if same := operate.SameContent(&test.before, &after); same != test.same {
				t.Errorf("SameContent is %v of %+v and %+v", same, test.before, after)
			}
		})
	}
}

// TestRewriteMistakes: what cannot be meant is refused, and a message that SQS would refuse stays as it is.
func TestRewriteMistakes(t *testing.T) {
	for want, rewrite := range map[string]operate.Rewrite{
		"find cannot be used":       {Find: "("},
		"replace needs find":        {Replace: "x"},
		"between any two":           {Find: "x*", Replace: "y"},
		"remove has an empty name":  {Remove: []string{""}},
		"nor empty values":          {Set: map[string]string{"a": ""}},
		"attributes without a name": {Set: map[string]string{"": "x"}},
		"both set and removed":      {Set: map[string]string{"a": "x"}, Remove: []string{"a"}},
	} {
		if _, err := rewrite.Compile(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", rewrite, err, want)
		}
	}
	before := operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"bytes": {Type: "Binary", Binary: []byte{1}}}}
	for want, rewrite := range map[string]operate.Rewrite{
		"empty":                {Find: "x"},
		"is binary":            {Set: map[string]string{"bytes": "y"}},
		"written by consumers": {Set: map[string]string{"reprise-history": "y"}},
	} {
		apply, err := rewrite.Compile()
		if err != nil {
			t.Fatal(err)
		}
		after, err := apply(before)
		if err == nil || !strings.Contains(err.Error(), want) || !operate.SameContent(&before, &after) {
			t.Errorf("%+v: %v, want %q, and %+v", rewrite, err, want, after)
		}
	}
}

// TestRewriteIsBounded: neither many matches nor long replacements make a body of more than SQS permits, and what is
// just within the bounds is edited.
func TestRewriteIsBounded(t *testing.T) {
	const most = 1 << 20
	for name, test := range map[string]struct {
		rewrite operate.Rewrite
		body    string
		length  int // afterwards
		want    string
	}{
		"as long as permitted":  {operate.Rewrite{Find: "x", Replace: "xx"}, "x" + strings.Repeat("-", most-2), most, ""},
		"a byte longer":         {operate.Rewrite{Find: "x", Replace: "xx"}, "x" + strings.Repeat("-", most-1), 0, "longer than the 1048576 bytes"},
		"shorter":               {operate.Rewrite{Find: "-+"}, "x" + strings.Repeat("-", most-1), 1, ""},
		"each of 100,000":       {operate.Rewrite{Find: ".", Replace: "$0$0"}, strings.Repeat("x", 100_000), 200_000, ""},
		"each of 100,001":       {operate.Rewrite{Find: ".", Replace: "y"}, strings.Repeat("x", 100_001), 0, "more than 100000 times"},
		"each by the whole":     {operate.Rewrite{Find: "(x+)", Replace: strings.Repeat("$1", 100)}, strings.Repeat("x", most), 0, "longer than"},
		"gigabytes":             {operate.Rewrite{Find: "x", Replace: strings.Repeat("y", most)}, strings.Repeat("x", 10_000), 0, "longer than"},
		"a place between words": {operate.Rewrite{Find: `\b`, Replace: "|"}, "a b", 7, ""},
	} {
		apply, err := test.rewrite.Compile()
		if err != nil {
			t.Fatal(name, err)
		}
		before := operate.Message{Body: test.body}
		after, err := apply(before)
		switch {
		case test.want == "" && (err != nil || len(after.Body) != test.length):
			t.Errorf("%s: %v, %d bytes, want %d", name, err, len(after.Body), test.length)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !operate.SameContent(&before, &after)):
			t.Errorf("%s: %v, want %q and the same message", name, err, test.want)
		}
	}
}

// TestRewriteIsLogged: a log has what an edit looks for and which attributes it changes, and not what it writes.
func TestRewriteIsLogged(t *testing.T) {
	whole := operate.Rewrite{Find: "f", Replace: "secret", Set: map[string]string{"token": "secret"}, Remove: []string{"r"}}
	want := operate.Rewrite{Find: "f", Replace: "…", Set: map[string]string{"token": "…"}, Remove: []string{"r"}}
	if diff := cmp.Diff(want, whole.WithoutContent()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none := (operate.Rewrite{}).WithoutContent(); !none.IsZero() {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestRewriting: what was tried is counted, with one example and a bounded number of reasons.
func TestRewriting(t *testing.T) {
	w, err := operate.Rewrite{Find: `^\w+$`}.Rewriting()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a-b", "c", "d x"} {
		if m := (operate.Message{Body: body}); w.Try(&m) != (body != "c") {
			t.Errorf("%q: the wrong answer", body)
		}
	}
	if n, example := w.Edited(); n != 0 || example != "" {
		t.Errorf("%d differ, such as %q, and none does", n, example)
	}
	if diff := cmp.Diff(map[string]int{"the new body is empty: SQS has no empty messages": 1}, w.Unfit()); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if w, err = (operate.Rewrite{Find: "x", Replace: "y", Set: map[string]string{"k": "v"}}).Rewriting(); err != nil {
		t.Fatal(err)
	}
	full := make(map[string]operate.Attribute)
	for i := range operate.MaxAttributes {
		full[fmt.Sprint("a", i)] = operate.Attribute{Type: "String", Value: "v"}
	}
	for i := range 30 { // each has a reason of its own
		full[fmt.Sprint("more", i)] = operate.Attribute{Type: "String", Value: "v"}
		w.Try(&operate.Message{Body: "-", Attributes: full})
	}
	for range 2 {
		w.Try(&operate.Message{Body: "x"})
	}
	unfit := w.Unfit()
	if n, example := w.Edited(); n != 2 || !strings.Contains(example, "- x\n+ y") || len(unfit) != 21 || unfit["there are other reasons"] != 10 {
		t.Errorf("%d differ, such as %q; %v", n, example, unfit)
	}
}
