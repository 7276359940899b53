package dynamostore

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/reprise-sqs/reprise/idempotency"
)

// The attributes of an item. All but the last two are Powertools'.
const (
	attrID         = "id"
	attrStatus     = "status"
	attrExpiration = "expiration"             // Unix seconds: the record counts until this second is over
	attrLease      = "in_progress_expiration" // Unix milliseconds; none: until the expiration
	attrValidation = "validation"
	attrData       = "data"
	attrToken      = "reprise_token"
	attrResult     = "reprise_result"

	statusInProgress = "INPROGRESS"
	statusCompleted  = "COMPLETED"
)

// update is the expression of a change to an item, with its condition. Names begin with #, because
// some are reserved words.
type update struct {
	set, remove, condition string
	returns                types.ReturnValue // default: nothing
}

var (
	// acquiring has the effect of Powertools' PutItem, except for the token: the token grows by
	// one, or begins at the time in microseconds if there is none, so that it is larger than any
	// token of a removed item.
	acquiring = update{
		set:    "#status = :inprogress, #expiration = :expiration, #in_progress_expiration = :lease, #reprise_token = if_not_exists(#reprise_token, :micros) + :one",
		remove: "#data, #reprise_result",
		condition: "attribute_not_exists(#id) OR #expiration < :now OR " +
			"(#status = :inprogress AND attribute_exists(#in_progress_expiration) AND #in_progress_expiration < :millis)",
		returns: types.ReturnValueUpdatedNew,
	}
	completing = update{
		set:       "#status = :completed, #expiration = :expiration",
		condition: "#reprise_token = :token AND #status = :inprogress",
	}
	releasing = update{
		set:       "#in_progress_expiration = :ended",
		condition: "#reprise_token = :token AND #status = :inprogress",
	}
	// extending does not change the expiration, which is usually weeks ahead. If it is not,
	// prolonging follows.
	extending = update{
		set:       "#in_progress_expiration = :lease",
		condition: "#reprise_token = :token AND #status = :inprogress AND #expiration >= :expiration",
	}
	prolonging = update{
		set:       "#in_progress_expiration = :lease, #expiration = :expiration",
		condition: "#reprise_token = :token AND #status = :inprogress",
	}
)

// values are the values of an expression, by name.
type values map[string]types.AttributeValue

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

var attributeName = regexp.MustCompile(`#[a-z_]+`)

// update carries out u on the item of key, and returns the values that u requests. If its condition
// does not hold, it returns the current item, and false.
func (s *Store) update(ctx context.Context, key string, u update, v values) (item map[string]types.AttributeValue, ok bool, err error) {
	expression := "SET " + u.set
	if u.remove != "" {
		expression += " REMOVE " + u.remove
	}
	names := make(map[string]string)
	for _, name := range attributeName.FindAllString(expression+" "+u.condition, -1) {
		names[name] = name[1:]
	}
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &s.cfg.Table,
		Key:                                 map[string]types.AttributeValue{attrID: text(key)},
		UpdateExpression:                    &expression,
		ConditionExpression:                 &u.condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           v,
		ReturnValues:                        u.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused):
		return refused.Item, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("key %q: %w", key, err)
	}
	return out.Attributes, true, nil
}

func (s *Store) acquire(ctx context.Context, r idempotency.Request) (idempotency.Answer, error) {
	now := time.Now()
	lapse := now.Add(r.Lease)
	u, v := acquiring, values{
		":inprogress": text(statusInProgress),
		":expiration": number(now.Add(max(r.Lease, r.Retention)).Unix()),
		":lease":      number(unixMilli(lapse)),
		":micros":     number(now.UnixMicro()),
		":one":        number(1),
		":now":        number(now.Unix()),
		":millis":     number(now.UnixMilli()),
	}
	digest := s.digest(r.Digest)
	if digest == "" {
		u.remove += ", #validation"
	} else {
		u.set += ", #validation = :validation"
		v[":validation"] = text(digest)
	}
	item, ok, err := s.update(ctx, r.Key, u, v)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if ok {
		token, err := integer(item, attrToken)
		if err != nil {
			return idempotency.Answer{}, fmt.Errorf("key %q: %w", r.Key, err)
		}
		return idempotency.Answer{State: idempotency.Acquired, Token: idempotency.Token(token)}, nil
	}
	answer, err := found(item, digest, now)
	if err != nil {
		return idempotency.Answer{}, fmt.Errorf("key %q: %w", r.Key, err)
	}
	return answer, nil
}

// found returns the answer to a request with a digest for an item that is not free at now.
func found(item map[string]types.AttributeValue, digest string, now time.Time) (idempotency.Answer, error) {
	switch status := str(item, attrStatus); status {
	case statusInProgress:
		until, err := integer(item, attrLease)
		if item[attrLease] == nil { // a function that did not know its remaining time
			until, err = integer(item, attrExpiration)
			until = (until + 1) * 1000
		}
		if err != nil {
			return idempotency.Answer{}, err
		}
		return idempotency.Answer{State: idempotency.InProgress, Wait: max(0, time.UnixMilli(until).Sub(now))}, nil
	case statusCompleted:
		if kept := str(item, attrValidation); kept != "" && digest != "" && kept != digest {
			return idempotency.Answer{State: idempotency.Mismatched}, nil
		}
		result, err := result(item)
		return idempotency.Answer{State: idempotency.Completed, Result: result}, err
	default:
		return idempotency.Answer{}, fmt.Errorf("the item's status is %q, want %s or %s: use a table that has only idempotency records", status, statusInProgress, statusCompleted)
	}
}

func (s *Store) complete(ctx context.Context, c idempotency.Completion) (bool, error) {
	u, v := completing, values{
		":completed":  text(statusCompleted),
		":inprogress": text(statusInProgress),
		":expiration": number(time.Now().Add(c.Retention).Unix()),
		":token":      number(int64(c.Token)),
	}
	switch {
	case len(c.Result) == 0:
	case utf8.Valid(c.Result) && json.Valid(c.Result):
		u.set += ", #data = :data"
		v[":data"] = text(string(c.Result))
	default:
		u.set += ", #reprise_result = :result"
		v[":result"] = &types.AttributeValueMemberB{Value: c.Result}
	}
	item, ok, err := s.update(ctx, c.Key, u, v)
	return ok || err == nil && has(item, c.Claim, statusCompleted), err
}

func (s *Store) release(ctx context.Context, c idempotency.Claim) (bool, error) {
	_, ok, err := s.update(ctx, c.Key, releasing, values{
		":ended":      number(0),
		":inprogress": text(statusInProgress),
		":token":      number(int64(c.Token)),
	})
	return ok, err
}

func (s *Store) extend(ctx context.Context, e idempotency.Extension) (bool, error) {
	lapse := time.Now().Add(e.Lease)
	v := values{
		":lease":      number(unixMilli(lapse)),
		":expiration": number(lapse.Unix()),
		":inprogress": text(statusInProgress),
		":token":      number(int64(e.Token)),
	}
	item, ok, err := s.update(ctx, e.Key, extending, v)
	if !ok && err == nil && has(item, e.Claim, statusInProgress) {
		_, ok, err = s.update(ctx, e.Key, prolonging, v)
	}
	return ok, err
}

// has reports whether an item belongs to a claim, and has that status.
func has(item map[string]types.AttributeValue, c idempotency.Claim, status string) bool {
	token, err := integer(item, attrToken)
	return err == nil && token == int64(c.Token) && str(item, attrStatus) == status
}

// digest is the stored form of a digest.
func (s *Store) digest(d []byte) string {
	if s.cfg.Base64 {
		return base64.StdEncoding.EncodeToString(d)
	}
	return hex.EncodeToString(d)
}

// str is an attribute that is a string, or "".
func str(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// integer is an attribute that is an integer.
func integer(item map[string]types.AttributeValue, name string) (int64, error) {
	n, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("the item's attribute %s is not a number", name)
	}
	whole, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the item's attribute %s is %s, want an integer", name, n.Value)
	}
	return whole, nil
}
