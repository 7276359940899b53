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
	actionAddPermission:                silent((*Server).AddPermission),
	actionCancelMessageMoveTask:        answering((*Server).CancelMessageMoveTask),
	actionChangeMessageVisibility:      silent((*Server).ChangeMessageVisibility),
	actionChangeMessageVisibilityBatch: answering((*Server).ChangeMessageVisibilityBatch),
	actionCreateQueue:                  answering((*Server).CreateQueue),
	actionDeleteMessage:                silent((*Server).DeleteMessage),
	actionDeleteMessageBatch:           answering((*Server).DeleteMessageBatch),
	actionDeleteQueue:                  silent((*Server).DeleteQueue),
	actionGetQueueAttributes:           answering((*Server).GetQueueAttributes),
	actionGetQueueUrl:                  answering((*Server).GetQueueUrl),
	actionListDeadLetterSourceQueues:   answering((*Server).ListDeadLetterSourceQueues),
	actionListMessageMoveTasks:         answering((*Server).ListMessageMoveTasks),
	actionListQueueTags:                answering((*Server).ListQueueTags),
	actionListQueues:                   answering((*Server).ListQueues),
	actionPurgeQueue:                   silent((*Server).PurgeQueue),
	actionReceiveMessage:               (*call).receive,
	actionRemovePermission:             silent((*Server).RemovePermission),
	actionSendMessage:                  answering((*Server).SendMessage),
	actionSendMessageBatch:             answering((*Server).SendMessageBatch),
	actionSetQueueAttributes:           silent((*Server).SetQueueAttributes),
	actionStartMessageMoveTask:         answering((*Server).StartMessageMoveTask),
	actionTagQueue:                     silent((*Server).TagQueue),
	actionUntagQueue:                   silent((*Server).UntagQueue),
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

// answering makes the handler of an action that answers something.
func answering[Out output, In any, InPointer interface {
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

// silent makes the handler of an action that answers nothing.
func silent[In any, InPointer interface {
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
