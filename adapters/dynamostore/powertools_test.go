package dynamostore_test

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/idempotency"
)

// awkward has characters that JSON writers escape differently.
const awkward = "ö \"\\\b\f\n\r\t\x01\x7f\u2028<&>🚀"

// byID is the message's own id.
func byID(m *reprise.Message) (string, error) { return m.ID, nil }

// TestKeysArePowertools: the keys are those that Powertools 3.37.0 for Python and 2.35.0 for
// TypeScript write into their tables.
func TestKeysArePowertools(t *testing.T) {
	for _, c := range []struct {
		prefix, value, python, typescript string
	}{
		{"orders", "order-1", "orders#729040816f7330c4cb31f54a56f59a7b", "orders#cpBAgW9zMMTLMfVKVvWaew=="},
		{"shared", "order-2", "shared#b190b50f426c86fff417daa914a3af61", "shared#sZC1D0Jshv/0F9qpFKOvYQ=="},
		{"orders.app.book", awkward, "orders.app.book#c0e5fe9002cbf59039e021e37ab088e7", "orders.app.book#K7cuD1/VcUgm6YssBsRYYQ=="},
		{"no key", "", "", ""},
	} {
		m := &reprise.Message{ID: c.value}
		if key, err := dynamostore.PythonKey(c.prefix, byID)(m); key != c.python || err != nil {
			t.Errorf("Python's key of %q is %q, %v; want %q", c.value, key, err, c.python)
		}
		if key, err := dynamostore.TypeScriptKey(c.prefix, byID)(m); key != c.typescript || err != nil {
			t.Errorf("TypeScript's key of %q is %q, %v; want %q", c.value, key, err, c.typescript)
		}
	}
	if key, err := dynamostore.PythonKey("orders", idempotency.ByJSON("/order"))(&reprise.Message{Body: "{}"}); err == nil {
		t.Errorf("a message without an order has the key %q", key)
	}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num[N int64 | string](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

type attributes = map[string]types.AttributeValue

// TestPowertoolsItemsAreRead: items are read as those versions wrote them, except for the times.
func TestPowertoolsItemsAreRead(t *testing.T) {
	client := connect(t)
	table := newTable(t, client)
	hex := newStore(t, client, dynamostore.Config{Table: table})
	base64 := newStore(t, client, dynamostore.Config{Table: table, Base64: true})
	inAnHour, aMinuteAgo := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	seats := &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1"), num("2.5"), &types.AttributeValueMemberNULL{Value: true}, str("a")}}
	const (
		python, typescript = "c76a2042f6d6b4babe36d71f036740e2", "x2ogQvbWtLq+NtcfA2dA4g=="
		completed, working = "COMPLETED", "INPROGRESS"
	)
	amount := md5.Sum([]byte(`"10"`)) // of the payload that both validated
	other := md5.Sum([]byte(`"11"`))
	for _, c := range []struct {
		name   string
		item   attributes
		store  idempotency.Store
		digest []byte
		state  idempotency.State
		result string
	}{
		{"Python, an object", attributes{"status": str(completed), "validation": str(python), "data": str(`{"booked": true, "seats": [1, 2.5, null, "a"]}`)},
			hex, amount[:], idempotency.Completed, `{"booked": true, "seats": [1, 2.5, null, "a"]}`},
		{"Python, a string", attributes{"status": str(completed), "data": str(`"text"`)}, hex, amount[:], idempotency.Completed, `"text"`},
		{"Python, another payload", attributes{"status": str(completed), "validation": str(python), "data": str("null")}, hex, other[:], idempotency.Mismatched, ""},
		{"TypeScript, an object", attributes{"status": str(completed), "validation": str(typescript), "data": &types.AttributeValueMemberM{Value: attributes{
			"booked": &types.AttributeValueMemberBOOL{Value: true}, "seats": seats}}}, base64, amount[:], idempotency.Completed, `{"booked":true,"seats":[1,2.5,null,"a"]}`},
		{"TypeScript, a string", attributes{"status": str(completed), "data": str("text")}, base64, nil, idempotency.Completed, "text"},
		{"TypeScript, sets", attributes{"status": str(completed), "data": &types.AttributeValueMemberM{Value: attributes{
			"b": &types.AttributeValueMemberB{Value: []byte{0xff}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{0xff}}},
			"ns": &types.AttributeValueMemberNS{Value: []string{"1"}}, "ss": &types.AttributeValueMemberSS{Value: []string{"a"}}}}},
			base64, nil, idempotency.Completed, `{"b":"/w==","bs":["/w=="],"ns":[1],"ss":["a"]}`},
		{"TypeScript, nothing", attributes{"status": str(completed), "validation": str(typescript)}, base64, amount[:], idempotency.Completed, ""},
		{"TypeScript, another payload", attributes{"status": str(completed), "validation": str(typescript)}, base64, other[:], idempotency.Mismatched, ""},
		{"in progress", attributes{"status": str(working), "in_progress_expiration": num(inAnHour.UnixMilli())}, hex, nil, idempotency.InProgress, ""},
		{"in progress, nobody knows until when", attributes{"status": str(working)}, hex, nil, idempotency.InProgress, ""},
		{"killed", attributes{"status": str(working), "in_progress_expiration": num(aMinuteAgo.UnixMilli())}, hex, nil, idempotency.Acquired, ""},
		{"expired", attributes{"status": str(completed), "expiration": num(aMinuteAgo.Unix()), "data": str("null"), "validation": str(python),
			"reprise_result": &types.AttributeValueMemberB{Value: []byte("text")}}, hex, nil, idempotency.Acquired, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.item["id"] = str(c.name)
			if c.item["expiration"] == nil {
				c.item["expiration"] = num(inAnHour.Unix())
			}
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: c.item}); err != nil {
				t.Fatal(err)
			}
			answers, err := c.store.Acquire(t.Context(), []idempotency.Request{{Key: c.name, Digest: c.digest, Lease: time.Hour, Retention: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			a := answers[0]
			if a.State != c.state || string(a.Result) != c.result {
				t.Errorf("the item was %v with %q, want %v with %q", a.State, a.Result, c.state, c.result)
			}
			if c.state == idempotency.InProgress && (a.Wait < 59*time.Minute || a.Wait > time.Hour+time.Second) {
				t.Errorf("it is in progress for another %v, want an hour", a.Wait)
			}
			if c.state != idempotency.Acquired {
				return
			}
			now := item(t, client, table, c.name)
			for _, name := range []string{"data", "reprise_result", "validation"} {
				if now[name] != nil {
					t.Errorf("the claim has the %s of the last one", name)
				}
			}
		})
	}
}

// order is a message whose work Powertools knows as well.
func order(id string, amount int) *reprise.Message {
	body, _ := json.Marshal(map[string]string{"order": id, "amount": fmt.Sprint(amount)}) // strings can be marshalled
	return &reprise.Message{ID: "id of " + id, Body: string(body)}
}

// TestPowertoolsForPython runs Powertools itself on the same table: each side sees which work the
// other has done, is doing and has given up.
func TestPowertoolsForPython(t *testing.T) {
	client := connect(t)
	store, table := open(t, client)
	python := startFunction(t, table)
	digest := func(m *reprise.Message) []byte {
		amount, err := idempotency.ByJSON("/amount")(m)
		if err != nil {
			t.Error(err)
		}
		sum := md5.Sum([]byte(`"` + amount + `"`))
		return sum[:]
	}
	var duplicate string
	once, err := idempotency.New(store, idempotency.Config{
		Key:    dynamostore.PythonKey("orders", idempotency.ByJSON("/order")),
		Digest: digest,
		Duplicate: func(_ context.Context, _ *reprise.Message, result []byte) error {
			duplicate = string(result)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	handle := func(m *reprise.Message, h func(context.Context) error) (ran bool, err error) {
		duplicate = ""
		err = once(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			ran = true
			return h(ctx)
		})).Handle(t.Context(), m)
		return ran, err
	}
	succeed := func(ctx context.Context) error { return idempotency.SetResult(ctx, []byte(`{"by":"Go"}`)) }
	errFailed := errors.New("failed")
	fail := func(context.Context) error { return errFailed }

	t.Run("Python completes", func(t *testing.T) {
		python.says(t, order("completed", 10), "returns", `ran, returned {"by": "Python"}`)
		if ran, err := handle(order("completed", 10), succeed); ran || err != nil || duplicate != `{"by": "Python"}` {
			t.Errorf("the handler ran: %v, %v; the duplicate got %q", ran, err, duplicate)
		}
		if ran, err := handle(order("completed", 11), succeed); ran || !errors.Is(err, idempotency.ErrMismatch) {
			t.Errorf("another payload: the handler ran: %v, %v", ran, err)
		}
	})
	t.Run("Python fails", func(t *testing.T) {
		python.says(t, order("failed", 10), "fails", "ran, raised RuntimeError")
		if ran, err := handle(order("failed", 10), succeed); !ran || err != nil {
			t.Errorf("the handler ran: %v, %v", ran, err)
		}
	})
	t.Run("Python is killed", func(t *testing.T) {
		python.says(t, order("killed", 10), "killed", "ran, raised SystemExit")
		if ran, err := handle(order("killed", 10), succeed); ran || !errors.Is(err, idempotency.ErrInProgress) {
			t.Errorf("the handler ran: %v, %v", ran, err)
		}
		time.Sleep(functionTime)
		if ran, err := handle(order("killed", 10), succeed); !ran || err != nil {
			t.Errorf("after the function's time: the handler ran: %v, %v", ran, err)
		}
	})
	t.Run("Go completes", func(t *testing.T) {
		if ran, err := handle(order(awkward, 10), succeed); !ran || err != nil {
			t.Errorf("the handler ran: %v, %v", ran, err)
		}
		python.says(t, order(awkward, 10), "returns", `returned {"by": "Go"}`)
		python.says(t, order(awkward, 11), "returns", "raised IdempotencyValidationError")
	})
	t.Run("Go completes with what is not JSON", func(t *testing.T) {
		if ran, err := handle(order("text", 10), func(ctx context.Context) error { return idempotency.SetResult(ctx, []byte("booked")) }); !ran || err != nil {
			t.Errorf("the handler ran: %v, %v", ran, err)
		}
		python.says(t, order("text", 10), "returns", "returned null")
	})
	t.Run("Go works, and fails", func(t *testing.T) {
		_, err := handle(order("working", 10), func(ctx context.Context) error {
			python.says(t, order("working", 10), "returns", "raised IdempotencyAlreadyInProgressError")
			return fail(ctx)
		})
		if !errors.Is(err, errFailed) {
			t.Error(err)
		}
		python.says(t, order("working", 10), "returns", `ran, returned {"by": "Python"}`)
	})
	t.Run("Python overtakes", func(t *testing.T) {
		c := claim(t, store, idempotency.Request{Key: "orders#" + hexMD5(`"overtaken"`), Lease: time.Millisecond, Retention: time.Hour})
		time.Sleep(10 * time.Millisecond)
		python.says(t, order("overtaken", 10), "returns", `ran, returned {"by": "Python"}`)
		if held, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: c, Retention: time.Hour}}); err != nil || held[0] {
			t.Errorf("completing a claim that was overtaken: %v, %v", held, err)
		}
		if held, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: c, Lease: time.Hour}}); err != nil || held[0] {
			t.Errorf("extending a claim that was overtaken: %v, %v", held, err)
		}
	})
}

func hexMD5(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }
