package sqsserver

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectAttributes(t *testing.T) {
	var attributes []MessageAttribute
	for _, name := range []string{"Hello", "Help.Me", "color", "count"} {
		attributes = append(attributes, MessageAttribute{Name: name})
	}
	tests := []struct {
		names []string
		want  []string
	}{
		{nil, nil},
		{[]string{"color"}, []string{"color"}},
		{[]string{"count", "Hello", "count"}, []string{"Hello", "count"}},
		{[]string{"All"}, []string{"Hello", "Help.Me", "color", "count"}},
		{[]string{".*"}, []string{"Hello", "Help.Me", "color", "count"}},
		{[]string{"*"}, []string{"Hello", "Help.Me", "color", "count"}},
		{[]string{"Hel.*"}, []string{"Hello", "Help.Me"}},
		{[]string{"Help.*", "co.*"}, []string{"Help.Me", "color", "count"}},
		{[]string{"Hello.*"}, []string{"Hello"}},
		{[]string{"all", "co*", "co.", "hello", "", "..*", "AWS.x", "a b"}, nil},
	}
	for _, test := range tests {
		var got []string
		for _, attribute := range selectAttributes(attributes, test.names) {
			got = append(got, attribute.Name)
		}
		if !slices.Equal(test.want, got) {
			t.Errorf("%q select %q, want %q", test.names, got, test.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { selectAttributes(attributes, []string{"All"}) }); n != 0 {
		t.Errorf("selecting all made %v allocations, want none", n)
	}
}

func TestSystemAttributesNamed(t *testing.T) {
	every := SystemAttributes{SenderId: "s", SentTimestamp: 1, ApproximateReceiveCount: 2, ApproximateFirstReceiveTimestamp: 3,
		SequenceNumber: 4, MessageDeduplicationId: "d", MessageGroupId: "g", AWSTraceHeader: "t", DeadLetterQueueSourceArn: "a"}
	all := maps.Collect(every.All())

	for name, value := range all {
		kept := every
		set, unknown := systemAttributesNamed([]string{name})
		if unknown != -1 {
			t.Fatalf("%s is unknown", name)
		}
		set.keep(&kept)
		if diff := cmp.Diff(map[string]string{name: value}, maps.Collect(kept.All())); diff != "" {
			t.Errorf("%s keeps (-want +got):\n%s", name, diff)
		}
	}
	for want, names := range map[int][]string{0: nil, 2: {"SenderId", "SentTimestamp", "SenderId"}, len(all): {"SenderId", "All"}} {
		kept := every
		set, unknown := systemAttributesNamed(names)
		if unknown != -1 {
			t.Fatalf("%q: %d is unknown", names, unknown)
		}
		set.keep(&kept)
		if got := len(maps.Collect(kept.All())); got != want {
			t.Errorf("%q keep %d attributes, want %d", names, got, want)
		}
	}
	for _, name := range []string{"", "all", "*", "VisibilityTimeout"} {
		if set, unknown := systemAttributesNamed([]string{"SenderId", name, name}); unknown != 1 || set != senderID {
			t.Errorf("%q: set %b, unknown %d, want the known one alone, and 1", name, set, unknown)
		}
	}
}
