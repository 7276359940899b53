package sqsserver

import (
	"crypto/md5"
	"encoding/hex"
	"strings"
	"testing"
)

// The digests are those that AWS returned for the same content.
func TestDigests(t *testing.T) {
	color := MessageAttribute{Name: "color", DataType: "String", StringValue: "blue"}
	tests := []struct {
		name string
		got  MD5
		want string
	}{
		{"body", digestBody([]byte("hello")), "5d41402abc4b2a76b9719d911017c592"},
		{"empty body", digestBody(nil), "d41d8cd98f00b204e9800998ecf8427e"},
		{"three types", digestAttributes([]MessageAttribute{
			{Name: "blob", DataType: "Binary", BinaryValue: []byte{1, 2, 3}}, color,
			{Name: "count", DataType: "Number", StringValue: "3"}}), "d838729972a4b70e2d2acd9d59ac847c"},
		{"string", digestAttributes([]MessageAttribute{color}), "da1b33cc3cbfe8b1630921e78e6b9880"},
		{"number", digestAttributes([]MessageAttribute{{Name: "timestamp", DataType: "Number", StringValue: "1493147359900"}}),
			"235c5c510d26fb653d073faed50ae77c"},
		{"system", digestAttributes([]MessageAttribute{{Name: "AWSTraceHeader", DataType: "String",
			StringValue: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"}}),
			"5ae4d5d7636402d80f4eb6d213245a88"},
		{"none", digestAttributes(nil), ""},
	}
	for _, test := range tests {
		if got := test.got.String(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A label is part of the type, and attributes longer than the buffer count whole.
func TestDigestLongAttribute(t *testing.T) {
	value := strings.Repeat("v", 70000)
	text := "\x00\x00\x00\x01n\x00\x00\x00\x08Binary.x\x02\x00\x01\x11\x70" + value
	want := md5.Sum([]byte(text))
	got := digestAttributes([]MessageAttribute{{Name: "n", DataType: "Binary.x", BinaryValue: []byte(value)}})
	if got != want {
		t.Errorf("digest %s, want %s", got, hex.EncodeToString(want[:]))
	}
}

func TestDigestAllocations(t *testing.T) {
	body := []byte(exampleBody(1))
	attributes := []MessageAttribute{{Name: "a", DataType: "String", StringValue: "v"}}
	if n := testing.AllocsPerRun(100, func() { digestBody(body); digestAttributes(attributes) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkDigestBody(b *testing.B) {
	body := []byte(exampleBody(1))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		digestBody(body)
	}
}

func BenchmarkDigestAttributes(b *testing.B) {
	attributes := []MessageAttribute{
		{Name: "attempt", DataType: "Number", StringValue: "12"},
		{Name: "color", DataType: "String", StringValue: "blue"},
		{Name: "trace", DataType: "Binary", BinaryValue: make([]byte, 32)},
	}
	b.ReportAllocs()
	for b.Loop() {
		digestAttributes(attributes)
	}
}
