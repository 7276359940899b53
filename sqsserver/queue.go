package sqsserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// cooldown is how long the name of a deleted queue stays taken, and how long
// after a purge the next one is refused.
const cooldown = 60 * time.Second

const (
	maxQueueName   = 80
	maxListResults = 1000
	fifoSuffix     = ".fifo"
)

// queueName names a queue among those of the server.
type queueName struct {
	account, region, name string
}

// queue is a queue without its messages, which the engine has.
type queue struct {
	queueName
	arn     string
	id      uint64 // in its receipt handles
	fifo    bool
	created time.Time

	// The fields below are guarded by the server's lock.
	engine     *engine.Queue
	attributes *attributes // replaced as a whole, so that it can be read without the lock
	tags       map[string]string
	modified   time.Time
	purged     time.Time
	dropped    bool
	waiters    waiters
	lost       map[engine.Receipt]struct{} // leases that FaultLoseLease has taken
	attempts   attempts
	moves      []*moveTask     // out of this queue, newest first
	emptied    []chan struct{} // of WaitEmpty; closed when the queue is found empty
}

// CreateQueue creates a queue, or finds an existing one with the name and the attributes given.
func (s *Server) CreateQueue(ctx context.Context, in *CreateQueueInput) (*CreateQueueOutput, error) {
	from := s.callerOf(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fifo := isTrue(in.Attributes["FifoQueue"])
	if err := checkQueueName(in.QueueName, fifo); err != nil {
		return nil, err
	}
	after, err := s.injectRequestFault(ctx, in.QueueName, actionCreateQueue)
	if err != nil {
		return nil, err
	}
	wanted, err := defaultAttributes(fifo).set(in.Attributes)
	if err != nil {
		return nil, err
	}
	if err := checkTags(in.QueueName, in.Tags); err != nil {
		return nil, err
	}
	name := queueName{from.account, from.region, in.QueueName}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}
	synced, err := s.create(name, wanted, in)
	if err != nil {
		return nil, err
	}
	if err := synced.wait(ctx); err != nil {
		return nil, err
	}
	s.note(ctx, name.name)
	if err := after.delayOrLose(ctx); err != nil {
		return nil, err
	}
	return &CreateQueueOutput{QueueUrl: from.queueURL(name)}, nil
}

func checkQueueName(name string, fifo bool) error {
	base, invalid := name, errQueueName
	if fifo {
		invalid = errFIFOQueueName
		var found bool
		if base, found = strings.CutSuffix(name, fifoSuffix); !found {
			return invalid()
		}
	}
	if base == "" || len(name) > maxQueueName {
		return invalid()
	}
	for _, c := range []byte(base) {
		if !isNameCharacter(c) {
			return invalid()
		}
	}
	return nil
}

// create creates the queue unless it exists with the attributes given. Wanted has not been
// reconciled, because the rules depend on the existing queue.
func (s *Server) create(name queueName, wanted *attributes, in *CreateQueueInput) (*commitGroup, error) {
	s.mu.Lock()
	defer s.unlockOrStop()
	if err := s.refusal(); err != nil {
		return nil, err
	}
	if q := s.queues[name]; q != nil {
		return s.pendingCommit(), q.compare(wanted, in.Attributes)
	}
	if err := wanted.reconcile(in.Attributes); err != nil {
		return nil, err
	}
	now := s.clock.now()
	if now.Before(s.deleted[name].Add(cooldown)) && !s.config.NoCooldown {
		return nil, errQueueDeletedRecently()
	}
	q := &queue{
		queueName:  name,
		arn:        name.arn(),
		id:         s.random.Uint64(),
		fifo:       wanted.fifo,
		created:    now,
		modified:   now,
		tags:       maps.Clone(in.Tags),
		attributes: wanted,
	}
	if err := s.checkRedrive(q, wanted, in.Attributes); err != nil {
		return nil, err
	}
	s.forgetDeletion(name)
	q.engine = s.engine.Create(now, q.arn, s.settings(wanted))
	s.queues[name], s.byARN[q.arn] = q, q
	s.recordQueue(q)
	return s.pendingCommit(), nil
}

func (n queueName) arn() string {
	return "arn:aws:sqs:" + n.region + ":" + n.account + ":" + n.name
}

// compare returns the first given attribute in which the existing queue of that name differs.
// Attributes that are not given are not compared.
func (q *queue) compare(wanted *attributes, given map[string]string) error {
	want, have := wanted.settable(), q.attributes.settable()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if want[name] != have[name] {
			return errQueueNameExists(name)
		}
	}
	return nil
}

// settings returns the attributes that the engine needs.
func (s *Server) settings(a *attributes) engine.Settings {
	return engine.Settings{
		FIFO:          a.fifo,
		Delay:         seconds(a.delay),
		Visibility:    seconds(a.visibility),
		Retention:     seconds(a.retention),
		DeadLetter:    a.redrive.target,
		MaxReceives:   a.redrive.maxReceives,
		DedupPerGroup: a.deduplicationScope == scopeMessageGroup,
		InFlightLimit: s.config.InFlightLimit,
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// GetQueueUrl finds a queue by its name.
func (s *Server) GetQueueUrl(ctx context.Context, in *GetQueueUrlInput) (*GetQueueUrlOutput, error) {
	from := s.callerOf(ctx)
	if in.QueueName == "" {
		return nil, errQueueName()
	}
	name := queueName{cmp.Or(in.QueueOwnerAWSAccountId, from.account), from.region, in.QueueName}
	r, err := s.lookupName(ctx, name, actionGetQueueUrl)
	if err != nil {
		return nil, err
	}
	return &GetQueueUrlOutput{QueueUrl: from.queueURL(name)}, r.delayOrLose(ctx)
}

// ListQueues lists queues in the order of their names.
func (s *Server) ListQueues(ctx context.Context, in *ListQueuesInput) (*ListQueuesOutput, error) {
	from := s.callerOf(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	after, err := s.injectRequestFault(ctx, "", actionListQueues)
	if err != nil {
		return nil, err
	}
	isListed := func(q *queue) bool {
		return q.account == from.account && q.region == from.region && strings.HasPrefix(q.name, in.QueueNamePrefix)
	}
	out := &ListQueuesOutput{}
	out.QueueUrls, out.NextToken, err = s.listPage(from, in.MaxResults, in.NextToken, isListed)
	if err != nil {
		return nil, err
	}
	if err := after.delayOrLose(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// ListDeadLetterSourceQueues lists the queues that have a queue as their
// dead-letter queue, in the order of their names.
func (s *Server) ListDeadLetterSourceQueues(ctx context.Context, in *ListDeadLetterSourceQueuesInput) (*ListDeadLetterSourceQueuesOutput, error) {
	from := s.callerOf(ctx)
	r, err := s.lookup(ctx, in.QueueUrl, actionListDeadLetterSourceQueues)
	if err != nil {
		return nil, err
	}
	isSource := func(q *queue) bool { return q.attributes.redrive.target == r.queue.arn }
	out := &ListDeadLetterSourceQueuesOutput{}
	out.QueueUrls, out.NextToken, err = s.listPage(from, in.MaxResults, in.NextToken, isSource)
	if err != nil {
		return nil, err
	}
	return out, r.delayOrLose(ctx)
}

// listPage returns the URLs of a page of queues, all of one account and region, in the order of
// their names, and the token of the next page. The token is the last name of this page.
func (s *Server) listPage(from *caller, maxResults OptionalInt, token string, isListed func(*queue) bool) (urls []string, next string, err error) {
	limit := int(maxResults.Or(maxListResults))
	if limit < 1 || limit > maxListResults {
		return nil, "", errMaxResults(maxResults.Value, maxListResults)
	}
	after, err := parsePageToken(token)
	if err != nil {
		return nil, "", err
	}
	names, err := s.queueNames(func(q *queue) bool { return q.name > after && isListed(q) })
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(names, func(a, b queueName) int { return cmp.Compare(a.name, b.name) })
	page := names[:min(limit, len(names))]
	for _, name := range page {
		urls = append(urls, from.queueURL(name))
	}
	if len(names) > limit && maxResults.Set {
		next = base64.RawURLEncoding.EncodeToString([]byte(page[limit-1].name))
	}
	return urls, next, nil
}

// parsePageToken returns the name of the queue after which a page begins. A token that is
// not a queue name was never issued.
func parsePageToken(token string) (name string, err error) {
	if token == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	name = string(text)
	if err != nil || checkQueueName(name, strings.HasSuffix(name, fifoSuffix)) != nil {
		return "", errNextToken()
	}
	return name, nil
}

// queueNames returns the names of the queues that isListed, in no order.
func (s *Server) queueNames(isListed func(*queue) bool) ([]queueName, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return nil, err
	}
	var names []queueName
	for name, q := range s.queues {
		if isListed(q) {
			names = append(names, name)
		}
	}
	return names, nil
}

// DeleteQueue deletes a queue and its messages.
func (s *Server) DeleteQueue(ctx context.Context, in *DeleteQueueInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionDeleteQueue)
	if err != nil {
		return err
	}
	return s.change(ctx, r, func(now time.Time) error {
		s.drop(now, r.queue)
		return nil
	})
}

// drop deletes a queue. The lock is held.
func (s *Server) drop(now time.Time, q *queue) {
	q.dropped = true
	q.endMove(moveFailed, codeQueueDoesNotExist)
	s.engine.Drop(now, q.engine)
	delete(s.queues, q.queueName)
	delete(s.byARN, q.arn)
	for name, at := range s.deleted {
		if now.Sub(at) >= cooldown {
			s.forgetDeletion(name)
		}
	}
	s.deleted[q.queueName] = now
	s.recordDeletion(q, now)
	s.endQueuePolls(q, errQueueDoesNotExist())
}

// PurgeQueue deletes the messages of a queue.
func (s *Server) PurgeQueue(ctx context.Context, in *PurgeQueueInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionPurgeQueue)
	if err != nil {
		return err
	}
	return s.change(ctx, r, func(now time.Time) error { return s.purge(now, r.queue) })
}

// purge deletes the messages of a queue. The lock is held.
func (s *Server) purge(now time.Time, q *queue) error {
	if now.Before(q.purged.Add(cooldown)) && !s.config.NoCooldown {
		return errPurgeQueueInProgress(q.name)
	}
	q.purged = now
	q.lost = nil
	s.engine.Purge(now, q.engine)
	s.recordQueue(q)
	return nil
}
