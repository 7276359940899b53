package plan_test

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// A policy of days on a queue that permits five receives: messages go on in
// copies, and the wait of 15 hours is served in two parts.
func ExampleNewSchedule() {
	policy := retry.Policy{
		Backoff:     retry.Exponential{Base: time.Minute, Factor: 5, Max: 15 * time.Hour},
		Jitter:      retry.Equal,
		MaxAttempts: 8,
		MaxAge:      2 * 24 * time.Hour,
	}
	queue := plan.Queue{Retention: 4 * 24 * time.Hour, MaxReceives: 5}
	fmt.Print(plan.NewSchedule(policy, queue, plan.Settings{}))
	// Output:
	//   attempt  min wait  mean wait  max wait  earliest  expected  latest  by
	//         1                                       0s        0s      0s
	//         2       30s        45s        1m       30s       45s      1m  hide
	//         3     2m30s      3m45s        5m        3m     4m30s      6m  hide
	//         4    12m30s     18m45s       25m    15m30s    23m15s     31m  hide
	//         5      1h3m      1h34m      2h5m     1h18m     1h57m   2h36m  hide
	//         6     5h13m      7h49m    10h25m     6h31m     9h46m   13h1m  requeue
	//         7     7h30m     11h15m       15h     14h1m     21h1m   1d 4h  requeue, 2 copies
	//         8     7h30m     11h15m       15h    21h31m     1d 8h  1d 19h  requeue, 2 copies
	// with the shortest waits: 8 attempts, 9 receives, 1 copy, given up at the limit of attempts at 21h31m
	// with the expected waits: 8 attempts, 9 receives, 1 copy, given up at the limit of attempts at 1d 8h
	// with the longest waits: 8 attempts, 15 receives, 5 copies, given up at the limit of attempts at 1d 19h
}

func ExampleCheck() {
	policy := retry.Policy{MaxAttempts: 20}
	queue := plan.Queue{
		Retention:           24 * time.Hour,
		MaxReceives:         3,
		DeadLetterARN:       "arn:aws:sqs:us-east-1:123456789012:dead",
		DeadLetterRetention: 24 * time.Hour,
	}
	for _, finding := range plan.Check(policy, queue, plan.Settings{Via: plan.ViaVisibility}) {
		fmt.Println(finding)
	}
	// Output:
	// error (max-receives-below-attempts): the policy allows 20 attempts, but the queue gives a message up after 3 receives. Remedy: raise maxReceiveCount in the queue's RedrivePolicy above 20, lower attempts to 3, or permit copies.
	// warning (retention-ends-first): the policy retries for up to 2d 6h, but the queue deletes a message 1d after it was sent. Remedy: raise MessageRetentionPeriod (up to 14 days), or lower the policy's age.
	// warning (dead-letter-retention): the dead-letter queue keeps messages 1d from their first sending, the queue itself 1d: a message that SQS moves late has little time left. Remedy: set the dead-letter queue's MessageRetentionPeriod to 14 days.
}

func ExampleIAM() {
	queue := plan.Queue{
		ARN:           "arn:aws:sqs:us-east-1:123456789012:orders",
		DeadLetterARN: "arn:aws:sqs:us-east-1:123456789012:dead",
		KMSKey:        "1234abcd-12ab-34cd-56ef-1234567890ab",
	}
	features, err := plan.Features(queue, plan.Settings{Via: plan.ViaVisibility})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.IAM(features))
	// Output:
	// {
	//   "Version": "2012-10-17",
	//   "Statement": [
	//     {
	//       "Effect": "Allow",
	//       "Action": [
	//         "sqs:ChangeMessageVisibility",
	//         "sqs:DeleteMessage",
	//         "sqs:GetQueueAttributes",
	//         "sqs:ReceiveMessage"
	//       ],
	//       "Resource": "arn:aws:sqs:us-east-1:123456789012:orders"
	//     },
	//     {
	//       "Effect": "Allow",
	//       "Action": [
	//         "kms:Decrypt"
	//       ],
	//       "Resource": "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
	//       "Condition": {
	//         "StringEquals": {
	//           "kms:ViaService": "sqs.us-east-1.amazonaws.com"
	//         }
	//       }
	//     },
	//     {
	//       "Effect": "Allow",
	//       "Action": [
	//         "sqs:GetQueueAttributes",
	//         "sqs:SendMessage"
	//       ],
	//       "Resource": "arn:aws:sqs:us-east-1:123456789012:dead"
	//     }
	//   ]
	// }
}

func ExampleDenied() {
	queue := plan.Queue{ARN: "arn:aws:sqs:us-east-1:123456789012:orders"}
	features, err := plan.Features(queue, plan.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, finding := range plan.Denied(features, "sqs:SendMessage", queue.ARN) {
		fmt.Println(finding)
	}
	// Output:
	// warning (permission-denied): requeue is off, because sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:orders is denied: retries end with the queue's maxReceiveCount and retention. Remedy: permit sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:orders.
}
