package reprise_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// TestEveryValueHasAName: for every number String returns a name, and a distinct one for each
// declared value. A label of another version must not panic.
func TestEveryValueHasAName(t *testing.T) {
	for kind, of := range map[string]struct {
		first, last uint8 // that are declared
		value       func(uint8) fmt.Stringer
	}{
		"Operation":    {0, uint8(reprise.OpAttributes), func(v uint8) fmt.Stringer { return reprise.Operation(v) }},
		"Outcome":      {0, uint8(reprise.OutcomePark), func(v uint8) fmt.Stringer { return reprise.Outcome(v) }},
		"Health":       {0, uint8(reprise.HealthStopped), func(v uint8) fmt.Stringer { return reprise.Health(v) }},
		"BreakerState": {0, uint8(reprise.BreakerRamping), func(v uint8) fmt.Stringer { return reprise.BreakerState(v) }},
		"Stage":        {0, uint8(reprise.StageGivenUp), func(v uint8) fmt.Stringer { return reprise.Stage(v) }},
		"FIFO":         {0, uint8(reprise.FIFOSkip), func(v uint8) fmt.Stringer { return reprise.FIFO(v) }},
		"Via":          {0, uint8(reprise.ViaRequeue), func(v uint8) fmt.Stringer { return reprise.Via(v) }},
		"Severity":     {0, uint8(plan.Error), func(v uint8) fmt.Stringer { return plan.Severity(v) }},
		"Carry":        {1, uint8(plan.CarryRequeue), func(v uint8) fmt.Stringer { return plan.Carry(v) }},
		"Stop":         {1, uint8(plan.StopUnlisted), func(v uint8) fmt.Stringer { return plan.Stop(v) }},
		"Action":       {1, uint8(retry.ActionDeadLetter), func(v uint8) fmt.Stringer { return retry.Action(v) }},
		"Reason":       {1, uint8(retry.ReasonCrash), func(v uint8) fmt.Stringer { return retry.Reason(v) }},
		"Kind":         {0, uint8(idempotency.KindUnrecorded), func(v uint8) fmt.Stringer { return idempotency.Kind(v) }},
		"State":        {1, uint8(idempotency.Mismatched), func(v uint8) fmt.Stringer { return idempotency.State(v) }},
		"Mode":         {0, uint8(repriselambda.ModeDirect), func(v uint8) fmt.Stringer { return repriselambda.Mode(v) }},
	} {
		t.Run(kind, func(t *testing.T) {
			seen := make(map[string]uint8)
			for v := range 256 {
				name, declared := of.value(uint8(v)).String(), uint8(v) >= of.first && uint8(v) <= of.last
				if before, twice := seen[name]; twice {
					t.Errorf("%d and %d are both %q", before, v, name)
				}
				seen[name] = uint8(v)
				if numbered := name == fmt.Sprintf("%s(%d)", kind, v); declared && (name == "" || strings.Contains(name, "(")) || uint8(v) > of.last && !numbered {
					t.Errorf("%d, declared: %v, is %q", v, declared, name)
				}
			}
		})
	}
}
