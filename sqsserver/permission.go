package sqsserver

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Limits of a queue's policy.
const (
	maxPolicySize       = 8192 // bytes
	maxPolicyStatements = 20
	maxPolicyPrincipals = 50 // of a statement
	maxPolicyActions    = 7
	maxPolicyLabel      = 80
)

// permitted are the actions that the owner of a queue can permit to others.
var permitted = []string{
	"*", actionChangeMessageVisibility, actionDeleteMessage, actionGetQueueAttributes, actionGetQueueUrl,
	actionListDeadLetterSourceQueues, actionPurgeQueue, actionReceiveMessage, actionSendMessage,
}

// policy is a queue's Policy attribute. The server keeps it for readers and enforces
// nothing.
type policy struct {
	Version   string            `json:"Version,omitempty"`
	ID        string            `json:"Id,omitempty"`
	Statement []json.RawMessage `json:"Statement"`
}

type policyStatement struct {
	Sid       string
	Effect    string
	Principal policyPrincipal
	Action    oneOrMany
	Resource  string
}

type policyPrincipal struct{ AWS oneOrMany }

// oneOrMany is written as a string if it is one.
type oneOrMany []string

// MarshalJSON is for encoding/json.
func (m oneOrMany) MarshalJSON() ([]byte, error) {
	if len(m) == 1 {
		return json.Marshal(m[0])
	}
	return json.Marshal([]string(m))
}

// AddPermission adds a statement to the policy of a queue. Policies are kept and
// not enforced.
func (s *Server) AddPermission(ctx context.Context, in *AddPermissionInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionAddPermission)
	if err != nil {
		return err
	}
	if err := checkPermission(in); err != nil {
		return err
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	added := policyStatement{Sid: in.Label, Effect: "Allow", Resource: r.queue.arn}
	for _, account := range in.AWSAccountIds {
		added.Principal.AWS = append(added.Principal.AWS, "arn:aws:iam::"+account+":root")
	}
	for _, action := range in.Actions {
		added.Action = append(added.Action, "SQS:"+action)
	}
	return s.changePolicy(ctx, r, func(p *policy) error {
		if p.find(in.Label) >= 0 {
			return errLabelExists(in.Label)
		}
		if n := len(p.Statement) + 1; n > maxPolicyStatements {
			return errPolicyLimit(n, "Statements", maxPolicyStatements)
		}
		p.Statement = append(p.Statement, marshal(added))
		return nil
	})
}

func checkPermission(in *AddPermissionInput) error {
	if err := checkLabel(in.Label); err != nil {
		return err
	}
	isNoAccount := func(id string) bool { return !isAccount(id) }
	if len(in.AWSAccountIds) == 0 || slices.ContainsFunc(in.AWSAccountIds, isNoAccount) {
		return errPrincipals(in.AWSAccountIds)
	}
	if n := len(in.AWSAccountIds); n > maxPolicyPrincipals {
		return errPolicyLimit(n, "Principals", maxPolicyPrincipals)
	}
	if len(in.Actions) == 0 {
		return errMissingParameter("Actions")
	}
	if n := len(in.Actions); n > maxPolicyActions {
		return errPolicyLimit(n, "Actions", maxPolicyActions)
	}
	for _, action := range in.Actions {
		if !slices.Contains(permitted, action) {
			return errOwnersAction(action)
		}
	}
	return nil
}

// RemovePermission removes a statement from the policy of a queue.
func (s *Server) RemovePermission(ctx context.Context, in *RemovePermissionInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionRemovePermission)
	if err != nil {
		return err
	}
	if err := checkLabel(in.Label); err != nil {
		return err
	}
	return s.changePolicy(ctx, r, func(p *policy) error {
		i := p.find(in.Label)
		if i < 0 {
			return errLabelMissing(in.Label)
		}
		p.Statement = slices.Delete(p.Statement, i, i+1)
		return nil
	})
}

func checkLabel(label string) error {
	if label == "" {
		return errMissingParameter("Label")
	}
	if len(label) > maxPolicyLabel || slices.ContainsFunc([]byte(label), func(c byte) bool { return !isNameCharacter(c) }) {
		return errLabel(label)
	}
	return nil
}

// isAccount reports whether id could be the number of an AWS account.
func isAccount(id string) bool {
	return len(id) == 12 && strings.Trim(id, "0123456789") == ""
}

// changePolicy changes the policy of a queue. Without its last statement the
// queue has none.
func (s *Server) changePolicy(ctx context.Context, r request, change func(*policy) error) error {
	q := r.queue
	return s.change(ctx, r, func(now time.Time) error {
		p := parsePolicy(q.attributes.policy, q.arn)
		if err := change(&p); err != nil {
			return err
		}
		changed := *q.attributes
		changed.policy = ""
		if len(p.Statement) > 0 {
			if err := setPolicy(&changed, string(marshal(p))); err != nil {
				return err
			}
		}
		q.attributes, q.modified = &changed, now
		s.recordQueue(q)
		return nil
	})
}

// parsePolicy reads a policy that setPolicy has accepted, or begins one.
func parsePolicy(text, arn string) policy {
	if text == "" {
		return policy{Version: "2008-10-17", ID: arn + "/SQSDefaultPolicy"}
	}
	var p policy
	if json.Unmarshal([]byte(text), &p) == nil {
		return p
	}
	// A policy of one statement may have it without a list around it.
	var single struct {
		Version   string
		ID        string `json:"Id"`
		Statement json.RawMessage
	}
	_ = json.Unmarshal([]byte(text), &single)
	return policy{single.Version, single.ID, []json.RawMessage{single.Statement}}
}

// find returns the index of the statement with the label, or -1.
func (p *policy) find(label string) int {
	return slices.IndexFunc(p.Statement, func(text json.RawMessage) bool {
		var statement struct{ Sid string }
		return json.Unmarshal(text, &statement) == nil && statement.Sid == label
	})
}

// marshal writes JSON as AWS does, without escapes for HTML.
func marshal(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("sqsserver: " + err.Error()) // the types above can be marshalled
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
