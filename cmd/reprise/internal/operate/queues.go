// Package operate decides for the commands of operators which facts about a queue are noteworthy,
// which messages a selection names, how dead letters are grouped, and how a pass over a queue gives
// its messages back. It needs only the API of SQS.
package operate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Described is a queue as SQS describes it.
type Described struct {
	URL        string
	Attributes map[string]string
	// Problem is why there are no attributes; empty: there are.
	Problem string
	// Oldest is when the oldest message was sent. Zero: there is none, or it is not known, since
	// SQS's API does not tell.
	Oldest time.Time
	// Policy is that of its consumers, with which the queue's settings are compared. Default: it is
	// not known, and the findings are those that hold whatever the policy.
	Policy *retry.Policy
}

// Queue is a queue as an operator sees it.
type Queue struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	ARN  string `json:"arn,omitempty"`
	FIFO bool   `json:"fifo,omitempty"`
	// Visible messages can be received now. InFlight are those received and not yet deleted: being
	// handled, or hidden until their retry. Delayed were sent with a delay. SQS gives approximate
	// counts.
	Visible  int `json:"visible"`
	InFlight int `json:"in_flight"`
	Delayed  int `json:"delayed"`
	// Oldest is when the oldest message was sent, if that is known.
	Oldest time.Time `json:"oldest,omitzero"`
	// DeadLetterQueue is the name of the queue for its dead letters, and MaxReceives after how many
	// receives SQS moves a message there.
	DeadLetterQueue string `json:"dead_letter_queue,omitempty"`
	MaxReceives     int    `json:"max_receives,omitempty"`
	// DeadLettersOf are the queues whose dead letters it takes.
	DeadLettersOf []string  `json:"dead_letters_of,omitempty"`
	Findings      []Finding `json:"findings,omitempty"`
}

// Finding is something that an operator should know, with its remedy.
type Finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Problem  string `json:"problem"`
	Remedy   string `json:"remedy"`
}

// The codes of the findings that package plan does not have.
const (
	CodeUnreadable     = "attributes-unknown"
	CodeDeadLetters    = "dead-letters"
	CodeNoSuchDeadLeft = "dead-letter-queue-missing"
	CodeInFlight       = "in-flight-quota-near"
)

// ofQueues are the codes of the findings of package plan that hold whatever the policy. The others
// compare the queue with a policy: without one they would report what nobody does.
var ofQueues = []string{
	plan.CodeSingleReceive, plan.CodeRetentionUnknown,
	plan.CodeNoDeadLetterQueue, plan.CodeDeadLetterQueueType, plan.CodeDeadLetterQueueIsQueue, plan.CodeDeadLetterRetention,
}

// nearQuota is the number of messages in flight that is reported: four fifths of the quota.
const nearQuota = plan.MaxInFlight / 5 * 4

// Queues returns the queues by name. The findings are those of the consumers' policy on each queue,
// from warnings on, and those about what is in them. complete reports that these are all queues of the account and
// region, so that a dead-letter queue that is not among them is missing.
func Queues(described []Described, complete bool) []Queue {
	byARN := make(map[string]int)
	byURL := make(map[string]int) // those without a known ARN: their attributes could not be read
	plans := make([]plan.Queue, len(described))
	queues := make([]Queue, len(described))
	for i, d := range described {
		q, err := plan.ReadQueue(d.Attributes)
		if err != nil && d.Problem == "" {
			d.Problem = err.Error()
		}
		plans[i] = q
		queues[i] = Queue{
			Name: NameOf(d.URL), URL: d.URL, ARN: q.ARN, FIFO: q.FIFO, MaxReceives: q.MaxReceives, DeadLetterQueue: lastPart(q.DeadLetterARN),
			Visible:  number(d.Attributes["ApproximateNumberOfMessages"]),
			InFlight: number(d.Attributes["ApproximateNumberOfMessagesNotVisible"]),
			Delayed:  number(d.Attributes["ApproximateNumberOfMessagesDelayed"]),
			Oldest:   d.Oldest.UTC(),
		}
		if d.Problem != "" {
			queues[i].add(plan.Error, CodeUnreadable, "the queue's attributes cannot be read: "+d.Problem, "try again, and if SQS denies it, permit sqs:GetQueueAttributes on the queue.")
		}
		if q.ARN != "" {
			byARN[q.ARN] = i
		} else {
			byURL[d.URL] = i
		}
	}
	for i := range queues {
		if dead, ok := byARN[plans[i].DeadLetterARN]; ok {
			queues[dead].DeadLettersOf = append(queues[dead].DeadLettersOf, queues[i].Name)
			_ = plans[i].ReadDeadLetter(described[dead].Attributes) // its own row has the error
		} else if dead, ok := byURL[described[i].DeadLetterURL()]; ok { // it exists; no more is known of it
			queues[dead].DeadLettersOf = append(queues[dead].DeadLettersOf, queues[i].Name)
		} else if target := plans[i].DeadLetterARN; complete && near(target, plans[i].ARN) {
			queues[i].add(plan.Error, CodeNoSuchDeadLeft,
				fmt.Sprintf("the dead-letter queue %s does not exist: SQS cannot move messages there, and they are received again and again.", target),
				"create it, or correct deadLetterTargetArn in the queue's RedrivePolicy.")
		}
	}
	for i := range queues {
		queues[i].diagnose(plans[i], &described[i])
	}
	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.URL, b.URL)) })
	return queues
}

// diagnose adds the findings about the queue's messages, and those of the plan.
func (q *Queue) diagnose(own plan.Queue, d *Described) {
	if waiting := q.Visible + q.InFlight + q.Delayed; waiting > 0 && len(q.DeadLettersOf) > 0 {
		q.add(plan.Warning, CodeDeadLetters, fmt.Sprintf("it has %s.", plural.Of(waiting, "dead letter")), "find out why with reprise dead "+q.Name+", then redrive or delete them.")
	}
	if q.InFlight >= nearQuota {
		q.add(plan.Error, CodeInFlight,
			fmt.Sprintf("%d messages are in flight, and SQS permits a queue no more than %d: it then looks empty.", q.InFlight, plan.MaxInFlight),
			"shorten the waits of the policy, or delete or move messages that cannot succeed.")
	}
	if d.Problem == "" && len(q.DeadLettersOf) == 0 { // others consume it by a policy
		var p retry.Policy
		if d.Policy != nil {
			p = *d.Policy
		}
		for _, f := range plan.Check(p, own, plan.Settings{}) {
			if f.Severity >= plan.Warning && (d.Policy != nil || slices.Contains(ofQueues, f.Code)) {
				q.add(f.Severity, f.Code, f.Problem, f.Remedy)
			}
		}
	}
	slices.SortStableFunc(q.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }) // error before warning
}

func (q *Queue) add(severity plan.Severity, code, problem, remedy string) {
	q.Findings = append(q.Findings, Finding{severity.String(), code, problem, remedy})
}

// QueuesTable is a line for each queue.
func QueuesTable(queues []Queue) Table {
	t := Table{Header: []string{"queue", "visible", "in flight", "delayed", "dead-letter queue", "findings"}, Right: []bool{false, true, true, true, false, false}}
	for _, q := range queues {
		dead := q.DeadLetterQueue
		if len(q.DeadLettersOf) > 0 {
			dead = "of " + strings.Join(q.DeadLettersOf, ", ")
		}
		var codes []string
		for _, f := range q.Findings {
			codes = append(codes, f.Code)
		}
		t.Rows = append(t.Rows, []string{q.Name, strconv.Itoa(q.Visible), strconv.Itoa(q.InFlight), strconv.Itoa(q.Delayed), dead, strings.Join(codes, ", ")})
	}
	return t
}

// NameOf is the last part of a queue's URL.
func NameOf(url string) string {
	return url[strings.LastIndexByte(strings.TrimRight(url, "/"), '/')+1:]
}

func lastPart(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// near reports whether two ARNs are of the same region and account.
func near(a, b string) bool {
	i := strings.LastIndexByte(a, ':')
	return i > 0 && strings.HasPrefix(b, a[:i+1])
}

// number reads a count; any other text counts as 0.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
