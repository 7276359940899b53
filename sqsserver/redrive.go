package sqsserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// redrivePolicy names the dead-letter queue of a queue. The zero value is no dead-letter queue.
type redrivePolicy struct {
	target      string // ARN
	maxReceives int
}

const maxMaxReceiveCount = 1000

// setRedrivePolicy keeps the policy in AWS's canonical form, with the count as a
// number. It may be given as a string.
func setRedrivePolicy(a *attributes, value string) error {
	a.redrivePolicy, a.redrive = "", redrivePolicy{}
	if value == "" {
		return nil
	}
	invalid := func(reason string) error { return errParameter("RedrivePolicy", value, reason) }
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	if !json.Valid([]byte(value)) || decoder.Decode(&members) != nil {
		return invalid("Redrive policy is not a valid JSON map.")
	}
	for _, name := range []string{"deadLetterTargetArn", "maxReceiveCount"} {
		if members[name] == nil {
			return invalid("Redrive policy does not contain mandatory attribute: " + name + ".")
		}
	}
	for name := range members {
		if name != "deadLetterTargetArn" && name != "maxReceiveCount" {
			return invalid("Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].")
		}
	}
	target, isString := members["deadLetterTargetArn"].(string)
	if !isString || !isQueueARN(target) {
		return invalid("Invalid value for deadLetterTargetArn.")
	}
	count := fmt.Sprint(members["maxReceiveCount"])
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxMaxReceiveCount {
		return invalid("Invalid value for maxReceiveCount: " + count + ", valid values are from 1 to 1000 both inclusive.")
	}
	a.redrive = redrivePolicy{target: target, maxReceives: n}
	a.redrivePolicy = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, target, n)
	return nil
}

// isQueueARN reports whether arn could be one of a queue.
func isQueueARN(arn string) bool {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "sqs" {
		return false
	}
	name := parts[5]
	return checkQueueName(name, strings.HasSuffix(name, fifoSuffix)) == nil
}

// redriveAllowPolicy lists the queues that may use this one as their dead-letter queue. The
// zero value permits all.
type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"` // ARNs, for byQueue
}

func setRedriveAllowPolicy(a *attributes, value string) error {
	a.redriveAllowPolicy, a.redriveAllow = "", redriveAllowPolicy{}
	if value == "" {
		return nil
	}
	invalid := func(reason string) error { return errParameter("RedriveAllowPolicy", value, reason) }
	if len(value) > maxPolicySize { // it is kept as it is written
		return invalid("Redrive allow policy is longer than " + strconv.Itoa(maxPolicySize) + " bytes.")
	}
	var policy redriveAllowPolicy
	if json.Unmarshal([]byte(value), &policy) != nil {
		return invalid("Redrive allow policy is not a valid JSON map.")
	}
	const maxSources = 10
	switch policy.Permission {
	case "allowAll", "denyAll":
		if policy.Sources != nil {
			return invalid("sourceQueueArns can only be given with redrivePermission byQueue.")
		}
	case "byQueue":
		if len(policy.Sources) < 1 || len(policy.Sources) > maxSources {
			return invalid("redrivePermission byQueue needs 1 to 10 sourceQueueArns.")
		}
	default:
		return invalid("redrivePermission must be allowAll, denyAll or byQueue.")
	}
	a.redriveAllowPolicy, a.redriveAllow = value, policy
	return nil
}

func (p redriveAllowPolicy) allows(source string) bool {
	switch p.Permission {
	case "denyAll":
		return false
	case "byQueue":
		return slices.Contains(p.Sources, source)
	}
	return true
}

// checkRedrive checks the dead-letter queue of a queue, if it is among the attributes given: that
// it exists, is of the same type and accepts the queue's messages. The texts of AWS are not known.
// The lock is held.
func (s *Server) checkRedrive(q *queue, wanted *attributes, given map[string]string) error {
	value := given["RedrivePolicy"]
	if value == "" {
		return nil
	}
	invalid := func(reason string) error { return errParameter("RedrivePolicy", value, reason) }
	target := s.byARN[wanted.redrive.target]
	switch {
	case target == nil || target.region != q.region || target.account != q.account:
		return invalid("Dead letter target does not exist.")
	case target.fifo != q.fifo:
		return invalid("Dead-letter queue must be same type of queue as the source.")
	case !target.attributes.redriveAllow.allows(q.arn):
		return invalid("The dead-letter queue's RedriveAllowPolicy does not allow this source queue.")
	}
	return nil
}
