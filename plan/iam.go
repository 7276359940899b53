package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Feature is one function of a consumer or its tools, with the permissions that it needs.
type Feature struct {
	// Name is stable, suitable for logs and metric labels.
	Name string
	// Essential reports whether a consumer handles no message without the feature.
	Essential bool
	// Without describes the effect if any of the permissions is missing.
	Without string
	// Needs are the permissions: all of them.
	Needs []Permission
}

// Permission permits one action on one resource.
type Permission struct {
	// Action is one of SQS or of KMS. SQS has no separate permissions for batch actions: the permission for
	// DeleteMessage includes DeleteMessageBatch. See
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html.
	Action string
	// Resource is an ARN, as a policy's Resource element takes it.
	Resource string
	// Alias restricts a permission on keys to those that have this alias: a policy
	// cannot name a key by its alias. Empty: no restriction.
	Alias string
}

// Features returns the functions of a consumer of q and the permissions that they need, in the
// order of their importance. It returns an error if q's ARN, or that of its dead-letter queue, is
// not known.
func Features(q Queue, s Settings) ([]Feature, error) {
	queue, dead, err := resources(q, s)
	if err != nil {
		return nil, err
	}
	features := []Feature{
		{
			Name: "receive", Essential: true,
			Without: "no message is received",
			Needs:   append(queue.permissions("ReceiveMessage"), queue.decrypt()...),
		},
		{
			Name: "delete", Essential: true,
			Without: "handled messages come back and are handled again",
			Needs:   queue.permissions("DeleteMessage"),
		},
		{
			Name: "retry", Essential: true,
			Without: "leases are not renewed, and failed messages come back when theirs ends, whatever the policy says",
			Needs:   queue.permissions("ChangeMessageVisibility"),
		},
	}
	if s.ByName {
		features = append(features, Feature{
			Name: "find-queue", Essential: true,
			Without: "the queue cannot be given by its name, only by its URL",
			Needs:   queue.permissions("GetQueueUrl"),
		})
	}
	if dead != nil {
		features = append(features, Feature{
			Name:    "dead-letter",
			Without: "messages that are given up stay hidden in the queue, until SQS moves them without a story or its retention deletes them",
			Needs:   append(dead.permissions("SendMessage"), dead.encrypt()...),
		})
	}
	features = append(features, Feature{
		Name:    "queue-attributes",
		Without: "the queue's redrive limit, dead-letter queue and retention are not known, nothing is dead-lettered unless the configuration names a queue, and conflicts are not found",
		Needs:   queue.permissions("GetQueueAttributes"),
	})
	if s.takesCopies(q) {
		features = append(features, Feature{
			Name:    "requeue",
			Without: "retries end with the queue's maxReceiveCount and retention",
			Needs:   append(queue.permissions("SendMessage"), queue.encrypt()...),
		})
	}
	if dead != nil {
		features = append(features, Feature{
			Name:    "dead-letter-attributes",
			Without: "how long the dead-letter queue keeps messages is not checked",
			Needs:   dead.permissions("GetQueueAttributes"),
		})
	}
	return features, nil
}

// RedriveFeatures returns the functions of the tools that read q's dead-letter queue and bring its
// messages back to q. A consumer needs none of them. It fails as Features does, and if there is no
// dead-letter queue.
func RedriveFeatures(q Queue, s Settings) ([]Feature, error) {
	queue, dead, err := resources(q, s)
	if err != nil {
		return nil, err
	}
	if dead == nil {
		return nil, fmt.Errorf("plan: queue %s has no dead-letter queue to redrive: set Queue.DeadLetterARN or Settings.DeadLetterURL", q.ARN)
	}
	// SQS moves messages with the permissions of the caller who starts the task.
	move := dead.permissions("StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask",
		"ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
	move = append(move, queue.permissions("SendMessage")...)
	return []Feature{
		{
			Name:    "peek",
			Without: "dead letters cannot be looked at",
			Needs:   append(dead.permissions("ReceiveMessage", "ChangeMessageVisibility"), dead.decrypt()...),
		},
		{
			Name:    "redrive",
			Without: "dead letters cannot be brought back",
			Needs:   slices.Concat(move, dead.decrypt(), queue.encrypt()),
		},
	}, nil
}

// Denied returns a finding for each feature that is off because the permission for action, as IAM
// spells it, on the resource with this ARN, is missing.
func Denied(features []Feature, action, resource string) []Finding {
	var found []Finding
	for _, f := range features {
		if !slices.ContainsFunc(f.Needs, func(p Permission) bool { return p.Action == action && p.Resource == resource }) {
			continue
		}
		severity := Warning
		if f.Essential {
			severity = Error
		}
		found = append(found, Finding{
			Severity: severity,
			Code:     CodePermission,
			Problem:  fmt.Sprintf("%s is off, because %s on %s is denied: %s.", f.Name, action, resource, f.Without),
			Remedy:   fmt.Sprintf("permit %s on %s.", action, resource),
		})
	}
	return found
}

// Document is an IAM policy.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement is one statement of a policy.
type Statement struct {
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// IAM returns the policy that permits the features and nothing else: one
// statement a resource, its actions sorted. KMS keys may be used only through SQS. The keys that
// AWS manages for SQS require no permission of the caller.
func IAM(features []Feature) Document {
	d := Document{Version: "2012-10-17"}
	for _, f := range features {
		for _, p := range f.Needs {
			d.permit(p)
		}
	}
	return d
}

// permit adds p to the statement for its resource.
func (d *Document) permit(p Permission) {
	condition := p.condition()
	for i := range d.Statement {
		s := &d.Statement[i]
		if s.Resource != p.Resource || s.Condition["ForAnyValue:StringEquals"]["kms:ResourceAliases"] != p.Alias {
			continue
		}
		if at, found := slices.BinarySearch(s.Action, p.Action); !found {
			s.Action = slices.Insert(s.Action, at, p.Action)
		}
		return
	}
	d.Statement = append(d.Statement, Statement{
		Effect: "Allow", Action: []string{p.Action}, Resource: p.Resource, Condition: condition,
	})
}

// condition restricts the use of a key to SQS's use on behalf of the caller. See
// https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html.
func (p Permission) condition() map[string]map[string]string {
	key := strings.Split(p.Resource, ":")
	if !strings.HasPrefix(p.Action, "kms:") || len(key) != arnParts {
		return nil
	}
	via := "sqs." + key[3] + ".amazonaws.com"
	if key[1] == "aws-cn" {
		via += ".cn"
	}
	condition := map[string]map[string]string{"StringEquals": {"kms:ViaService": via}}
	if p.Alias != "" {
		condition["ForAnyValue:StringEquals"] = map[string]string{"kms:ResourceAliases": p.Alias}
	}
	return condition
}

// String is the policy as indented JSON.
func (d Document) String() string {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Sprintf("plan: %v", err) // strings always marshal
	}
	return string(text)
}
