package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// lettersOf returns a dead-letter queue with n letters of its source.
func lettersOf(t *testing.T, n int) (source, dead *reprisetest.Queue) {
	source = reprisetest.NewQueue(t, nil)
	dead = source.NewDeadLetterQueue(100)
	for i := range n {
		dead.SendMessage(letterOf(source.ARN(), fmt.Sprint(i), ""))
	}
	return source, dead
}

// once checks that each of n letters is in exactly one of the queues.
func once(t *testing.T, n int, queues ...*reprisetest.Queue) {
	t.Helper()
	count := make(map[string]int)
	for _, q := range queues {
		for _, body := range bodies(q) {
			count[body]++
		}
	}
	for i := range n {
		if c := count[fmt.Sprint(i)]; c != 1 {
			t.Errorf("letter %d is there %d times", i, c)
		}
	}
}

// TestBatchesAtOnce: requests that take long do not add up.
func TestBatchesAtOnce(t *testing.T) {
	for atOnce, most := range map[int]time.Duration{1: 90 * time.Second, 0: 13 * time.Second} { // the last second is of the count of messages in flight
		synctest.Test(t, func(t *testing.T) {
			source, dead := lettersOf(t, 320)
			slow := sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: time.Second}
			dead.Fault(slow)
			began := time.Now()
			report := redriven(t, dead, redrive.Redrive{AtOnce: atOnce})
			if took := time.Since(began); took > most || atOnce == 1 && took < most/2 {
				t.Errorf("%d at once took %v", atOnce, took)
			}
			if report.Sent[source.URL()] != 320 || len(dead.Messages()) != 0 {
				t.Errorf("sent %v, and the queue holds %q", report.Sent, bodies(dead))
			}
			once(t, 320, source)
		})
	}
}

// TestMaxIsExact: however many batches are under way, as many letters go as were asked for, and all
// others stay, visible.
func TestMaxIsExact(t *testing.T) {
	for _, most := range []int{1, 9, 10, 37, 155, 200, 1000} {
		synctest.Test(t, func(t *testing.T) {
			const all = 200
			source, dead := lettersOf(t, all)
			dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 100 * time.Millisecond, Every: 3})
			selected := 0
			report := redriven(t, dead, redrive.Redrive{Max: most})
			selected = min(most, all)
			if report.Sent[source.URL()] != selected || len(source.Messages()) != selected || len(dead.Messages()) != all-selected {
				t.Errorf("limit %d: sent %v, the source holds %d and the queue %d", most, report.Sent, len(source.Messages()), len(dead.Messages()))
			}
			once(t, all, source, dead)
			visible(t, dead)
		})
	}
}

// TestRefusalsInARow: a queue gets no more letters when it has not accepted ten in a row. Some that it never accepts, among
// many that it does, keep it open.
func TestRefusalsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		for i := range 80 {
			body := fmt.Sprint("good ", i)
			if i%5 == 0 {
				body = fmt.Sprint("bad ", i)
			}
			dead.SendMessage(letterOf(source.ARN(), body, ""))
		}
		report := redriven(t, dead, redrive.Redrive{AtOnce: 1}, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
				return s.Initialize.Add(middleware.InitializeMiddlewareFunc("fail some", failBad), middleware.After)
			})
		})
		left := 0
		for why, n := range report.Left {
			if left += n; strings.Contains(why, "were not tried") {
				t.Errorf("%d letters %s", n, why)
			}
		}
		if report.Sent[source.URL()] != 64 || left != 16 {
			t.Errorf("%+v; want 64 letters sent, and 16 left", report)
		}
	})
}

// failBad fails the entries of batches whose bodies begin with bad, and sends the others.
func failBad(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	batch, sends := in.Parameters.(*sqs.SendMessageBatchInput)
	if !sends {
		return next.HandleInitialize(ctx, in)
	}
	good, out := *batch, &sqs.SendMessageBatchOutput{}
	good.Entries = nil
	for _, entry := range batch.Entries {
		if strings.HasPrefix(*entry.MessageBody, "bad") {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("InternalError")})
		} else {
			good.Entries = append(good.Entries, entry)
		}
	}
	if len(good.Entries) == 0 {
		return middleware.InitializeOutput{Result: out}, middleware.Metadata{}, nil
	}
	in.Parameters = &good
	reply, metadata, err := next.HandleInitialize(ctx, in)
	if sent, ok := reply.Result.(*sqs.SendMessageBatchOutput); ok && err == nil {
		sent.Failed = append(sent.Failed, out.Failed...)
	}
	return reply, metadata, err
}

// TestRateHolds: at no time more letters have been sent than the rate has permitted since the start, and
// the rate is used.
func TestRateHolds(t *testing.T) {
	for _, rate := range []float64{0.05, 2, 50, 400} {
		synctest.Test(t, func(t *testing.T) {
			n := min(300, max(30, int(rate*5)))
			source, dead := lettersOf(t, n)
			began := time.Now()
			stop := make(chan struct{}) // of the bubble
			if _, err := (redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL(), Rate: rate}).Run(t.Context(), stop); err != nil {
				t.Fatal(err)
			}
			messages := source.Messages()
			slices.SortFunc(messages, func(a, b sqsserver.MessageInfo) int { return a.Sent.Compare(b.Sent) })
			if len(messages) != n {
				t.Fatalf("%d of %d were sent", len(messages), n)
			}
			for i, m := range messages {
				if permitted := m.Sent.Sub(began).Seconds() * rate; float64(i+1) > permitted+rate/500 {
					t.Fatalf("rate %g: %d letters were sent after %v", rate, i+1, m.Sent.Sub(began))
				}
			}
			if took := messages[n-1].Sent.Sub(began).Seconds(); took > float64(n)/rate+2 {
				t.Errorf("rate %g: %d letters took %g s", rate, n, took)
			}
			if len(dead.Messages()) != 0 {
				t.Errorf("rate %g: the queue holds %q", rate, bodies(dead))
			}
		})
	}
}

// TestRateOfNextToNothing: the smallest rates permit no letter within the years that a program runs.
func TestRateOfNextToNothing(t *testing.T) {
	for _, rate := range []float64{1e-8, 1e-10, 1e-200, math.SmallestNonzeroFloat64} {
		synctest.Test(t, func(t *testing.T) {
			source, dead := lettersOf(t, 3)
			r := redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL(), Rate: rate}
			for way, run := range map[string]func(stop <-chan struct{}) (redrive.Report, error){
				"by requests": func(stop <-chan struct{}) (redrive.Report, error) { return r.Run(t.Context(), stop) },
				"inside": func(stop <-chan struct{}) (redrive.Report, error) {
					return r.RunInside(t.Context(), stop, dead.Server())
				},
			} {
				stop := make(chan struct{})
				time.AfterFunc(24*time.Hour, func() { close(stop) })
				if report, err := run(stop); err != nil || len(report.Sent) != 0 || len(source.Messages()) != 0 {
					t.Errorf("rate %g, %s: %+v, %v: want no letter sent in a day", rate, way, report, err)
				}
			}
			once(t, 3, source, dead)
		})
	}
}

// TestKilledAndRunAgain: a killed run loses nothing. A later one, when the leases have ended, sends the
// rest; twice are only letters whose delete was under way.
func TestKilledAndRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 500
		source, dead := lettersOf(t, all)
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 100 * time.Millisecond})
		ctx, kill := context.WithCancelCause(t.Context())
		time.AfterFunc(450*time.Millisecond, func() { kill(errors.New("killed")) })
		_, err := redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL()}.Run(ctx, never)
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the run ended with %v", err)
		}
		sent := len(source.Messages())
		if sent == 0 || sent == all {
			t.Fatalf("%d were sent before the end: the test shows nothing", sent)
		}
		held := make(map[string]bool)
		for _, body := range bodies(dead) {
			held[body] = true
		}
		twice := 0
		for _, body := range bodies(source) {
			if held[body] {
				twice++
			}
		}
		if twice > 160 {
			t.Errorf("%d letters were sent and not deleted, more than were under way", twice)
		}
		dead.Fault()
		time.Sleep(16 * time.Minute)
		redriven(t, dead, redrive.Redrive{})
		got := bodies(source)
		if len(got) != all+twice || len(dead.Messages()) != 0 {
			t.Errorf("%d letters arrived of %d, of which %d may be there twice; the queue holds %d", len(got), all, twice, len(dead.Messages()))
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != all {
			t.Errorf("%d different letters arrived of %d", len(slices.Compact(got)), all)
		}
	})
}

// TestStopAtOnce: a stop ends what is under way, gives back what waits for its turn, and says so.
func TestStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, dead := lettersOf(t, 300)
		stop := make(chan struct{})
		time.AfterFunc(5*time.Second, func() { close(stop) })
		report, err := redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL(), Rate: 20}.Run(t.Context(), stop)
		if n := len(source.Messages()); err != nil || !report.Stopped || n < 80 || n > 120 || report.Sent[source.URL()] != n {
			t.Errorf("%+v, %v; the source holds %d", report, err, n)
		}
		once(t, 300, source, dead)
		visible(t, dead)
	})
}

// TestOrderOfGroupsInBatches: a FIFO queue's letters go one batch at a time, each group in its order.
func TestOrderOfGroupsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := source.NewDeadLetterQueue(100)
		for i := range 120 {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprintf("%03d", i), fmt.Sprint("g", i%3)))
		}
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 100 * time.Millisecond, Every: 2})
		redriven(t, dead, redrive.Redrive{AtOnce: 16})
		last := make(map[string]string)
		for _, m := range source.Messages() {
			if m.Body <= last[m.Group] {
				t.Errorf("%s came after %s in %s", m.Body, last[m.Group], m.Group)
			}
			last[m.Group] = m.Body
		}
		if n := len(source.Messages()); n != 120 {
			t.Errorf("%d of 120 letters arrived", n)
		}
	})
}

// TestPastTheQuota: a run that has to hold more letters that are not selected than a queue may have in flight says that
// it has not seen all.
func TestPastTheQuota(t *testing.T) {
	if race.Enabled {
		t.Skip("100,000 receives take long with the race detector, which has seen them in other tests")
	}
	synctest.Test(t, func(t *testing.T) {
		const all = 100_400
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		for i := range all {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprint(i), ""))
		}
		last := fmt.Sprint(all - 1)
		report := redriven(t, dead, redrive.Redrive{Select: func(m *types.Message, _ time.Time) bool { return *m.Body == last }})
		if !strings.Contains(report.Partial, "use up the queue's quota") || report.Stopped || len(report.Left)+len(report.Sent) > 0 {
			t.Errorf("%+v", report)
		}
		visible(t, dead)
	})
}

// TestReleasesAreRetried: a request or a letter that SQS fails to give back once is given back.
func TestReleasesAreRetried(t *testing.T) {
	for _, fault := range []sqsserver.Fault{
		{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch", Limit: 5},
		{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Skip: 3, Every: 7},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, dead := lettersOf(t, 300)
			dead.Fault(fault)
			redriven(t, dead, redrive.Redrive{DryRun: true}, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
			visible(t, dead)
		})
	}
}
