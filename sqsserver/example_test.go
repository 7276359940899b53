package sqsserver_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A server is called directly by the process that has it, and over HTTP by the
// AWS SDKs and tools.
func Example() {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	listener := httptest.NewServer(server) // or http.ListenAndServe("127.0.0.1:9324", server)
	defer listener.Close()

	ctx := context.Background()
	queue, err := server.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := sqsserver.SendMessageEntry{MessageBody: "ship it"}
	if _, err := server.SendMessage(ctx, &sqsserver.SendMessageInput{QueueUrl: queue.QueueUrl, SendMessageEntry: message}); err != nil {
		fmt.Println(err)
		return
	}
	out, err := server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{QueueUrl: queue.QueueUrl, WaitTimeSeconds: sqsserver.Int(20)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Messages[0].Body)
	fmt.Println(server.Queues()[0].InFlight, "in flight")
	// Output:
	// ship it
	// 1 in flight
}

// Every third DeleteMessageBatch is carried out, and its reply is lost.
func ExampleServer_SetFaults() {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	err := server.SetFaults("orders", sqsserver.Fault{
		Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Every: 3,
	})
	fmt.Println(err)
	err = server.SetFaults("orders", sqsserver.Fault{Kind: "earthquake"})
	fmt.Println(err)
	// Output:
	// <nil>
	// sqsserver: fault kind "earthquake" is unknown; use one of ["drop-connection" "duplicate" "early-redelivery" "fail-entry" "lose-delete" "lose-lease" "lose-reply" "over-limit" "server-error" "slow-reply" "stale-handle" "throttle" "wrong-counts"]
}
