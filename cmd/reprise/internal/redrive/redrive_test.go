package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// never does not stop a run.
var never = make(chan struct{})

// letterOf is a dead letter of the queue source.
func letterOf(source, body, group string) sqsserver.SendMessageEntry {
	m := sqsserver.SendMessageEntry{
		MessageBody: body, MessageGroupId: group,
		MessageAttributes: []sqsserver.MessageAttribute{
			{Name: reprise.StoryAttribute, DataType: "String", StringValue: fmt.Sprintf(`{"source":%q}`, source)},
			{Name: "tenant", DataType: "String", StringValue: "t"},
		},
	}
	if group != "" {
		m.MessageDeduplicationId = body[:min(len(body), 100)]
	}
	return m
}

func bodies(q *reprisetest.Queue) []string {
	var found []string
	for _, m := range q.Messages() {
		found = append(found, m.Body)
	}
	return found
}

func redriven(t *testing.T, dead *reprisetest.Queue, r redrive.Redrive, options ...func(*sqs.Options)) redrive.Report {
	t.Helper()
	r.Client, r.QueueURL = dead.Client(options...), dead.URL()
	report, err := r.Run(t.Context(), never)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// visible checks that others can receive what is in q.
func visible(t *testing.T, q *reprisetest.Queue) {
	t.Helper()
	for _, m := range q.Messages() {
		if !m.Due.IsZero() && m.Due.After(time.Now()) {
			t.Errorf("%q is hidden until %v", m.Body, m.Due)
		}
	}
}

// TestConsumersLetters: what a consumer has given up goes back whole and begins anew,
// whether it or SQS has moved it, and a second time as well.
func TestConsumersLetters(t *testing.T) {
	for _, kind := range []string{"standard", "fifo"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attributes, group := map[string]string{}, ""
				if kind == "fifo" {
					attributes["FifoQueue"], group = "true", "g"
				}
				source := reprisetest.NewQueue(t, attributes)
				dead := source.NewDeadLetterQueue(5)
				m := sqsserver.SendMessageEntry{MessageBody: "m", MessageGroupId: group, MessageAttributes: []sqsserver.MessageAttribute{{Name: "tenant", DataType: "String", StringValue: "t"}}}
				if group != "" {
					m.MessageDeduplicationId = "once"
				}
				source.SendMessage(m)
				for range 2 {
					c := source.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return retry.Permanent(fmt.Errorf("bad")) }), reprise.Config{})
					for len(dead.Messages()) == 0 {
						time.Sleep(time.Second)
					}
					c.Stop()
					report := redriven(t, dead, redrive.Redrive{})
					if diff := cmp.Diff(redrive.Report{Sent: map[string]int{source.URL(): 1}, Left: map[string]int{}}, report); diff != "" {
						t.Fatalf("report (-want +got):\n%s", diff)
					}
					back := source.Messages()
					if len(back) != 1 || back[0].Body != "m" || back[0].Receives != 0 || back[0].Group != group ||
						len(back[0].Attributes) != 1 || back[0].Attributes[0].Name != "tenant" || len(dead.Messages()) > 0 {
						t.Fatalf("the source holds %+v, the dead-letter queue %+v", back, dead.Messages())
					}
				}
			})
		})
	}
}

// TestMovedBySQS: a letter without a story goes back to where SQS has moved it from.
func TestMovedBySQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "0"})
		dead := source.NewDeadLetterQueue(1)
		source.Send("m")
		for range 2 {
			url := source.URL()
			if _, err := source.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}); err != nil {
				t.Fatal(err)
			}
		}
		if len(dead.Messages()) != 1 {
			t.Fatal("SQS has moved nothing")
		}
		report := redriven(t, dead, redrive.Redrive{})
		if report.Sent[source.URL()] != 1 || !slices.Equal(bodies(source), []string{"m"}) || len(dead.Messages()) > 0 {
			t.Errorf("report %+v; the source holds %q", report, bodies(source))
		}
	})
}

// TestLeft: what cannot go back stays, visible, and is counted by why.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"MaximumMessageSize": "1024"})
		dead := source.NewDeadLetterQueue(100)
		gone := strings.ReplaceAll(source.ARN(), source.Name(), "gone")
		far := strings.ReplaceAll(source.ARN(), "us-east-1", "eu-west-1")
		dead.Send("no story")
		for name, body := range map[string]string{gone: "gone", far: "far", dead.ARN(): "own", "arn:aws:s3:::x": "no queue", source.ARN(): strings.Repeat("x", 1025)} {
			dead.SendMessage(letterOf(name, body, ""))
		}
		dead.SendMessage(letterOf(source.URL(), "fine", ""))
		report := redriven(t, dead, redrive.Redrive{})
		if report.Sent[source.URL()] != 1 || !slices.Equal(bodies(source), []string{"fine"}) {
			t.Errorf("sent %v; the source holds %q", report.Sent, bodies(source))
		}
		why := strings.Join(slices.Sorted(maps.Keys(report.Left)), "\n")
		for _, want := range []string{
			"do not say which", `gone", which does not exist or does not have this queue`, `another account or region, from "` + far,
			dead.Name() + `", which does not exist or`, `"arn:aws:s3:::x", which is not a queue`, "shorter than 1024 bytes",
		} {
			if !strings.Contains(why, want) {
				t.Errorf("nothing was left because of %q:\n%s", want, why)
			}
		}
		if len(report.Left) != 6 || len(dead.Messages()) != 6 {
			t.Errorf("left %v, and the queue holds %q", report.Left, bodies(dead))
		}
		visible(t, dead)

		report = redriven(t, dead, redrive.Redrive{To: source.NewQueue(nil).URL()})
		if len(report.Left)+len(dead.Messages()) != 0 {
			t.Errorf("with a queue named for all, left %v", report.Left)
		}
	})
}

// TestFaults: whatever the trouble is, every letter is in one of the queues, in both
// only if that is said, and trouble that passes leaves none behind.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		onSend []sqsserver.Fault // of the source
		onDead []sqsserver.Fault
		sent   int
		left   string
	}{
		{"throttled for a while", []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch", Limit: 4}}, nil, 25, ""},
		{"entries fail", []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Every: 3}}, nil, 25, ""},
		{"throttled for good", []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch"}}, nil, 0, "were not "},
		{"deletes fail for a while", nil, []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 20}}, 25, ""},
		{"deletes fail for good", nil, []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch"}}, 25, "could not be deleted"},
		{"delivered twice", nil, []sqsserver.Fault{{Kind: sqsserver.FaultDuplicate, Every: 2}}, 25, ""},
		{"deletes are lost", nil, []sqsserver.Fault{{Kind: sqsserver.FaultEarlyRedelivery, Delay: time.Second}, {Kind: sqsserver.FaultLoseDelete, Limit: 7}}, 25, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := reprisetest.NewQueue(t, nil)
				dead := source.NewDeadLetterQueue(100)
				for i := range 25 {
					dead.SendMessage(letterOf(source.ARN(), fmt.Sprint(i), ""))
				}
				source.Fault(test.onSend...)
				dead.Fault(test.onDead...)
				report := redriven(t, dead, redrive.Redrive{})
				if report.Sent[source.URL()] != test.sent || len(bodies(source)) != test.sent {
					t.Errorf("sent %v, want %d; the source holds %q", report.Sent, test.sent, bodies(source))
				}
				left := 0
				for why, n := range report.Left {
					if left += n; test.left == "" || !strings.Contains(why, test.left) {
						t.Errorf("%d left: %s", n, why)
					}
				}
				if left != len(dead.Messages()) || (left == 25) != (test.left != "") {
					t.Errorf("%d left, and the queue holds %q", left, bodies(dead))
				}
			})
		})
	}
}

// TestGroupsKeepTheirOrder: behind a letter that is not taken those of its group stay,
// and other groups go.
func TestGroupsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "MaximumMessageSize": "1024"})
		dead := source.NewDeadLetterQueue(100)
		large := strings.Repeat("x", 1025)
		for _, m := range []struct{ group, body string }{{"a", "a1"}, {"b", "b1"}, {"a", large}, {"b", "b2"}, {"a", "a3"}, {"b", "b3"}} {
			dead.SendMessage(letterOf(source.ARN(), m.body, m.group))
		}
		report := redriven(t, dead, redrive.Redrive{})
		groups := make(map[string][]string)
		for _, m := range source.Messages() {
			groups[m.Group] = append(groups[m.Group], m.Body)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"a1"}, "b": {"b1", "b2", "b3"}}, groups); diff != "" {
			t.Errorf("the source (-want +got):\n%s", diff)
		}
		if got := bodies(dead); !slices.Equal(got, []string{large, "a3"}) || len(report.Left) != 2 {
			t.Errorf("left %v, the dead-letter queue holds %.20q", report.Left, got)
		}
		visible(t, dead)
	})
}

// TestEdit: letters are sent as they were edited. One that cannot be edited is left, with those of its group behind it.
func TestEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := source.NewDeadLetterQueue(100)
		for _, m := range []struct{ group, body string }{{"a", "a1"}, {"b", "b1"}, {"a", "unfit"}, {"b", "b2"}, {"a", "a3"}} {
			dead.SendMessage(letterOf(source.ARN(), m.body, m.group))
		}
		report := redriven(t, dead, redrive.Redrive{Edit: func(m *reprise.Outgoing, letter *types.Message) error {
			if m.Body != aws.ToString(letter.Body) {
				t.Errorf("%q is sent for %q", m.Body, aws.ToString(letter.Body))
			}
			if m.Body == "unfit" {
				return errors.New("it is unfit")
			}
			m.Body += " edited"
			return nil
		}})
		got := bodies(source)
		slices.Sort(got)
		if diff := cmp.Diff([]string{"a1 edited", "b1 edited", "b2 edited"}, got); diff != "" {
			t.Errorf("the source (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"unfit", "a3"}, bodies(dead)); diff != "" {
			t.Errorf("the dead-letter queue (-want +got):\n%s", diff)
		}
		want := map[string]int{redrive.Unfit + "it is unfit": 1, "are behind a letter of their group that was left": 1}
		if diff := cmp.Diff(want, report.Left); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
		visible(t, dead)
	})
}

// TestRepeatedSendIsOne: a FIFO queue takes once what is sent back again because the
// delete had failed.
func TestRepeatedSendIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := source.NewDeadLetterQueue(100)
		id := dead.SendMessage(letterOf(source.ARN(), "m", "g"))
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch"})
		redriven(t, dead, redrive.Redrive{})
		dead.Fault()
		dead.Release(id)
		redriven(t, dead, redrive.Redrive{})
		if len(source.Messages()) != 1 || len(dead.Messages()) != 0 {
			t.Errorf("the source holds %q, the dead-letter queue %q", bodies(source), bodies(dead))
		}
	})
}

// TestNotInCircles: what fails again while the run goes on is left for the next.
func TestNotInCircles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		dead.SendMessage(letterOf(source.ARN(), "m", ""))
		failAgain := func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
				return s.Initialize.Add(middleware.InitializeMiddlewareFunc("fail again", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					out, metadata, err := next.HandleInitialize(ctx, in)
					if _, sent := in.Parameters.(*sqs.SendMessageBatchInput); sent {
						time.Sleep(2 * time.Second)
						dead.SendMessage(letterOf(source.ARN(), "again", ""))
					}
					return out, metadata, err
				}), middleware.After)
			})
		}
		report := redriven(t, dead, redrive.Redrive{}, failAgain)
		if report.Sent[source.URL()] != 1 || len(report.Left) != 1 || !slices.Equal(bodies(dead), []string{"again"}) {
			t.Errorf("report %+v; left %q", report, bodies(dead))
		}
	})
}

// TestNotInCirclesAtOnce: nor is what a consumer gives up again within the second of the start.
func TestNotInCirclesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		for i := range 5 {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprint("m", i), ""))
		}
		refuses := source.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(errors.New("refused"))
		}), reprise.Config{})
		report := redriven(t, dead, redrive.Redrive{})
		refuses.Stop()
		left := 0
		for _, n := range report.Left {
			left += n
		}
		if report.Sent[source.URL()] != 5 || left != 5 || len(bodies(dead)) != 5 || len(bodies(source)) != 0 {
			t.Errorf("report %+v; the dead-letter queue has %q, the source %q", report, bodies(dead), bodies(source))
		}
	})
}

// TestNotInCirclesBySQS: nor is what SQS itself moves back, which keeps the time at which it was sent, within that second.
func TestNotInCirclesBySQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		moved := func(sent int) {
			for _, m := range source.Messages() {
				if sent > 5 {
					return // it has gone round
				}
				if err := source.Server().DeadLetter(source.ARN(), m.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		source.Send("m")
		moved(0)
		report := redriven(t, dead, redrive.Redrive{Progress: moved})
		if report.Sent[source.URL()] != 1 || len(report.Left) != 1 || !slices.Equal(bodies(dead), []string{"m"}) {
			t.Errorf("report %+v; left %q", report, bodies(dead))
		}
	})
}

// TestDryRunAndMax: a dry run leaves everything, and no more are sent than permitted.
func TestDryRunAndMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(100)
		for i := range 25 {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprint(i), ""))
		}
		if report := redriven(t, dead, redrive.Redrive{DryRun: true}); report.Sent[source.URL()] != 25 || len(report.Left) > 0 {
			t.Errorf("a dry run says %+v", report)
		}
		if len(source.Messages()) != 0 || len(dead.Messages()) != 25 {
			t.Errorf("a dry run leaves %d letters and sends %d", len(dead.Messages()), len(source.Messages()))
		}
		visible(t, dead)
		report := redriven(t, dead, redrive.Redrive{Max: 12})
		if report.Sent[source.URL()] != 12 || len(source.Messages()) != 12 || len(dead.Messages()) != 13 {
			t.Errorf("at most 12: %+v, %d in the source", report, len(source.Messages()))
		}
		visible(t, dead)

		stop := make(chan struct{})
		close(stop)
		r := redrive.Redrive{Client: dead.Client(), QueueURL: dead.URL()}
		if report, err := r.Run(t.Context(), stop); err != nil || !report.Stopped || len(dead.Messages()) != 13 {
			t.Errorf("stopped: %+v, %v", report, err)
		}
	})
}

// TestSelect: what is not selected stays, is visible at the end, and is in no count.
func TestSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(5)
		for i := range 25 {
			dead.SendMessage(letterOf(source.ARN(), fmt.Sprintf("%02d", i), ""))
		}
		time.Sleep(time.Minute)
		began, progress := time.Now(), 0
		r := redrive.Redrive{
			Client: dead.Client(), QueueURL: dead.URL(), Rate: 2,
			Select: func(m *types.Message, now time.Time) bool {
				if d := time.Since(now).Abs(); d > time.Second {
					t.Errorf("SQS's time is %v off", d)
				}
				return *m.Body >= "10"
			},
			Progress: func(sent int) { progress = sent },
		}
		report, err := r.Run(t.Context(), make(chan struct{})) // of this bubble, for it is waited on
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(redrive.Report{Sent: map[string]int{source.URL(): 15}, Left: map[string]int{}}, report); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took < 7*time.Second || progress != 15 {
			t.Errorf("15 letters at 2 a second took %v; progress %d", took, progress)
		}
		if left := bodies(dead); len(left) != 10 || slices.ContainsFunc(left, func(body string) bool { return body >= "10" }) {
			t.Errorf("left are %q", left)
		}
		visible(t, dead)
	})
}

// TestWhole: a message that is moved keeps its story, and not the history of a copy.
func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead, other := source.NewDeadLetterQueue(5), source.NewQueue(nil)
		m := letterOf(source.ARN(), "m", "")
		m.MessageAttributes = append(m.MessageAttributes, sqsserver.MessageAttribute{Name: reprise.HistoryAttribute, DataType: "String", StringValue: "{}"})
		dead.SendMessage(m)
		redriven(t, dead, redrive.Redrive{To: other.URL(), Whole: true})
		var names []string
		for _, a := range other.Messages()[0].Attributes {
			names = append(names, a.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{reprise.StoryAttribute, "tenant"}) {
			t.Errorf("the message has %q", names)
		}
	})
}

// TestWhatGoesAlong: a letter of a standard queue goes back with its fair-queue group, its trace header and what its
// sender wrote, so that consumers and traces see what they would have seen. What a retry handler has noted of its death
// is left out, except the function, which the handler is to invoke.
func TestWhatGoesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trace = "Root=1-5759e988-bd862e3fe1be46a994272793"
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(5)
		m := letterOf(source.ARN(), "m", "")
		m.MessageGroupId = "tenant-7"
		m.MessageSystemAttributes = []sqsserver.MessageAttribute{{Name: "AWSTraceHeader", DataType: "String", StringValue: trace}}
		for _, name := range []string{
			repriselambda.FunctionAttribute, repriselambda.ReasonAttribute, repriselambda.AttemptsAttribute, repriselambda.FirstAttribute,
			repriselambda.LastAttribute, repriselambda.ErrorTypeAttribute, repriselambda.ErrorMessageAttribute,
		} {
			m.MessageAttributes = append(m.MessageAttributes, sqsserver.MessageAttribute{Name: name, DataType: "String", StringValue: "x"})
		}
		dead.SendMessage(m)
		redriven(t, dead, redrive.Redrive{})
		url := source.URL()
		out, err := source.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("the source brings %+v, %v", out, err)
		}
		back := out.Messages[0]
		if names := slices.Sorted(maps.Keys(back.MessageAttributes)); !slices.Equal(names, []string{repriselambda.FunctionAttribute, "tenant"}) {
			t.Errorf("it has the attributes %q", names)
		}
		if group, got := back.Attributes["MessageGroupId"], back.Attributes["AWSTraceHeader"]; group != "tenant-7" || got != trace {
			t.Errorf("its group is %q, its trace header %q; want those of the letter", group, got)
		}
	})
}
