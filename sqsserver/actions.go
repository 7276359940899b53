package sqsserver

import "context"

// The names of the actions, as requests and faults give them.
const (
	actionAddPermission                = "AddPermission"
	actionCancelMessageMoveTask        = "CancelMessageMoveTask"
	actionChangeMessageVisibility      = "ChangeMessageVisibility"
	actionChangeMessageVisibilityBatch = "ChangeMessageVisibilityBatch"
	actionCreateQueue                  = "CreateQueue"
	actionDeleteMessage                = "DeleteMessage"
	actionDeleteMessageBatch           = "DeleteMessageBatch"
	actionDeleteQueue                  = "DeleteQueue"
	actionGetQueueAttributes           = "GetQueueAttributes"
	actionGetQueueUrl                  = "GetQueueUrl"
	actionListDeadLetterSourceQueues   = "ListDeadLetterSourceQueues"
	actionListMessageMoveTasks         = "ListMessageMoveTasks"
	actionListQueueTags                = "ListQueueTags"
	actionListQueues                   = "ListQueues"
	actionPurgeQueue                   = "PurgeQueue"
	actionReceiveMessage               = "ReceiveMessage"
	actionRemovePermission             = "RemovePermission"
	actionSendMessage                  = "SendMessage"
	actionSendMessageBatch             = "SendMessageBatch"
	actionSetQueueAttributes           = "SetQueueAttributes"
	actionStartMessageMoveTask         = "StartMessageMoveTask"
	actionTagQueue                     = "TagQueue"
	actionUntagQueue                   = "UntagQueue"
)

// actions has a handler for each action. To add an action:
//
//   - write its Input and Output types (model.go) and its method of Server, in the file of
//     its subject, which begins with Server.lookup and the action's name;
//   - add the name above and the line below.
//
// The compiler then asks for the wire forms: decodeJSON (decode.go) and decodeQuery
// (decode_query.go) of the input; appendJSON (encode.go), appendXML (encode_xml.go) and
// queryJSON (encode_queryjson.go) of the output. An action whose messages
// are counted in metrics has a case in observation.count (observe.go).
var actions = map[string]func(*call) error{
	actionAddPermission:                withoutOutput((*Server).AddPermission),
	actionCancelMessageMoveTask:        withOutput((*Server).CancelMessageMoveTask),
	actionChangeMessageVisibility:      withoutOutput((*Server).ChangeMessageVisibility),
	actionChangeMessageVisibilityBatch: withOutput((*Server).ChangeMessageVisibilityBatch),
	actionCreateQueue:                  withOutput((*Server).CreateQueue),
	actionDeleteMessage:                withoutOutput((*Server).DeleteMessage),
	actionDeleteMessageBatch:           withOutput((*Server).DeleteMessageBatch),
	actionDeleteQueue:                  withoutOutput((*Server).DeleteQueue),
	actionGetQueueAttributes:           withOutput((*Server).GetQueueAttributes),
	actionGetQueueUrl:                  withOutput((*Server).GetQueueUrl),
	actionListDeadLetterSourceQueues:   withOutput((*Server).ListDeadLetterSourceQueues),
	actionListMessageMoveTasks:         withOutput((*Server).ListMessageMoveTasks),
	actionListQueueTags:                withOutput((*Server).ListQueueTags),
	actionListQueues:                   withOutput((*Server).ListQueues),
	actionPurgeQueue:                   withoutOutput((*Server).PurgeQueue),
	actionReceiveMessage:               (*call).receive,
	actionRemovePermission:             withoutOutput((*Server).RemovePermission),
	actionSendMessage:                  withOutput((*Server).SendMessage),
	actionSendMessageBatch:             withOutput((*Server).SendMessageBatch),
	actionSetQueueAttributes:           withoutOutput((*Server).SetQueueAttributes),
	actionStartMessageMoveTask:         withOutput((*Server).StartMessageMoveTask),
	actionTagQueue:                     withoutOutput((*Server).TagQueue),
	actionUntagQueue:                   withoutOutput((*Server).UntagQueue),
}

// onlyReads has the actions that change nothing.
var onlyReads = map[string]bool{
	actionGetQueueAttributes:         true,
	actionGetQueueUrl:                true,
	actionListDeadLetterSourceQueues: true,
	actionListMessageMoveTasks:       true,
	actionListQueueTags:              true,
	actionListQueues:                 true,
}

// input and output are those of an action, in either protocol.
type input interface {
	jsonInput
	queryInput
}

type output interface {
	jsonOutput
	xmlOutput
	queryJSONOutput
}

// withOutput makes the handler of an action that answers something.
func withOutput[Out output, In any, InPointer interface {
	*In
	input
}](do func(*Server, context.Context, InPointer) (Out, error)) func(*call) error {
	return func(c *call) error {
		in := InPointer(new(In))
		if err := c.decode(in); err != nil {
			return err
		}
		out, err := do(c.server, c, in)
		if err != nil {
			return err
		}
		c.encode(out)
		return nil
	}
}

// withoutOutput makes the handler of an action that answers nothing.
func withoutOutput[In any, InPointer interface {
	*In
	input
}](do func(*Server, context.Context, InPointer) error) func(*call) error {
	return func(c *call) error {
		in := InPointer(new(In))
		if err := c.decode(in); err != nil {
			return err
		}
		if err := do(c.server, c, in); err != nil {
			return err
		}
		c.encode(nil)
		return nil
	}
}
