package demo

import (
	"math/rand/v2"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/examples"
)

// eventAttribute is the message attribute that numbers the messages. It reaches
// the service as a header and the dead-letter queue with the message, so that all
// three can be compared.
const eventAttribute = "event"

// event is one message of the demo, from 0.
type event int

// eventOf returns the number of a message; false for one that is not the demo's.
func eventOf(m *reprise.Message) (event, bool) {
	value := m.Attributes[eventAttribute].StringValue
	if value == nil {
		return 0, false
	}
	return parseEvent(*value)
}

func parseEvent(text string) (event, bool) {
	n, err := strconv.Atoi(text)
	return event(n), err == nil
}

// shuffled returns n bodies: the examples in an order that the seed sets, again and again.
func shuffled(n int, seed uint64) []string {
	all := examples.Webhooks()
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = all[order[i%len(all)]]
	}
	return bodies
}

// messages numbers the bodies.
func messages(bodies []string) []reprise.Outgoing {
	all := make([]reprise.Outgoing, len(bodies))
	for i, body := range bodies {
		number := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(strconv.Itoa(i))}
		all[i] = reprise.Outgoing{Body: body, Attributes: map[string]types.MessageAttributeValue{eventAttribute: number}}
	}
	return all
}
