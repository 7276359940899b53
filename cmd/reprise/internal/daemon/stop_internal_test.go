package daemon

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestStopStack: last in, first out; a failing step keeps none from its turn.
func TestStopStack(t *testing.T) {
	var order []string
	broken := errors.New("broken")
	var s stopStack
	for _, name := range []string{"first", "second", "third"} {
		s.push(name, func(context.Context) error {
			order = append(order, name)
			if name == "first" {
				return nil
			}
			return broken
		})
	}
	err := s.unwind(t.Context())
	if !slices.Equal(order, []string{"third", "second", "first"}) {
		t.Errorf("stopped in the order %v", order)
	}
	if !errors.Is(err, broken) || err.Error() != "stopping third: broken\nstopping second: broken" {
		t.Errorf("unwind = %v", err)
	}
	if err := s.unwind(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("unwinding again = %v, after %v", err, order)
	}
}
