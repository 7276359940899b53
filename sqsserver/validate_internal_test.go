package sqsserver

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCheckMessage(t *testing.T) {
	text := func(name, value string) MessageAttribute {
		return MessageAttribute{Name: name, DataType: "String", StringValue: value}
	}
	number := func(value string) MessageAttribute {
		return MessageAttribute{Name: "n", DataType: "Number", StringValue: value}
	}
	trace := func(value string) SendMessageEntry {
		return SendMessageEntry{MessageBody: "b", MessageSystemAttributes: []MessageAttribute{
			{Name: "AWSTraceHeader", DataType: "String", StringValue: value}}}
	}
	attributes := func(list ...MessageAttribute) SendMessageEntry {
		return SendMessageEntry{MessageBody: "b", MessageAttributes: list}
	}
	var eleven []MessageAttribute
	for i := range 11 {
		eleven = append(eleven, text("a"+strconv.Itoa(i), "v"))
	}
	tests := []struct {
		name  string
		entry SendMessageEntry
		want  error
	}{
		{"plain", SendMessageEntry{MessageBody: "b"}, nil},
		{"no body", SendMessageEntry{}, errMissingParameter("MessageBody")},
		{"control character", SendMessageEntry{MessageBody: "a\x00"}, errBodyCharacters()},
		{"delay", SendMessageEntry{MessageBody: "b", DelaySeconds: Int(900)}, nil},
		{"long delay", SendMessageEntry{MessageBody: "b", DelaySeconds: Int(901)}, errDelaySeconds(901)},
		{"negative delay", SendMessageEntry{MessageBody: "b", DelaySeconds: Int(-1)}, errDelaySeconds(-1)},
		{"group", SendMessageEntry{MessageBody: "b", MessageGroupId: strings.Repeat("~", 128)}, nil},
		{"long group", SendMessageEntry{MessageBody: "b", MessageGroupId: strings.Repeat("g", 129)},
			errIdentifier("MessageGroupId", strings.Repeat("g", 129))},
		{"group with a space", SendMessageEntry{MessageBody: "b", MessageGroupId: "a b"}, errIdentifier("MessageGroupId", "a b")},
		{"deduplication id beyond ASCII", SendMessageEntry{MessageBody: "b", MessageDeduplicationId: "é"},
			errIdentifier("MessageDeduplicationId", "é")},

		{"ten attributes", attributes(eleven[:10]...), nil},
		{"eleven attributes", attributes(eleven...), errTooManyAttributes(11)},
		{"no name", attributes(text("", "v")), errAttributeName("")},
		{"long name", attributes(text(strings.Repeat("n", 256), "v")), nil},
		{"too long name", attributes(text(strings.Repeat("n", 257), "v")), errAttributeName(strings.Repeat("n", 257))},
		{"all characters", attributes(text("aZ09_-..é", "v")), nil},
		{"other character", attributes(text("a b", "v")), errAttributeName("a b")},
		{"dot first", attributes(text(".a", "v")), errAttributeName(".a")},
		{"dot last", attributes(text("a.", "v")), errAttributeName("a.")},
		{"reserved", attributes(text("aWs.x", "v")), errAttributeName("aWs.x")},
		{"also reserved", attributes(text("AMAZON.x", "v")), errAttributeName("AMAZON.x")},
		{"not reserved", attributes(text("aws", "v"), text("amazonx", "v")), nil},
		{"not UTF-8", attributes(text("a\xed\xa0\x80", "v")), errAttributeName("a\xed\xa0\x80")},

		{"label", attributes(MessageAttribute{Name: "a", DataType: "String.json", StringValue: "v"}), nil},
		{"no type", attributes(MessageAttribute{Name: "a", StringValue: "v"}), errAttributeType("a")},
		{"other type", attributes(MessageAttribute{Name: "a", DataType: "string", StringValue: "v"}), errAttributeType("a")},
		{"prefix only", attributes(MessageAttribute{Name: "a", DataType: "Strings", StringValue: "v"}), errAttributeType("a")},
		{"long type", attributes(MessageAttribute{Name: "a", DataType: "String." + strings.Repeat("x", 250), StringValue: "v"}), errAttributeType("a")},
		{"type not UTF-8", attributes(MessageAttribute{Name: "a", DataType: "String.\xff", StringValue: "v"}), errAttributeType("a")},

		{"empty", attributes(text("a", "")), errAttributeEmpty("a", "String")},
		{"value of the other kind", attributes(MessageAttribute{Name: "a", DataType: "Binary.x", StringValue: "v"}), errAttributeEmpty("a", "Binary")},
		{"binary", attributes(MessageAttribute{Name: "a", DataType: "Binary", BinaryValue: []byte{0}}), nil},
		{"character in a value", attributes(text("a", "\x01")), errAttributeCharacters()},
		{"number", attributes(number("-12.5e3")), nil},
		{"no number", attributes(number("many")), errAttributeNumber("n")},

		{"trace header", trace("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"), nil},
		{"trace header of a load balancer", trace("Self=1-67891234-12456789abcdef012345678; Root=1-67891233-abcdef012345678912345678;"), nil},
		{"no root", trace("Sampled=1"), errTraceHeader()},
		{"short root", trace("Root=1-5759e988-bd862e3f"), errTraceHeader()},
		{"root of another version", trace("Root=2-5759e988-bd862e3fe1be46a994272793"), errTraceHeader()},
		{"no header", trace(""), errTraceHeader()},
		{"other text", trace("hello"), errTraceHeader()},
		{"other system attribute", SendMessageEntry{MessageBody: "b", MessageSystemAttributes: []MessageAttribute{text("SenderId", "v")}},
			errSystemAttribute("SenderId")},
		{"system attribute of another type", SendMessageEntry{MessageBody: "b", MessageSystemAttributes: []MessageAttribute{
			{Name: "AWSTraceHeader", DataType: "Number", StringValue: "1"}}}, errSystemAttribute("AWSTraceHeader")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.entry.check()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Attributes come into order in a copy: the caller may use its slice elsewhere.
func TestCheckSortsAttributes(t *testing.T) {
	given := []MessageAttribute{
		{Name: "b", DataType: "String", StringValue: "1"},
		{Name: "a", DataType: "String", StringValue: "2"},
		{Name: "b", DataType: "String", StringValue: "3"},
	}
	entry := SendMessageEntry{MessageBody: "b", MessageAttributes: given}
	if err := entry.check(); err != nil {
		t.Fatal(err)
	}
	want := []MessageAttribute{
		{Name: "a", DataType: "String", StringValue: "2"},
		{Name: "b", DataType: "String", StringValue: "3"},
	}
	if diff := cmp.Diff(want, entry.MessageAttributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if given[0].Name != "b" || given[1].Name != "a" || given[2].StringValue != "3" {
		t.Errorf("the caller's slice became %v", given)
	}
}

func TestMessageSize(t *testing.T) {
	entry := SendMessageEntry{
		MessageBody: "é1",
		MessageAttributes: []MessageAttribute{
			{Name: "ab", DataType: "String.x", StringValue: "value", BinaryValue: []byte("not counted")},
			{Name: "c", DataType: "Binary", BinaryValue: []byte{1, 2, 3}},
		},
		MessageSystemAttributes: []MessageAttribute{{Name: "AWSTraceHeader", DataType: "String", StringValue: "free"}},
	}
	if got, want := entry.size(), 3+(2+8+5)+(1+6+3); got != want {
		t.Errorf("size %d, want %d", got, want)
	}
}

func TestValidText(t *testing.T) {
	for _, s := range []string{"", "\t\n\r", " ~\x7f", "\u0080", "\uD7FF", "\uE000", "\uFFFD", "\U00010000", "\U0010FFFF", strings.Repeat("é", 5000)} {
		if !validText(s) {
			t.Errorf("%q is invalid", s)
		}
	}
	for _, s := range []string{"\x00", "\b", "\x0b", "\x0c", "\x1f", "a\uFFFE", "\uFFFFa", "é\x01", "\xff", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xc0\x80"} {
		if validText(s) {
			t.Errorf("%q is valid", s)
		}
	}
}

func TestValidNumber(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, s := range []string{"0", "-0", "+1", "1.", ".5", "0.50", "00012", "1e126", "1E+126", "1e-128", "-1e-128", "10e125", "0.1e127",
		nines, nines + "0000", "0." + nines, nines + "e88", "0e0", "0e1000", "1" + strings.Repeat("0", 126), "0." + strings.Repeat("0", 127) + "1"} {
		if !validNumber(s) {
			t.Errorf("%q is no number", s)
		}
	}
	for _, s := range []string{"", "-", "+", ".", "e5", "1e", "1e+", "--1", "+-1", "1.2.3", "0x1", "1_0", " 1", "1 ", "NaN", "Inf", "1e1001", "1e9999999999999999999",
		nines + "1", "1e127", "1.1e126", "9e-129", "0.9e-128", "1" + strings.Repeat("0", 127), "١"} {
		if validNumber(s) {
			t.Errorf("%q is a number", s)
		}
	}
}

// FuzzValidText reads the characters one by one, from the definition.
func FuzzValidText(f *testing.F) {
	for _, seed := range []string{"", "0123456\t", "01234567\x00", "é\uFFFE", "\xed\xa0\x80", "\xef\xbf", "\U0010FFFF"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := utf8.ValidString(s)
		for _, c := range s {
			want = want && (c == 0x9 || c == 0xA || c == 0xD || 0x20 <= c && c <= 0xD7FF || 0xE000 <= c && c <= 0xFFFD || 0x10000 <= c)
		}
		if got := validText(s); got != want {
			t.Errorf("%q: valid %t, want %t", s, got, want)
		}
	})
}

// FuzzValidNumber computes with fractions of any size.
func FuzzValidNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1.50e3", ".5e-128", "1e126", "99999999999999999999999999999999999999", "1.1e126", "+00.00e+09", "1e-129"} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)
	least, greatest, ten := new(big.Rat), new(big.Rat), big.NewInt(10)
	least.SetFrac(big.NewInt(1), new(big.Int).Exp(ten, big.NewInt(128), nil))
	greatest.SetInt(new(big.Int).Exp(ten, big.NewInt(126), nil))
	f.Fuzz(func(t *testing.T, s string) {
		number, isNumber := new(big.Rat), false
		if grammar.MatchString(s) {
			number, isNumber = number.SetString(s)
		} else if len(s) > 5 {
			return // an exponent of four digits, perhaps
		}
		want := isNumber
		if isNumber && number.Sign() != 0 {
			mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(s, "+-")), "e")
			digits := strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")
			number.Abs(number)
			want = len(digits) <= 38 && number.Cmp(least) >= 0 && number.Cmp(greatest) <= 0
		}
		if got := validNumber(s); got != want {
			t.Errorf("%q: valid %t, want %t", s, got, want)
		}
	})
}

func TestCheckBatch(t *testing.T) {
	tests := []struct {
		name string
		ids  []string
		want error
	}{
		{"one", []string{"a"}, nil},
		{"ten", strings.Split("0 1 2 3 4 5 6 7 8 9", " "), nil},
		{"none", nil, &Error{codeEmptyBatchRequest, "There should be at least one DeleteMessageBatchRequestEntry in the request."}},
		{"eleven", strings.Split("0 1 2 3 4 5 6 7 8 9 9", " "), &Error{codeTooManyEntriesInBatchRequest, "Maximum number of entries per request are 10. You have sent 11."}},
		{"all characters", []string{"aZ09-_"}, nil},
		{"longest id", []string{strings.Repeat("i", 80)}, nil},
		{"long id", []string{strings.Repeat("i", 81)}, errBatchEntryID()},
		{"empty id", []string{"a", ""}, errBatchEntryID()},
		{"other character", []string{"a.b"}, errBatchEntryID()},
		{"id beyond ASCII", []string{"é"}, errBatchEntryID()},
		{"repeated", []string{"a", "b", "c", "b", "a"}, &Error{codeBatchEntryIdsNotDistinct, "Id b repeated."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := checkBatch("DeleteMessageBatchRequestEntry", len(test.ids), func(i int) string { return test.ids[i] })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkCheckMessage(b *testing.B) {
	entry := SendMessageEntry{MessageBody: exampleBody(1)}
	b.ReportAllocs()
	for b.Loop() {
		if err := entry.check(); err != nil {
			b.Fatal(err)
		}
	}
}
