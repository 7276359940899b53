package reprise

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/plan"
)

// denied says that we lack the permission for a call.
func denied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "AccessDenied" || api.ErrorCode() == "AccessDeniedException")
}

// missing reports whether the queue of a call does not exist.
func missing(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "QueueDoesNotExist" || api.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue")
}

// deniedByKey says that we lack the permission to use a queue's key.
func deniedByKey(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "KmsAccessDenied" || api.ErrorCode() == "KMS.AccessDeniedException")
}

// noteDenied reports, once, that the named one of [plan.Features] is off, if err says
// that its permission is denied. SQS tells of a permission only by a call that needs
// it, so that this comes at the first such call.
func (c *core) noteDenied(feature string, err error) {
	if denied(err) || deniedByKey(err) {
		c.findOnce("denied "+feature, c.deniedFinding(feature, err))
	}
}

// deniedFinding is what noteDenied reports: by the plan's features, or, where the
// queue's ARN is not known, by what SQS says itself, which names the action and the
// resource.
func (c *core) deniedFinding(name string, err error) plan.Finding {
	features, _ := plan.Features(c.facts.plan, c.planSettings())
	if at := slices.IndexFunc(features, func(f plan.Feature) bool { return f.Name == name }); at >= 0 {
		for _, p := range features[at].Needs {
			if strings.HasPrefix(p.Action, "kms:") != deniedByKey(err) {
				continue
			}
			f := plan.Denied(features[at:at+1], p.Action, p.Resource)[0]
			f.Problem += " SQS says: " + err.Error()
			return f
		}
	}
	return plan.Finding{
		Severity: plan.Warning,
		Code:     plan.CodePermission,
		Problem:  name + " is off, because a permission for it is denied: " + err.Error(),
		Remedy:   "permit the action that is named there on the resource that is named there.",
	}
}

// planSettings is the part of the configuration that plans are made from.
func (c *settings) planSettings() plan.Settings {
	return plan.Settings{
		HandlerTimeout: c.cfg.HandlerTimeout,
		Lease:          c.cfg.Lease,
		Via:            c.cfg.Via,
		DeadLetterURL:  c.cfg.DeadLetterURL,
	}
}
