package receiving

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestDeniedPermissionsAreFound: the first denied call is reported once, with the feature that is
// off and the resource that lacks the permission.
func TestDeniedPermissionsAreFound(t *testing.T) {
	const accessDenied, keyDenied = "AccessDenied", "KmsAccessDenied"
	for _, tt := range []struct {
		feature, code string
		deny          func(s *kit.Spy, q, dead *reprisetest.Queue, err error)
		says          func(q, dead *reprisetest.Queue) string
	}{
		{"receive", accessDenied, func(s *kit.Spy, _, _ *reprisetest.Queue, err error) {
			s.Receive = func(context.Context, *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) { return nil, err }
		}, func(q, _ *reprisetest.Queue) string { return "sqs:ReceiveMessage on " + q.ARN() }},
		{"delete", accessDenied, func(s *kit.Spy, _, _ *reprisetest.Queue, err error) {
			s.Delete = func(context.Context, *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
				return nil, err
			}
		}, func(q, _ *reprisetest.Queue) string { return "sqs:DeleteMessage on " + q.ARN() }},
		{"retry", accessDenied, func(s *kit.Spy, _, _ *reprisetest.Queue, err error) {
			s.Hide = func(context.Context, *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
				return nil, err
			}
		}, func(q, _ *reprisetest.Queue) string { return "sqs:ChangeMessageVisibility on " + q.ARN() }},
		{"dead-letter", accessDenied, func(s *kit.Spy, _, _ *reprisetest.Queue, err error) {
			s.Send = func(context.Context, *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
				return nil, err
			}
		}, func(_, dead *reprisetest.Queue) string { return "sqs:SendMessage on " + dead.ARN() }},
		{"dead-letter-attributes", accessDenied, func(s *kit.Spy, _, dead *reprisetest.Queue, err error) {
			s.Attributes = func(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
				if *in.QueueUrl == dead.URL() {
					return nil, err
				}
				return s.Client.GetQueueAttributes(ctx, in)
			}
		}, func(_, dead *reprisetest.Queue) string { return "sqs:GetQueueAttributes on " + dead.ARN() }},
		{"receive", keyDenied, func(s *kit.Spy, _, _ *reprisetest.Queue, err error) {
			s.Receive = func(context.Context, *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) { return nil, err }
		}, func(*reprisetest.Queue, *reprisetest.Queue) string { return "kms:Decrypt on arn:aws:kms:" }},
	} {
		t.Run(tt.feature+" "+tt.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"KmsMasterKeyId": "alias/orders"})
				dead := q.NewDeadLetterQueue(5)
				watch := &kit.Spy{Client: q.Direct()}
				tt.deny(watch, q, dead, &smithy.GenericAPIError{Code: tt.code, Message: "not for you"})
				var found []plan.Finding
				q.ConsumeWith(watch, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					switch m.Body {
					case "bad":
						return reprise.Permanent(kit.ErrUnavailable)
					case "late":
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) {
					if f.Code == plan.CodePermission {
						found = append(found, f)
					}
				}}})
				q.Send("good", "bad", "late")
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if len(found) != 1 {
					t.Fatalf("findings %+v, want one", found)
				}
				f, want := found[0], tt.feature+" is off, because "+tt.says(q, dead)
				if !strings.HasPrefix(f.Problem, want) || !strings.HasSuffix(f.Problem, "not for you") || f.Remedy == "" {
					t.Errorf("the finding is %+v, want one that says %q", f, want)
				}
			})
		})
	}
}

// TestDeniedWithoutAnARN: without the queue's ARN, the report has SQS's own text.
func TestDeniedWithoutAnARN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		err := &smithy.GenericAPIError{Code: "AccessDenied", Message: "not authorized to perform: sqs:deletemessage"}
		watch.Attributes = func(context.Context, *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return nil, err
		}
		watch.Delete = func(context.Context, *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			return nil, err
		}
		var found []string
		q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) {
			if f.Code == plan.CodePermission {
				found = append(found, f.Problem)
			}
		}}})
		q.Send("good")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(found) != 1 || !strings.HasPrefix(found[0], "delete is off") || !strings.Contains(found[0], "sqs:deletemessage") {
			t.Errorf("found %q, want that deletes are denied, once", found)
		}
	})
}
