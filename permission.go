package reprise

import (
	"errors"

	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/plan"
)

// denied reports whether we lack the permission for a call.
func denied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "AccessDenied" || api.ErrorCode() == "AccessDeniedException")
}

// missing reports whether the queue of a call does not exist.
func missing(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "QueueDoesNotExist" || api.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue")
}

// deniedByKey reports whether we lack the permission to use the queue's KMS key.
func deniedByKey(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "KmsAccessDenied" || api.ErrorCode() == "KMS.AccessDeniedException")
}

// planSettings returns the part of the configuration that a plan depends on.
func (c *Consumer) planSettings() plan.Settings {
	return plan.Settings{
		HandlerTimeout: c.cfg.HandlerTimeout,
		Lease:          c.cfg.Lease,
		Via:            c.cfg.Via,
		DeadLetterURL:  c.cfg.DeadLetterURL,
	}
}
