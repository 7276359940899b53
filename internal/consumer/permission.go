package consumer

import (
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/plan"
)

// noteDenied reports, once, that the named one of [plan.Features] is off, if f says that
// its permission is denied. SQS shows that a permission is missing only when a call needs
// it, so the report comes at the first such call.
func (c *Machine) noteDenied(feature string, f *Failure) {
	if f.is(Denied | DeniedByKey) {
		c.findOnce("denied "+feature, c.deniedFinding(feature, f))
	}
}

// deniedFinding returns what noteDenied reports: by the plan's features or, if the queue's
// ARN is not known, by SQS's own text, which names the action and the resource.
func (c *Machine) deniedFinding(name string, denied *Failure) plan.Finding {
	features, _ := plan.Features(c.facts.Plan, c.Settings.Settings)
	if at := slices.IndexFunc(features, func(f plan.Feature) bool { return f.Name == name }); at >= 0 {
		for _, p := range features[at].Needs {
			if strings.HasPrefix(p.Action, "kms:") != denied.is(DeniedByKey) {
				continue
			}
			f := plan.Denied(features[at:at+1], p.Action, p.Resource)[0]
			f.Problem += " SQS says: " + denied.Err.Error()
			return f
		}
	}
	return plan.Finding{
		Severity: plan.Warning,
		Code:     plan.CodePermission,
		Problem:  name + " is off, because a permission for it is denied: " + denied.Err.Error(),
		Remedy:   "permit the action that SQS names, on the resource that it names.",
	}
}

// NoteDenied is noteDenied for requests whose results are no other input.
func (c *Machine) NoteDenied(feature string, f Failure) { c.noteDenied(feature, &f) }
