package daemon

import (
	"context"
	"errors"
	"fmt"
)

// stopStack holds the steps of a stop. It runs them in the reverse of the order in which
// they were added.
type stopStack []stopStep

type stopStep struct {
	name string
	stop func(context.Context) error
}

// push adds a step, which will run before those that are there.
func (s *stopStack) push(name string, stop func(context.Context) error) {
	*s = append(*s, stopStep{name, stop})
}

// unwind runs every step, even if others fail, and joins their errors. The end of ctx tells
// steps to stop at once.
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
