package reprise

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

const maxBatch = consumer.MaxBatch // SQS's limit of entries in a batch request

// results are the results of a request's entries, by position.
type results = [maxBatch]consumer.Failure

// unanswered returns the results of n entries without a reply.
func unanswered(n int) (replied results) {
	for i := range n {
		replied[i] = consumer.Failure{Err: consumer.ErrUnanswered}
	}
	return replied
}

// positions are the ids of batch entries. Message ids would not do: one could be in a batch
// twice, and SQS would refuse the whole batch.
var positions = [maxBatch]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// refusal is SQS's error for one entry of a batch.
type refusal struct {
	code, message string
	ours          bool // the entry is at fault: SQS would refuse it again
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

// sortReply returns the results of a request with n entries, by position: success for each
// entry that SQS confirmed, a failure for every other one, also for those that the reply
// does not mention. id returns the id of the i-th confirmed entry.
func sortReply(n, confirmed int, id func(i int) *string, failed []types.BatchResultErrorEntry, err error) results {
	replied := unanswered(n)
	if err != nil {
		f := failureOf(err)
		for i := range n {
			replied[i] = f
		}
	}
	for i := range confirmed {
		if at, ok := position(id(i), n); ok {
			replied[at] = consumer.Failure{}
		}
	}
	for i := range failed {
		f := &failed[i]
		if at, ok := position(f.Id, n); ok {
			said := &refusal{code: deref(f.Code), message: deref(f.Message), ours: f.SenderFault && !throttled(deref(f.Code))}
			replied[at] = consumer.Failure{Err: said, Kinds: consumer.OfEntry}
			if said.ours {
				replied[at].Kinds |= consumer.BySender
			}
		}
	}
	return replied
}

// position returns the position that is an entry's id. It returns false if the id is none of
// the n positions.
func position(id *string, n int) (int, bool) {
	if id == nil {
		return 0, false
	}
	at, err := strconv.Atoi(*id)
	return at, err == nil && at >= 0 && at < n
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
