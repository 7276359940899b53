package plan

import (
	"fmt"
	"strings"
)

// arnParts is how many parts the ARN of a queue has: arn, partition, service,
// region, account, name.
const arnParts = 6

// resource is a queue and its key, as policies name them.
type resource struct {
	arn   string
	parts []string // of arn
	key   string   // as the queue's KmsMasterKeyId has it
}

// resources returns q and its dead-letter queue, nil if there is none.
func resources(q Queue, s Settings) (queue, dead *resource, err error) {
	if queue, err = newResource("Queue.ARN", q.ARN, q.KMSKey); err != nil {
		return nil, nil, err
	}
	switch {
	case s.DeadLetterURL != "":
		arn, err := queue.besides(s.DeadLetterURL)
		if err != nil {
			return nil, nil, err
		}
		dead, err = newResource("Settings.DeadLetterURL", arn, q.DeadLetterKMSKey)
		return queue, dead, err
	case q.DeadLetterARN != "":
		dead, err = newResource("Queue.DeadLetterARN", q.DeadLetterARN, q.DeadLetterKMSKey)
		return queue, dead, err
	}
	return queue, nil, nil
}

// newResource checks that arn, the value of field, names a queue.
func newResource(field, arn, key string) (*resource, error) {
	parts := strings.Split(arn, ":")
	if len(parts) != arnParts || parts[0] != "arn" || parts[1] == "" || parts[2] != "sqs" || parts[3] == "" || parts[4] == "" || parts[5] == "" {
		return nil, fmt.Errorf("plan: %s is %q, not the ARN of a queue: use the queue's QueueArn attribute, like arn:aws:sqs:us-east-1:123456789012:orders", field, arn)
	}
	return &resource{arn: arn, parts: parts, key: key}, nil
}

// besides returns the ARN of the queue with this URL, in r's region: the URL ends in its account
// and name.
func (r *resource) besides(url string) (string, error) {
	path := strings.Split(strings.TrimRight(url, "/"), "/")
	if len(path) < 5 {
		return "", fmt.Errorf("plan: Settings.DeadLetterURL is %q, which does not end in /account/name: pass the URL that GetQueueUrl returns", url)
	}
	account, name := path[len(path)-2], path[len(path)-1]
	return strings.Join([]string{"arn", r.parts[1], "sqs", r.parts[3], account, name}, ":"), nil
}

// permissions returns those for actions of SQS on the queue.
func (r *resource) permissions(actions ...string) []Permission {
	needs := make([]Permission, len(actions))
	for i, action := range actions {
		needs[i] = Permission{Action: "sqs:" + action, Resource: r.arn}
	}
	return needs
}

// decrypt returns the permissions on the queue's key that receiving needs, encrypt those that sending
// needs: SQS verifies a new data key by decrypting it. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html.
func (r *resource) decrypt() []Permission { return r.keyPermissions("kms:Decrypt") }

func (r *resource) encrypt() []Permission {
	return r.keyPermissions("kms:Decrypt", "kms:GenerateDataKey")
}

func (r *resource) keyPermissions(actions ...string) []Permission {
	if !managedByCustomer(r.key) {
		return nil
	}
	key, alias := r.keyARN()
	needs := make([]Permission, len(actions))
	for i, action := range actions {
		needs[i] = Permission{Action: action, Resource: key, Alias: alias}
	}
	return needs
}

// keyARN returns the key as a policy names it. If the queue names its key by an alias, this is any
// key of that account with the alias.
func (r *resource) keyARN() (arn, alias string) {
	partition, region, account, id := r.parts[1], r.parts[3], r.parts[4], r.key
	if parts := strings.SplitN(r.key, ":", arnParts); len(parts) == arnParts {
		partition, region, account, id = parts[1], parts[3], parts[4], parts[5]
	}
	if strings.HasPrefix(id, "alias/") {
		id, alias = "key/*", id
	}
	if !strings.HasPrefix(id, "key/") {
		id = "key/" + id
	}
	return strings.Join([]string{"arn", partition, "kms", region, account, id}, ":"), alias
}

// managedByCustomer reports whether a KmsMasterKeyId names a key of the
// customer's own. The key policy of the key that AWS manages permits everybody who may use SQS in
// the account.
func managedByCustomer(key string) bool {
	return key != "" && !strings.HasSuffix(key, "alias/aws/sqs")
}
