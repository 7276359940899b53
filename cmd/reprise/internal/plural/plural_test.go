package plural_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

func TestOf(t *testing.T) {
	for _, test := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "message", "0 messages"}, {1, "message", "1 message"}, {2, "message", "2 messages"},
		{1, "copy", "1 copy"}, {3, "copy", "3 copies"}, {1, "dead letter", "1 dead letter"}, {10, "dead letter", "10 dead letters"},
	} {
		if got := plural.Of(test.n, test.noun); got != test.want {
			t.Errorf("Of(%d, %q) = %q, want %q", test.n, test.noun, got, test.want)
		}
	}
}
