package admin

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// Job is what has become of a request.
type Job struct {
	ID      string           `json:"id"`
	State   string           `json:"state"`
	Action  string           `json:"action"`
	Queue   string           `json:"queue"` // its name
	URL     string           `json:"url"`
	To      string           `json:"to,omitempty"`
	With    operate.Criteria `json:"selection,omitzero"`
	DryRun  bool             `json:"dry_run,omitempty"`
	Limit   int              `json:"limit,omitempty"`
	Rate    float64          `json:"rate,omitempty"`
	Edit    operate.Rewrite  `json:"edit,omitzero"`
	Created time.Time        `json:"created"`
	Ended   time.Time        `json:"ended,omitzero"`
	Remote  string           `json:"remote"` // who asked for it
	// Looked counts the messages that were looked at, Matched those that are selected, Done those that
	// were sent, deleted or exported, or would be, and Failed those that were not.
	Looked  int `json:"looked"`
	Matched int `json:"matched"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	// Edited is how many of those that match the edit changes, or would change, and Example what it changes of the
	// first of them, line by line, behind - and +.
	Edited  int    `json:"edited,omitempty"`
	Example string `json:"example,omitempty"`
	// Busy is how many were passed over because a consumer has them, or because they are delayed, where
	// that can be seen.
	Busy int `json:"busy,omitempty"`
	// Sent is how many messages were sent, or would be, by the URL of their queue.
	Sent map[string]int `json:"sent,omitempty"`
	// Left is how many were left, by the reason.
	Left map[string]int `json:"left,omitempty"`
	// Problem is why it failed, or has not looked at all messages.
	Problem string `json:"problem,omitempty"`
	// Dropped reports that what it exported is no longer kept: later exports needed the memory.
	Dropped bool `json:"dropped,omitempty"`
}

// JobList has the jobs that run, and the last that have ended, the newest first.
type JobList struct {
	Jobs []Job `json:"jobs"`
}

// Exported is a page of the messages that a job has exported.
type Exported struct {
	Messages []operate.Message `json:"messages"`
	// Next is what after has to be for the next page; empty: there is none.
	Next string `json:"next,omitempty"`
}

// JobQueue is a queue that jobs may act on.
type JobQueue struct {
	URL    string
	Client *sqs.Client
	// Keys are those with which the consumers of the queue, or those that dead-letter to it, sign what
	// they write into messages. Default: none; then what messages say of their source is a sender's
	// word.
	Keys []reprise.SigningKey
}

const (
	// maxRunning is how many jobs run at once, maxEnded how many that have ended are remembered.
	maxRunning = 8
	maxEnded   = 100
	// publishEvery bounds how often the progress of a job is an event.
	publishEvery = time.Second
)

// jobs are those of a process. They end with it.
type jobs struct {
	mu      sync.Mutex
	all     []*job // the oldest first
	stopped bool
	running sync.WaitGroup
	bytes   int // of the messages that all of them have exported
	room    int // how many bytes that may be: maxExports, but in tests
}

// job is one that runs or has ended. The mutex of jobs guards it.
type job struct {
	Job
	request   JobRequest
	selection operate.Selection
	rewriting *operate.Rewriting
	from, to  JobQueue
	deadOnly  bool
	alive     int           // messages that were left for it
	stop      chan struct{} // closed to cancel it: it finishes what is under way
	stopping  bool
	cut       context.CancelFunc // ends it at once
	exported  []operate.Message
	bytes     int // of exported
	published time.Time
	asked     time.Time // when somebody asked for it last
}

// OneQueue returns the only URL of those that were found for a queue, or the error that jobs answer
// with.
func OneQueue(queue string, found []string) (string, error) {
	switch len(found) {
	case 0:
		return "", problem(http.StatusNotFound, "no-such-queue", "this process knows no queue %q: GET %squeues lists those that it does", queue, Path)
	case 1:
		return found[0], nil
	}
	return "", problem(http.StatusConflict, "ambiguous", "this process knows %d queues called %q: name one by its URL, of %q", len(found), queue, found)
}

func (a *API) createJob(r *http.Request) (Job, error) {
	var request JobRequest
	if err := readBody(r, &request); err != nil {
		return Job{}, err
	}
	if err := request.check(); err != nil {
		return Job{}, problem(http.StatusBadRequest, "bad-request", "the body cannot be used: %v", err)
	}
	j := &job{request: request, stop: make(chan struct{})}
	j.selection, _ = request.Selection.Selection() // it has been checked
	j.rewriting, _ = request.Edit.Rewriting()      // likewise
	var err error
	if j.from, err = a.cfg.JobQueue(r.Context(), request.Queue); err != nil {
		return Job{}, err
	}
	signed := len(j.from.Keys) > 0 // a consumer may dead-letter to a queue that no other names
	if request.DeadOnly || request.Action == JobRedrive && !request.AnyQueue && !signed {
		named, err := operate.IsDeadLetterQueue(r.Context(), j.from.Client, j.from.URL)
		switch {
		case request.Action == JobRedrive && !request.AnyQueue && !signed && err == nil && !named:
			return Job{}, problem(http.StatusBadRequest, "bad-request", "no queue names %q as its dead-letter queue, so its messages may be alive: name a dead-letter queue, or set any_queue (commands: --any-queue)", request.Queue)
		case request.DeadOnly && err != nil:
			return Job{}, err
		}
		j.deadOnly = request.DeadOnly && !named
	}
	if request.To != "" {
		if j.to, err = a.cfg.JobQueue(r.Context(), request.To); err != nil {
			return Job{}, err
		}
		if j.to.URL == j.from.URL {
			return Job{}, problem(http.StatusBadRequest, "bad-request", "the messages are in queue %q already: name another queue to send them to", request.To)
		}
	}
	j.Job = Job{
		ID: "job-" + rand.Text()[:12], State: JobRunning, Action: request.Action, Queue: operate.NameOf(j.from.URL), URL: j.from.URL, To: j.to.URL,
		With: request.Selection, DryRun: request.DryRun, Limit: request.Limit, Rate: request.Rate, Edit: request.Edit, Created: time.Now().UTC(), Remote: remote(r),
	}
	snapshot := j.Job
	if err := a.start(j); err != nil {
		return Job{}, err
	}
	a.auditBegin(r, &snapshot, request)
	return snapshot, nil
}

// start starts a job, unless there are too many, one works on the same queue (they would hide the messages from each
// other), or what it says was counted was not.
func (a *API) start(j *job) error {
	a.jobs.mu.Lock()
	defer a.jobs.mu.Unlock()
	if a.jobs.stopped {
		return problem(http.StatusServiceUnavailable, "too-many", "the process stops: start the job again when it is back")
	}
	running := 0
	for _, other := range a.jobs.all {
		if other.State != JobRunning {
			continue
		}
		if running++; other.URL == j.URL {
			return problem(http.StatusConflict, "busy", "%s works on queue %q: wait for its end, or cancel it", other.ID, j.Queue)
		}
	}
	if running >= maxRunning {
		return problem(http.StatusServiceUnavailable, "too-many", "%d jobs run already: wait for the end of one", maxRunning)
	}
	if err := a.jobs.checkCount(j); err != nil {
		return err
	}
	ctx, cut := context.WithCancel(context.Background())
	j.cut, j.asked = cut, time.Now()
	a.jobs.all = append(a.jobs.all, j)
	if j.request.Attached {
		go a.endAbandoned(ctx, j)
	}
	a.jobs.running.Go(func() {
		defer cut()
		a.end(j, a.work(ctx, j))
	})
	return nil
}

// update changes what is known of a job, and passes it on to those who watch.
func (a *API) update(j *job, change func(*Job)) {
	a.jobs.mu.Lock()
	change(&j.Job)
	snapshot, publish := j.snapshot(), j.State != JobRunning || time.Since(j.published) >= publishEvery
	if publish {
		j.published = time.Now()
	}
	a.jobs.mu.Unlock()
	if publish {
		a.cfg.Events.publish(EventJob, j.URL, snapshot.ID, func() any { return snapshot })
	}
}

// snapshot is a copy that does not change any more.
func (j *job) snapshot() Job {
	s := j.Job
	s.Sent, s.Left = copyOf(s.Sent), copyOf(s.Left)
	return s
}

func copyOf(counts map[string]int) map[string]int {
	if counts == nil {
		return nil
	}
	c := make(map[string]int, len(counts))
	for k, n := range counts {
		c[k] = n
	}
	return c
}

// end notes how a job has ended, and forgets the oldest of those that have.
func (a *API) end(j *job, err error) {
	a.update(j, func(s *Job) {
		s.State, s.Ended = JobDone, time.Now().UTC()
		switch {
		case err != nil:
			s.State, s.Problem = JobFailed, textOf(err)
		case j.stopping:
			s.State = JobCancelled
		}
	})
	a.jobs.mu.Lock()
	snapshot, ended := j.snapshot(), 0
	for _, other := range a.jobs.all {
		if other.State != JobRunning {
			ended++
		}
	}
	a.jobs.all = slices.DeleteFunc(a.jobs.all, func(other *job) bool {
		if other.State == JobRunning || ended <= maxEnded {
			return false
		}
		ended--
		a.jobs.bytes -= other.bytes
		return true
	})
	a.jobs.mu.Unlock()
	a.auditEnd(&snapshot)
}

func (a *API) listJobs(*http.Request) (JobList, error) {
	a.jobs.mu.Lock()
	defer a.jobs.mu.Unlock()
	list := JobList{Jobs: []Job{}}
	for _, j := range slices.Backward(a.jobs.all) {
		list.Jobs = append(list.Jobs, j.snapshot())
	}
	return list, nil
}

// findJob returns the job of a request. The caller holds the lock.
func (a *API) findJob(r *http.Request) (*job, error) {
	id := r.PathValue("job")
	for _, j := range a.jobs.all {
		if j.ID == id {
			return j, nil
		}
	}
	return nil, problem(http.StatusNotFound, "no-such-job", "there is no job %q: GET %sjobs lists those that run and the last %d; a process forgets them when it ends", id, Path, maxEnded)
}

func (a *API) job(r *http.Request) (Job, error) {
	a.jobs.mu.Lock()
	defer a.jobs.mu.Unlock()
	j, err := a.findJob(r)
	if err != nil {
		return Job{}, err
	}
	j.asked = time.Now()
	return j.snapshot(), nil
}

// cancelJob has a job end after what is under way.
func (a *API) cancelJob(r *http.Request) (Job, error) {
	a.jobs.mu.Lock()
	j, err := a.findJob(r)
	if err != nil {
		a.jobs.mu.Unlock()
		return Job{}, err
	}
	j.cancel()
	snapshot := j.snapshot()
	a.jobs.mu.Unlock()
	a.audit(r, "cancel", j.from.URL, struct{}{}, nil, "job", j.ID)
	return snapshot, nil
}

// cancel ends the job. The caller holds the lock.
func (j *job) cancel() {
	if j.State == JobRunning && !j.stopping {
		j.stopping = true
		close(j.stop)
	}
}

// exportPage is how many messages a page of an export has at most; maxPage bounds it too.
const exportPage = 500

func (a *API) exported(r *http.Request) (page Exported, err error) {
	after := 0
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return page, problem(http.StatusBadRequest, "bad-request", "after is %q: pass next of the page before", text)
		}
	}
	a.jobs.mu.Lock()
	defer a.jobs.mu.Unlock()
	j, err := a.findJob(r)
	if err != nil {
		return page, err
	}
	if j.Dropped {
		return page, problem(http.StatusConflict, "refused", "the messages that %s exported are no longer kept, because later exports needed the %d MiB that a process keeps of all: export them again, or use reprise dead export, which writes a file", j.ID, maxExports>>20)
	}
	from := min(after, len(j.exported))
	to := from
	for bytes := 0; to < min(from+exportPage, len(j.exported)) && bytes < maxPage; to++ {
		bytes += j.exported[to].Size()
	}
	page.Messages = append([]operate.Message{}, j.exported[from:to]...)
	if to < len(j.exported) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

// Stop has all jobs finish what is under way, and cuts them off when ctx ends. Then it ends all streams.
func (a *API) Stop(ctx context.Context) error {
	a.stopWatching()
	a.jobs.mu.Lock()
	a.jobs.stopped = true
	for _, j := range a.jobs.all {
		j.cancel()
	}
	a.jobs.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.jobs.running.Wait()
	}()
	limit := time.NewTimer(jobStopBudget)
	defer limit.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-limit.C:
	}
	a.jobs.mu.Lock()
	for _, j := range a.jobs.all {
		j.cut()
	}
	a.jobs.mu.Unlock()
	return a.cfg.Events.Stop(ctx)
}

// jobStopBudget is how long a job that is cancelled may take for the batch under way.
const jobStopBudget = 5 * time.Second
