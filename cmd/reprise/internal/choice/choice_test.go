package choice_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
)

func TestValue(t *testing.T) {
	v := choice.Of("red", "green", "blue")
	if v.String() != "red" || v.Type() != "red|green|blue" {
		t.Errorf("at first it is %s, of the type %s", v.String(), v.Type())
	}
	if err := v.Set("blue"); err != nil || v.String() != "blue" || v.Index() != 2 {
		t.Errorf("Set = %v; it is %s, %d", err, v.String(), v.Index())
	}
	if err := v.Set("pink"); err == nil || err.Error() != "use red, green or blue" || v.String() != "blue" {
		t.Errorf("Set = %v; it is %s", err, v.String())
	}
}
