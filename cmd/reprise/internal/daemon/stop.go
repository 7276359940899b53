package daemon

import (
	"context"
	"errors"
	"fmt"
)

// stopStack holds what has to be stopped, and stops it in the reverse of the order
// in which it was started.
type stopStack []stopStep

type stopStep struct {
	name string
	stop func(context.Context) error
}

// push adds a step that is to come before all others.
func (s *stopStack) push(name string, stop func(context.Context) error) {
	*s = append(*s, stopStep{name, stop})
}

// unwind runs every step, whatever the others return, and joins their errors. The
// end of ctx tells steps to be quick.
func (s *stopStack) unwind(ctx context.Context) error {
	var problems []error
	for i := len(*s) - 1; i >= 0; i-- {
		step := (*s)[i]
		if err := step.stop(ctx); err != nil {
			problems = append(problems, fmt.Errorf("stopping %s: %w", step.name, err))
		}
	}
	*s = nil
	return errors.Join(problems...)
}
