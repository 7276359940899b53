package sqsserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Limits of message move tasks.
const (
	maxMoveRate    = 500            // messages a second, and what a task without a rate does
	maxMoveTime    = 36 * time.Hour // of a task
	maxActiveMoves = 100            // of an account
	maxListedMoves = 10             // of a queue; older ones are forgotten
)

// The states of a task. AWS has also CANCELLING, through which ours pass at once.
const (
	moveRunning   = "RUNNING"
	moveCompleted = "COMPLETED"
	moveCancelled = "CANCELLED"
	moveFailed    = "FAILED"
)

// The reasons why a task failed, besides that a queue does not exist any more.
const (
	failedSource = "CouldNotDetermineMessageSource" // the message was sent to the queue
	failedTime   = "TaskTimedOut"                   // after 36 hours; the text of AWS is not known
)

// moveTask is a message move task. It moves as many messages as were visible when it began:
// otherwise messages that fail again while the task runs could go round for ever. Messages
// in flight and delayed ones stay.
type moveTask struct {
	id          UUID
	source      string // ARN
	destination string // ARN; "": each message to its own source
	rate        int32  // messages a second; 0: not given
	started     time.Time
	begun       time.Time // the same by the machine's clock, which paces it

	// Guarded by the server's lock.
	status string
	reason string
	moved  int64
	toMove int64
	timer  *time.Timer // runs the next step; nil after the end
}

// StartMessageMoveTask starts to move the messages of a dead-letter queue.
func (s *Server) StartMessageMoveTask(ctx context.Context, in *StartMessageMoveTaskInput) (*StartMessageMoveTaskOutput, error) {
	from := s.callerOf(ctx)
	after, err := s.beginByARN(ctx, in.SourceArn, actionStartMessageMoveTask)
	if err != nil {
		return nil, err
	}
	if n := in.MaxNumberOfMessagesPerSecond; n.Set && (n.Value < 1 || n.Value > maxMoveRate) {
		return nil, errMoveRate(n.Value)
	}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}
	task, synced, err := s.startMove(from, in)
	if err != nil {
		return nil, err
	}
	if err := synced.wait(ctx); err != nil {
		return nil, err
	}
	if err := after.delayOrLose(ctx); err != nil {
		return nil, err
	}
	return &StartMessageMoveTaskOutput{TaskHandle: task.handle()}, nil
}

// beginByARN begins an action that names its queue by an ARN.
func (s *Server) beginByARN(ctx context.Context, arn, action string) (replyFault, error) {
	if err := ctx.Err(); err != nil {
		return replyFault{}, err
	}
	if arn == "" {
		return replyFault{}, errMissingParameter("SourceArn")
	}
	return s.injectRequestFault(ctx, arn[strings.LastIndexByte(arn, ':')+1:], action)
}

func (s *Server) startMove(from *caller, in *StartMessageMoveTaskInput) (*moveTask, *commitGroup, error) {
	s.mu.Lock()
	defer s.unlockOrStop()
	source, err := s.findARN(from, "SourceArn", in.SourceArn)
	if err != nil {
		return nil, nil, err
	}
	if in.DestinationArn != "" {
		destination, err := s.findARN(from, "DestinationArn", in.DestinationArn)
		switch {
		case err != nil:
			return nil, nil, err
		case destination == source:
			return nil, nil, errDestination(in.DestinationArn, "It is the source queue.")
		case destination.fifo != source.fifo:
			return nil, nil, errDestination(in.DestinationArn, "It must be of the same type as the source queue.")
		}
	}
	if err := s.checkMove(source); err != nil {
		return nil, nil, err
	}
	now := s.clock.now()
	visible, _, _ := s.engine.Counts(now, source.engine)
	task := &moveTask{
		id:     newUUID(s.random.Uint64(), s.random.Uint64()),
		source: in.SourceArn, destination: in.DestinationArn, rate: in.MaxNumberOfMessagesPerSecond.Value,
		started: now, begun: time.Now(), status: moveRunning, toMove: int64(visible),
	}
	_, pause := task.pace()
	task.timer = time.AfterFunc(pause, func() { s.stepMove(source, task) })
	source.moves = slices.Insert(source.moves, 0, task)
	if len(source.moves) > maxListedMoves {
		source.moves = source.moves[:maxListedMoves]
	}
	s.recordMoves(source)
	return task, s.pendingCommit(), nil
}

// findARN returns the queue of the caller's region with the ARN that the
// parameter gives. The lock is held.
func (s *Server) findARN(from *caller, parameter, arn string) (*queue, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	q := s.byARN[arn]
	if q == nil || q.region != from.region {
		return nil, errNoResource(parameter)
	}
	return q, nil
}

// checkMove checks that messages can be moved out of a queue now. The lock is
// held.
func (s *Server) checkMove(source *queue) error {
	isDeadLetterQueue, active := false, 0
	for _, q := range s.queues {
		isDeadLetterQueue = isDeadLetterQueue || q.attributes.redrive.target == source.arn
		if q.account == source.account && q.running() != nil {
			active++
		}
	}
	switch {
	case !isDeadLetterQueue:
		return errNoDeadLetterQueue()
	case source.running() != nil:
		return errMoveRunning()
	case active >= maxActiveMoves:
		return errTooManyMoves()
	}
	return nil
}

// running returns the task that moves messages out of the queue, or nil.
func (q *queue) running() *moveTask {
	if len(q.moves) > 0 && q.moves[0].status == moveRunning {
		return q.moves[0]
	}
	return nil
}

// pace returns how many messages a step moves, and the pause between two steps.
func (t *moveTask) pace() (batch int, pause time.Duration) {
	const stepsPerSecond = 50
	rate := int(t.rate)
	if rate == 0 {
		rate = maxMoveRate
	}
	batch = min(max(rate/stepsPerSecond, 1), messagesPerHold)
	return batch, time.Duration(batch) * time.Second / time.Duration(rate)
}

// stepMove moves the next messages of a task. The timer calls it.
func (s *Server) stepMove(q *queue, task *moveTask) {
	_ = s.underLock(q, func(now time.Time) { // an error means that the queue or the server has ended, and the task with it
		if task != q.running() {
			return
		}
		batch, pause := task.pace()
		s.move(now, q, task, batch)
		s.recordMoves(q)
		if task.status == moveRunning {
			task.timer.Reset(pause)
		}
	})
}

func (s *Server) move(now time.Time, q *queue, task *moveTask, batch int) {
	if time.Since(task.begun) >= maxMoveTime {
		q.endMove(moveFailed, failedTime)
		return
	}
	var to *engine.Queue
	if task.destination != "" {
		destination := s.byARN[task.destination]
		if destination == nil {
			q.endMove(moveFailed, codeQueueDoesNotExist)
			return
		}
		to = destination.engine
	}
	visible, _, _ := s.engine.Counts(now, q.engine) // drops what has expired
	left := min(int64(visible), task.toMove-task.moved)
	for ; left > 0 && batch > 0; batch-- {
		moved, err := s.engine.Redrive(now, q.engine, to, s.newMessageID())
		switch {
		case errors.Is(err, engine.ErrNoSource):
			q.endMove(moveFailed, failedSource)
			return
		case err != nil:
			q.endMove(moveFailed, codeQueueDoesNotExist)
			return
		case !moved: // of a FIFO queue, behind messages in flight
			left = 0
		default:
			task.moved++
			left--
		}
	}
	if left == 0 {
		q.endMove(moveCompleted, "")
	}
}

// endMove ends the task that moves messages out of the queue, if there is one.
// The lock is held.
func (q *queue) endMove(status, reason string) {
	task := q.running()
	if task == nil {
		return
	}
	task.timer.Stop()
	task.timer = nil
	task.status, task.reason = status, reason
}

// CancelMessageMoveTask stops such a task.
func (s *Server) CancelMessageMoveTask(ctx context.Context, in *CancelMessageMoveTaskInput) (*CancelMessageMoveTaskOutput, error) {
	from := s.callerOf(ctx)
	if in.TaskHandle == "" {
		return nil, errMissingParameter("TaskHandle")
	}
	handle, err := parseTaskHandle(in.TaskHandle)
	if err != nil {
		return nil, err
	}
	after, err := s.beginByARN(ctx, handle.SourceArn, actionCancelMessageMoveTask)
	if err != nil {
		return nil, err
	}
	moved, synced, err := s.cancelMove(from, handle)
	if err != nil {
		return nil, err
	}
	if err := synced.wait(ctx); err != nil {
		return nil, err
	}
	if err := after.delayOrLose(ctx); err != nil {
		return nil, err
	}
	return &CancelMessageMoveTaskOutput{ApproximateNumberOfMessagesMoved: moved}, nil
}

func (s *Server) cancelMove(from *caller, handle taskHandle) (moved int64, synced *commitGroup, err error) {
	s.mu.Lock()
	defer s.unlockOrStop()
	q, err := s.findARN(from, "SourceArn", handle.SourceArn)
	if err != nil {
		return 0, nil, err
	}
	task := q.running()
	if task == nil || task.id.String() != handle.TaskID {
		return 0, nil, errNoTask()
	}
	q.endMove(moveCancelled, "")
	s.recordMoves(q)
	return task.moved, s.pendingCommit(), nil
}

// ListMessageMoveTasks lists the newest of these tasks.
func (s *Server) ListMessageMoveTasks(ctx context.Context, in *ListMessageMoveTasksInput) (*ListMessageMoveTasksOutput, error) {
	from := s.callerOf(ctx)
	after, err := s.beginByARN(ctx, in.SourceArn, actionListMessageMoveTasks)
	if err != nil {
		return nil, err
	}
	limit := int(in.MaxResults.Or(1))
	if limit < 1 || limit > maxListedMoves {
		return nil, errMaxResults(in.MaxResults.Value, maxListedMoves)
	}
	tasks, err := s.listMoves(from, in.SourceArn, limit)
	if err != nil {
		return nil, err
	}
	if err := after.delayOrLose(ctx); err != nil {
		return nil, err
	}
	return &ListMessageMoveTasksOutput{Results: tasks}, nil
}

func (s *Server) listMoves(from *caller, source string, limit int) ([]ListMessageMoveTasksResultEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.findARN(from, "SourceArn", source)
	if err != nil {
		return nil, err
	}
	var entries []ListMessageMoveTasksResultEntry
	for _, task := range q.moves[:min(limit, len(q.moves))] {
		entries = append(entries, task.entry())
	}
	return entries, nil
}

// entry returns the task as ListMessageMoveTasks reports it. The lock is held.
func (t *moveTask) entry() ListMessageMoveTasksResultEntry {
	entry := ListMessageMoveTasksResultEntry{
		Status:                            t.status,
		SourceArn:                         t.source,
		DestinationArn:                    t.destination,
		MaxNumberOfMessagesPerSecond:      t.rate,
		ApproximateNumberOfMessagesMoved:  t.moved,
		ApproximateNumberOfMessagesToMove: t.toMove,
		FailureReason:                     t.reason,
		StartedTimestamp:                  t.started.UnixMilli(),
	}
	if t.status == moveRunning {
		entry.TaskHandle = t.handle()
	}
	return entry
}

// taskHandle is the content of a task's handle, as in AWS's handles.
type taskHandle struct {
	TaskID    string `json:"taskId"`
	SourceArn string `json:"sourceArn"`
}

func (t *moveTask) handle() string {
	return base64.StdEncoding.EncodeToString(marshal(taskHandle{t.id.String(), t.source}))
}

func parseTaskHandle(text string) (handle taskHandle, err error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(decoded, &handle) != nil || handle.TaskID == "" || handle.SourceArn == "" {
		return taskHandle{}, errTaskHandle()
	}
	return handle, nil
}

// resumeMoves continues the tasks that ran when the server stopped. The lock is held.
func (s *Server) resumeMoves() {
	for _, q := range s.byARN {
		if task := q.running(); task != nil {
			_, pause := task.pace()
			task.timer = time.AfterFunc(pause, func() { s.stepMove(q, task) })
		}
	}
}
