package queuebench

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// batchSize and batchBytes are SQS's limits of a request.
const (
	batchSize  = 10
	batchBytes = 1 << 20
)

// maxUnanswered is how many sends in a row, each of which the client has repeated, may fail before the
// bench sends no more.
const maxUnanswered = 5

// body is the body of a message: JSON, so that other commands find it by --where bench=ID.
type body struct {
	Bench   string `json:"bench"`
	Number  int    `json:"number"`
	Group   int    `json:"group"`
	Sent    int64  `json:"sent"` // in nanoseconds since the bench began
	Padding string `json:"padding"`
}

// write returns a body of size bytes.
func (b body) write(size int) string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // numbers and letters
	}
	padding := strings.Repeat("x", max(0, size-len(text)))
	return strings.TrimSuffix(string(text), `"}`) + padding + `"}`
}

// readBody returns the body of a message of this bench; ok reports whether it is one.
func (r *run) readBody(text string) (b body, ok bool) {
	if !strings.HasPrefix(text, `{"bench":"`+r.id) {
		return b, false
	}
	err := json.Unmarshal([]byte(text), &b)
	return b, err == nil && b.Bench == r.id && b.Number >= 0 && b.Group >= 0 && b.Group < max(1, r.Groups)
}

// send sends messages until there are no more to send or ctx ends. The sender is one of several.
func (r *run) send(ctx, hard context.Context, sender int) {
	most := max(1, min(batchSize, batchBytes/r.Size))
	for turn := 0; ; turn++ {
		first, count := 0, 0
		if r.room != nil {
			first, count = r.takeWithRoom(ctx, most)
		} else {
			first, count = r.takeAtRate(ctx, most)
		}
		if count == 0 {
			return
		}
		r.sendBatch(hard, first, count, r.groupOf(sender, turn))
	}
}

// groupOf is the message group of a sender's batch: its groups take turns.
func (r *run) groupOf(sender, turn int) int {
	if !r.fifo {
		return 0
	}
	of := (r.Groups - sender + r.senders() - 1) / r.senders() // how many are its own
	return sender + turn%of*r.senders()
}

// takeWithRoom returns the messages that a sender sends next, when there is room for one at least;
// none: it is over.
func (r *run) takeWithRoom(ctx context.Context, most int) (first, count int) {
	select {
	case r.room <- struct{}{}:
	case <-ctx.Done():
		return 0, 0
	}
	room := 1
	for full := false; room < most && !full; {
		select {
		case r.room <- struct{}{}:
			room++
		default:
			full = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		first, count = r.claim(room)
	}
	for range room - count {
		r.makeRoom()
	}
	return first, count
}

// takeAtRate returns the messages that a sender sends next, when it is time for one at least; none:
// it is over.
func (r *run) takeAtRate(ctx context.Context, most int) (first, count int) {
	for ctx.Err() == nil {
		first, count, due := r.claimDue(most)
		if count > 0 || due == 0 {
			return first, count
		}
		wait(ctx, due)
	}
	return 0, 0
}

// claimDue gives a sender those of up to most messages that are due by the rate. If none is, the next
// is due in some time; 0: there are no more.
func (r *run) claimDue(most int) (first, count int, due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Messages > 0 && r.next == r.Messages {
		return 0, 0, 0
	}
	passed := time.Since(r.began)
	if n := int(passed.Seconds()*r.Rate) - r.next; n > 0 {
		first, count = r.claim(min(n, most))
		return first, count, 0
	}
	next := time.Duration(float64(r.next+1) / r.Rate * float64(time.Second))
	return 0, 0, max(next-passed, time.Millisecond)
}

// claim gives a sender up to count messages.
func (r *run) claim(count int) (first, claimed int) {
	if r.Messages > 0 {
		count = min(count, r.Messages-r.next)
	}
	first = r.next
	r.next += count
	r.open += count
	r.messages = append(r.messages, make([]state, count)...)
	if r.moved.IsZero() {
		r.moved = time.Now()
	}
	return first, count
}

func (r *run) sendBatch(ctx context.Context, first, count, group int) {
	entries := make([]types.SendMessageBatchRequestEntry, count)
	began := time.Now()
	for i := range entries {
		id, text := strconv.Itoa(i), body{Bench: r.id, Number: first + i, Group: group, Sent: int64(began.Sub(r.began))}.write(r.Size)
		entries[i] = types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &text}
		if r.fifo {
			name, deduplication := "bench-"+strconv.Itoa(group), r.id+"-"+strconv.Itoa(first+i)
			entries[i].MessageGroupId, entries[i].MessageDeduplicationId = &name, &deduplication
		}
	}
	out, err := r.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &r.QueueURL, Entries: entries})
	took := time.Since(began)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Send++
	r.calls.Billed += billed(count * r.Size)
	if err != nil {
		r.calls.Failed++
		r.failed(codeOf(err))
		refused := refusedByService(err)
		for n := first; refused && n < first+count; n++ {
			r.refuse(n) // otherwise SQS may have taken it: it is open
		}
		if r.unanswered++; refused || r.unanswered == maxUnanswered {
			r.sendError = err // the next would fail for the same reason
			r.stopSending()
		}
		return
	}
	r.unanswered = 0
	r.sendTook.Add(took)
	r.sentFor = time.Since(r.began)
	r.moved = time.Now()
	for _, e := range out.Successful {
		if n, ok := entryOf(e.Id, count); ok && r.messages[first+n]&taken == 0 {
			r.messages[first+n] |= taken
			r.counts.Sent++
		}
	}
	for _, e := range out.Failed {
		if n, ok := entryOf(e.Id, count); ok {
			r.failed(*e.Code)
			r.refuse(first + n)
		}
	}
}

// billed is how many requests AWS bills for one: each begun 64 KiB of messages counts.
func billed(bytes int) int64 {
	return int64(max(1, (bytes+64<<10-1)/(64<<10)))
}

// refuse notes that SQS has not taken a message.
func (r *run) refuse(n int) {
	if r.messages[n] != 0 {
		return
	}
	r.messages[n] = refused
	r.counts.Refused++
	r.open--
	r.makeRoom()
}

// makeRoom lets senders send one message more.
func (r *run) makeRoom() {
	if r.room != nil {
		<-r.room
	}
}

// entryOf returns the entry of a batch that an id of a reply means.
func entryOf(id *string, count int) (n int, ok bool) {
	if id == nil {
		return 0, false
	}
	n, err := strconv.Atoi(*id)
	return n, err == nil && n >= 0 && n < count
}

// codeOf is SQS's code of an error, or what stands for one.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return "no reply"
}

// refusedByService reports whether SQS has said that it does not carry a request out, which the
// client has repeated if that could help.
func refusedByService(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorFault() == smithy.FaultClient
}
