package sqsserver

import (
	"cmp"
	"slices"
	"strings"
)

// sortAttributes returns attributes in ascending order of their names, and of
// equal names the last one only. It leaves the slice given as it is.
func sortAttributes(attributes []MessageAttribute) []MessageAttribute {
	sorted := true
	for i := 1; i < len(attributes); i++ {
		sorted = sorted && attributes[i-1].Name < attributes[i].Name
	}
	if sorted {
		return attributes
	}
	attributes = slices.Clone(attributes)
	slices.SortStableFunc(attributes, func(a, b MessageAttribute) int { return cmp.Compare(a.Name, b.Name) })
	kept := attributes[:0]
	for i := range attributes {
		if i+1 == len(attributes) || attributes[i].Name != attributes[i+1].Name {
			kept = append(kept, attributes[i])
		}
	}
	return kept
}

// selectAttributes returns those attributes that the names of a receive select:
// a name itself, All, .* or * for all of them, and prefix.* for the names that
// begin with the prefix, a dot after it or not. Other names select nothing. The
// result may be the slice given; if it is shorter, its digest differs.
func selectAttributes(attributes []MessageAttribute, names []string) []MessageAttribute {
	if len(attributes) == 0 || len(names) == 0 {
		return nil
	}
	first := slices.IndexFunc(attributes, func(a MessageAttribute) bool { return !isSelected(a.Name, names) })
	if first < 0 {
		return attributes
	}
	var selected []MessageAttribute
	for i := range attributes {
		if i < first || isSelected(attributes[i].Name, names) {
			selected = append(selected, attributes[i])
		}
	}
	return selected
}

func isSelected(attribute string, names []string) bool {
	for _, name := range names {
		if name == attribute || name == "All" || name == "*" {
			return true
		}
		if prefix, isPrefix := strings.CutSuffix(name, ".*"); isPrefix && strings.HasPrefix(attribute, prefix) {
			return true
		}
	}
	return false
}

// systemAttributeSet is a set of system attributes of a received message, one bit
// for each.
type systemAttributeSet uint16

const (
	senderID systemAttributeSet = 1 << iota
	sentTimestamp
	receiveCount
	firstReceiveTimestamp
	sequenceNumber
	deduplicationID
	groupID
	traceHeader
	deadLetterSource

	allSystemAttributes = 1<<iota - 1
)

// systemAttributesNamed returns the system attributes that the names of a receive
// select, and the index of the first name that is unknown, or -1.
func systemAttributesNamed(names []string) (set systemAttributeSet, unknown int) {
	unknown = -1
	for i, name := range names {
		switch name {
		case "All":
			set |= allSystemAttributes
		case "SenderId":
			set |= senderID
		case "SentTimestamp":
			set |= sentTimestamp
		case "ApproximateReceiveCount":
			set |= receiveCount
		case "ApproximateFirstReceiveTimestamp":
			set |= firstReceiveTimestamp
		case "SequenceNumber":
			set |= sequenceNumber
		case "MessageDeduplicationId":
			set |= deduplicationID
		case "MessageGroupId":
			set |= groupID
		case "AWSTraceHeader":
			set |= traceHeader
		case "DeadLetterQueueSourceArn":
			set |= deadLetterSource
		default:
			if unknown < 0 {
				unknown = i
			}
		}
	}
	return set, unknown
}

// keep clears the attributes that are not in the set.
func (s systemAttributeSet) keep(a *SystemAttributes) {
	if s == allSystemAttributes {
		return
	}
	all := *a
	*a = SystemAttributes{}
	if s&senderID != 0 {
		a.SenderId = all.SenderId
	}
	if s&sentTimestamp != 0 {
		a.SentTimestamp = all.SentTimestamp
	}
	if s&receiveCount != 0 {
		a.ApproximateReceiveCount = all.ApproximateReceiveCount
	}
	if s&firstReceiveTimestamp != 0 {
		a.ApproximateFirstReceiveTimestamp = all.ApproximateFirstReceiveTimestamp
	}
	if s&sequenceNumber != 0 {
		a.SequenceNumber = all.SequenceNumber
	}
	if s&deduplicationID != 0 {
		a.MessageDeduplicationId = all.MessageDeduplicationId
	}
	if s&groupID != 0 {
		a.MessageGroupId = all.MessageGroupId
	}
	if s&traceHeader != 0 {
		a.AWSTraceHeader = all.AWSTraceHeader
	}
	if s&deadLetterSource != 0 {
		a.DeadLetterQueueSourceArn = all.DeadLetterQueueSourceArn
	}
}
