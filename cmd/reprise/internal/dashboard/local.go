package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// localPage is for those who try something out: it sends and purges, and sets the faults and the time of the
// server of this process.
var localPage = page{
	path: Path + "local", template: "local", nav: "Local", live: 2 * time.Second,
	only: func(cfg *Config) bool { return cfg.Own },
	data: func(v *view) (string, any, error) {
		l, err := v.local()
		return "Local", l, err
	},
	actions: map[string]func(*view) (string, error){
		"send": sendMessages, "purge": purgeQueue, "add-fault": addFault, "remove-fault": removeFault, "advance": advanceTime,
	},
}

// local is the server of this process, and what can be done to it.
type local struct {
	Queues     []localQueue
	Faults     []localFault
	Kinds      []faultKind
	Time       time.Time
	CanAdvance bool
	// Apart is how far the server's time is from the machine's, if that is more than a second.
	Apart time.Duration
}

type localQueue struct {
	Name                       string
	FIFO                       bool
	Visible, InFlight, Delayed int
}

// localFault is a fault of a queue, which its text tells from the others of that queue.
type localFault struct {
	Queue, Text      string
	Chances, Strikes int
}

// faultKind is a kind of fault, with what it does.
type faultKind struct {
	Kind  sqsserver.FaultKind
	About string
}

// faultKinds are those that can be set, in the order in which people need them.
var faultKinds = []faultKind{
	{sqsserver.FaultThrottle, "refuse requests as throttled"},
	{sqsserver.FaultServerError, "refuse requests with an internal failure"},
	{sqsserver.FaultSlowReply, "hold replies back for the delay"},
	{sqsserver.FaultLoseReply, "carry requests out, and lose the replies"},
	{sqsserver.FaultDropConnection, "cut connections before a request has an effect"},
	{sqsserver.FaultFailEntry, "fail entries of batches"},
	{sqsserver.FaultDuplicate, "deliver messages again at once"},
	{sqsserver.FaultEarlyRedelivery, "hide messages for the delay at most"},
	{sqsserver.FaultLoseDelete, "acknowledge deletes without an effect"},
	{sqsserver.FaultStaleHandle, "refuse receipt handles"},
	{sqsserver.FaultLoseLease, "take messages from their receivers"},
	{sqsserver.FaultOverLimit, "refuse receives, as with too many messages in flight"},
	{sqsserver.FaultWrongCounts, "report wrong numbers of messages"},
}

func (v *view) local() (*local, error) {
	now, err := v.api.OwnServer(v.Context())
	if err != nil {
		return nil, err
	}
	stats, _, err := v.samples.latest(v.Context())
	if err != nil {
		return nil, err
	}
	l := &local{Kinds: faultKinds, Time: now.Now.Truncate(time.Second), CanAdvance: now.CanAdvance}
	if apart := now.Now.Sub(v.now); apart.Abs() > time.Second {
		l.Apart = apart.Round(time.Second)
	}
	for i := range stats.Queues {
		q := &stats.Queues[i].Queue
		l.Queues = append(l.Queues, localQueue{q.Name, q.FIFO, q.Visible, q.InFlight, q.Delayed})
	}
	slices.SortFunc(l.Queues, func(a, b localQueue) int { return cmp.Compare(a.Name, b.Name) })
	for _, queue := range slices.Sorted(maps.Keys(now.Faults)) {
		for _, f := range now.Faults[queue] {
			l.Faults = append(l.Faults, localFault{queue, faultText(f.Fault), f.Chances, f.Strikes})
		}
	}
	return l, nil
}

// faultText is a fault in a few words.
func faultText(f sqsserver.Fault) string {
	words := []string{string(f.Kind)}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if f.Action != "" {
		add("of %s", f.Action)
	}
	if f.Skip > 0 {
		add("after the first %d", f.Skip)
	}
	if f.Every > 1 {
		add("each %dth", f.Every)
	}
	if f.Probability > 0 && f.Probability < 1 {
		add("with chance %g", f.Probability)
	}
	if f.Limit > 0 {
		add("%s at most", plural.Of(f.Limit, "time"))
	}
	if f.Delay > 0 {
		add("delay %v", f.Delay)
	}
	return strings.Join(words, ", ")
}

const (
	// maxSent is how many messages a form sends.
	maxSent = 1000
	// maxDelay is SQS's own, in seconds.
	maxDelay = 900
)

// sendMessages sends a message, or several that are the same.
func sendMessages(v *view) (string, error) {
	queue := v.PostFormValue("queue")
	m := admin.NewMessage{Body: v.PostFormValue("body"), Group: v.PostFormValue("group")}
	times, err := wholeNumber(v.PostFormValue("times"), 1, 1, maxSent)
	if err != nil {
		return "", fmt.Errorf("the number of times: %w", err)
	}
	if text := v.PostFormValue("delay"); text != "" {
		delay, err := wholeNumber(text, 0, 0, maxDelay)
		if err != nil {
			return "", fmt.Errorf("the delay in seconds: %w", err)
		}
		seconds := int32(delay) //nolint:gosec // G115: at most maxDelay
		m.DelaySeconds = &seconds
	}
	id := ""
	for i := range times {
		if strings.HasSuffix(queue, ".fifo") {
			m.Deduplication = fmt.Sprintf("%d-%d", v.now.UnixNano(), i) // each is a message of its own
		}
		sent, err := v.api.Send(v.Context(), queue, m)
		if err != nil {
			return "", fmt.Errorf("%s sent, then: %w", counted(i, "message"), err)
		}
		id = sent.ID
	}
	if times == 1 {
		return fmt.Sprintf("Sent to %s as %s.", queue, id), nil
	}
	return fmt.Sprintf("%d messages sent to %s.", times, queue), nil
}

// purgeQueue deletes all messages of a queue, if whoever asks says that they are sure.
func purgeQueue(v *view) (string, error) {
	queue := v.PostFormValue("queue")
	if v.PostFormValue("sure") != "yes" {
		return "", errors.New("nothing was deleted: tick the box to confirm that the messages are to be deleted for good")
	}
	had, err := v.api.Purge(v.Context(), queue)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Purged %s: it had %s.", queue, had), nil
}

// addFault adds a fault to those of a queue.
func addFault(v *view) (string, error) {
	queue := v.PostFormValue("queue")
	f := sqsserver.Fault{Kind: sqsserver.FaultKind(v.PostFormValue("kind")), Action: v.PostFormValue("action")}
	var err error
	if text := v.PostFormValue("probability"); text != "" {
		if f.Probability, err = strconv.ParseFloat(text, 64); err != nil {
			return "", fmt.Errorf("the chance is %q: write a number from 0 to 1", text)
		}
	}
	if f.Limit, err = wholeNumber(v.PostFormValue("limit"), 0, 0, 1e9); err != nil {
		return "", fmt.Errorf("the number of strikes: %w", err)
	}
	if text := v.PostFormValue("delay"); text != "" {
		if f.Delay, err = time.ParseDuration(text); err != nil {
			return "", fmt.Errorf("the delay is %q: write a time such as 2s", text)
		}
	}
	present, err := v.faultsOf(queue)
	if err != nil {
		return "", err
	}
	if _, err := v.api.SetFaults(v.Context(), queue, append(present, f)); err != nil {
		return "", err
	}
	return fmt.Sprintf("The fault %s strikes %s from now on.", faultText(f), queueOrAll(queue)), nil
}

// removeFault removes the fault of a queue that has a text.
func removeFault(v *view) (string, error) {
	queue, text := v.PostFormValue("queue"), v.PostFormValue("fault")
	present, err := v.faultsOf(queue)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(present, func(f sqsserver.Fault) bool { return faultText(f) == text })
	if at < 0 {
		return "", fmt.Errorf("%s has no fault %q any more", queueOrAll(queue), text)
	}
	if _, err := v.api.SetFaults(v.Context(), queue, slices.Delete(present, at, at+1)); err != nil {
		return "", err
	}
	return fmt.Sprintf("The fault %s of %s is removed.", text, queueOrAll(queue)), nil
}

func (v *view) faultsOf(queue string) (faults []sqsserver.Fault, err error) {
	now, err := v.api.OwnServer(v.Context())
	for _, f := range now.Faults[queue] {
		faults = append(faults, f.Fault)
	}
	return faults, err
}

func queueOrAll(queue string) string {
	if queue == "*" {
		return "every queue"
	}
	return queue
}

// advanceTime moves the time of the server on.
func advanceTime(v *view) (string, error) {
	by := v.PostFormValue("by")
	now, err := v.api.Advance(v.Context(), by)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The server's time has moved on by %s, to %s.", by, now.Now.Format("2006-01-02 15:04:05 UTC")), nil
}

// wholeNumber reads a number of a form; otherwise is that of an empty text.
func wholeNumber(text string, otherwise, least, most int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is no whole number from %d to %d", text, least, most)
	}
	return n, nil
}
