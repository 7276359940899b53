package sqsserver_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Behind a sync that blocks no acknowledgement may escape of what must survive,
// and what need not survive goes on.
func TestNothingIsAcknowledgedBeforeItIsSynced(t *testing.T) {
	ctx := context.Background()
	handleOf := func(k *journalServer) string { return k.receive("q", 1, 60)[0].ReceiptHandle }
	messageID := func(k *journalServer) string {
		messages, err := k.Messages("q", sqsserver.Page{Limit: 1})
		if err != nil || len(messages) != 1 {
			t.Errorf("messages: %v, %v", messages, err)
		}
		return messages[0].ID
	}
	for _, test := range []struct {
		name  string
		waits bool
		do    func(k *journalServer) func() error
	}{
		{"SendMessage", true, func(k *journalServer) func() error {
			return func() error { return k.trySend("q", "x") }
		}},
		{"SendMessageBatch", true, func(k *journalServer) func() error {
			in := &sqsserver.SendMessageBatchInput{QueueUrl: k.url("q"), Entries: make([]sqsserver.SendMessageBatchRequestEntry, 1)}
			in.Entries[0].Id, in.Entries[0].MessageBody = "1", "x"
			return func() error { _, err := k.SendMessageBatch(ctx, in); return err }
		}},
		{"SendMessage of a duplicate under way", true, func(k *journalServer) func() error {
			go k.trySend("f.fifo", "same")
			synctest.Wait()
			return func() error { return k.trySend("f.fifo", "same") }
		}},
		{"DeleteMessage", true, func(k *journalServer) func() error {
			handle := handleOf(k)
			return func() error { return k.deleteMessage("q", handle) }
		}},
		{"DeleteMessage of what is being deleted", true, func(k *journalServer) func() error {
			handle := handleOf(k)
			go k.deleteMessage("q", handle)
			synctest.Wait()
			return func() error { return k.deleteMessage("q", handle) }
		}},
		{"DeleteMessageBatch", true, func(k *journalServer) func() error {
			in := &sqsserver.DeleteMessageBatchInput{QueueUrl: k.url("q"), Entries: []sqsserver.DeleteMessageBatchRequestEntry{{Id: "1", ReceiptHandle: handleOf(k)}}}
			return func() error { _, err := k.DeleteMessageBatch(ctx, in); return err }
		}},
		{"CreateQueue", true, func(k *journalServer) func() error {
			return func() error {
				_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "new"})
				return err
			}
		}},
		{"CreateQueue of one that is being created", true, func(k *journalServer) func() error {
			create := func() error {
				_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "new"})
				return err
			}
			go create()
			synctest.Wait()
			return create
		}},
		{"SetQueueAttributes", true, func(k *journalServer) func() error {
			return func() error {
				return k.SetQueueAttributes(ctx, &sqsserver.SetQueueAttributesInput{QueueUrl: k.url("q"), Attributes: map[string]string{"DelaySeconds": "1"}})
			}
		}},
		{"PurgeQueue", true, func(k *journalServer) func() error {
			return func() error { return k.PurgeQueue(ctx, &sqsserver.PurgeQueueInput{QueueUrl: k.url("q")}) }
		}},
		{"DeleteQueue", true, func(k *journalServer) func() error {
			return func() error { return k.DeleteQueue(ctx, &sqsserver.DeleteQueueInput{QueueUrl: k.url("q")}) }
		}},
		{"TagQueue", true, func(k *journalServer) func() error {
			return func() error {
				return k.TagQueue(ctx, &sqsserver.TagQueueInput{QueueUrl: k.url("q"), Tags: map[string]string{"a": "b"}})
			}
		}},
		{"UntagQueue", true, func(k *journalServer) func() error {
			return func() error {
				return k.UntagQueue(ctx, &sqsserver.UntagQueueInput{QueueUrl: k.url("q"), TagKeys: []string{"old"}})
			}
		}},
		{"AddPermission", true, func(k *journalServer) func() error {
			return func() error { return k.addPermission() }
		}},
		{"RemovePermission", true, func(k *journalServer) func() error {
			k.inBackground(k.addPermission)
			return func() error {
				return k.RemovePermission(ctx, &sqsserver.RemovePermissionInput{QueueUrl: k.url("q"), Label: "label"})
			}
		}},
		{"StartMessageMoveTask", true, func(k *journalServer) func() error { return k.startMove }},
		{"CancelMessageMoveTask", true, func(k *journalServer) func() error {
			k.inBackground(k.startMove)
			return func() error {
				tasks, err := k.ListMessageMoveTasks(ctx, &sqsserver.ListMessageMoveTasksInput{SourceArn: k.arn("dead")})
				if err != nil {
					return err
				}
				_, err = k.CancelMessageMoveTask(ctx, &sqsserver.CancelMessageMoveTaskInput{TaskHandle: tasks.Results[0].TaskHandle})
				return err
			}
		}},
		{"an operator's Delete", true, func(k *journalServer) func() error {
			return func() error { return k.Delete("q", messageID(k)) }
		}},
		{"an operator's DeadLetter", true, func(k *journalServer) func() error {
			return func() error { return k.DeadLetter("q", messageID(k)) }
		}},

		{"ReceiveMessage", false, func(k *journalServer) func() error {
			return func() error {
				if got := bodies(k.receive("q", 10, 60)); got != "a b" {
					return fmt.Errorf("received %q, want a and b", got)
				}
				return nil
			}
		}},
		{"ReceiveMessage of what is being sent", false, func(k *journalServer) func() error {
			go k.trySend("dead", "x")
			synctest.Wait()
			return func() error {
				if got := bodies(k.receive("dead", 10, 60)); got != "x" {
					return fmt.Errorf("received %q, want x", got)
				}
				return nil
			}
		}},
		{"ChangeMessageVisibility", false, func(k *journalServer) func() error {
			handle := handleOf(k)
			return func() error { return k.changeVisibility("q", handle, 0) }
		}},
		{"GetQueueAttributes", false, func(k *journalServer) func() error {
			return func() error {
				_, err := k.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: k.url("q"), AttributeNames: []string{"All"}})
				return err
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
				k.create("dead", nil)
				k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":5}`})
				k.create("f.fifo", map[string]string{"FifoQueue": "true"})
				if err := k.TagQueue(ctx, &sqsserver.TagQueueInput{QueueUrl: k.url("q"), Tags: map[string]string{"old": "x"}}); err != nil {
					t.Fatal(err)
				}
				k.send("q", "a")
				k.send("q", "b")
				release := k.journal.block()

				do := test.do(k)
				result := make(chan error, 1)
				go func() { result <- do() }()
				time.Sleep(time.Hour) // virtual time: enough for everything that can happen
				synctest.Wait()
				select {
				case err := <-result:
					if test.waits {
						t.Errorf("acknowledged (%v) before the sync", err)
					} else if err != nil {
						t.Error(err)
					}
					release()
				default:
					if !test.waits {
						t.Error("waits for the sync")
					}
					release()
					if err := <-result; err != nil {
						t.Errorf("after the sync: %v", err)
					}
				}
			})
		})
	}
}

func (k *journalServer) addPermission() error {
	return k.AddPermission(context.Background(), &sqsserver.AddPermissionInput{
		QueueUrl: k.url("q"), Label: "label", AWSAccountIds: []string{"123456789012"}, Actions: []string{"SendMessage"}})
}

func (k *journalServer) startMove() error {
	_, err := k.StartMessageMoveTask(context.Background(), &sqsserver.StartMessageMoveTaskInput{
		SourceArn: k.arn("dead"), DestinationArn: k.arn("q"), MaxNumberOfMessagesPerSecond: sqsserver.Int(1)})
	return err
}

// inBackground begins what a blocked journal holds up.
func (k *journalServer) inBackground(do func() error) {
	go do()
	synctest.Wait()
}
