package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

func TestDynamoDB(t *testing.T) {
	client := connect(t)
	idempotencytest.Run(t, idempotencytest.Config{
		Open: func(t *testing.T) idempotency.Store {
			store, _ := open(t, client)
			return store
		},
		Games: 2, // one message at a time and in batches; moto takes seconds of a processor for each
	})
}

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	_, err := dynamostore.New(nil, dynamostore.Config{Concurrency: -1})
	for _, part := range []string{"client is nil", "dynamodb.NewFromConfig", "Config.Table is empty", "Config.Concurrency is -1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: want it to mention %q", err, part)
		}
	}
}

func requests(n int) []idempotency.Request {
	batch := make([]idempotency.Request, n)
	for i := range batch {
		batch[i] = idempotency.Request{Key: fmt.Sprint(i), Lease: time.Hour, Retention: 24 * time.Hour}
	}
	return batch
}

// claim acquires a key that is free.
func claim(t testing.TB, s idempotency.Store, r idempotency.Request) idempotency.Claim {
	t.Helper()
	answers, err := s.Acquire(t.Context(), []idempotency.Request{r})
	if err != nil || answers[0].State != idempotency.Acquired {
		t.Fatalf("acquiring key %q: %v, %v", r.Key, answers, err)
	}
	return idempotency.Claim{Key: r.Key, Token: answers[0].Token}
}

// granting is a client that grants every claim.
type granting struct{}

func (granting) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{Attributes: map[string]types.AttributeValue{"reprise_token": &types.AttributeValueMemberN{Value: "1"}}}, nil
}

// TestBatchesAreBounded: ten messages take as long as one, and however large a batch
// is, ten calls at most are under way.
func TestBatchesAreBounded(t *testing.T) {
	for _, c := range []struct {
		size, concurrency int
		took              time.Duration
		most              int64
	}{
		{10, 0, time.Second, 10}, {100, 0, 10 * time.Second, 10}, {100, 50, 2 * time.Second, 50}, {1, 0, time.Second, 1}, {0, 0, 0, 0},
	} {
		t.Run(fmt.Sprintf("%d, %d at a time", c.size, c.concurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &meddler{Client: granting{}, before: func() { time.Sleep(time.Second) }}
				store := newStore(t, client, dynamostore.Config{Table: "table", Concurrency: c.concurrency})
				began := time.Now()
				answers, err := store.Acquire(t.Context(), requests(c.size))
				if err != nil || len(answers) != c.size {
					t.Fatalf("%d answers, %v", len(answers), err)
				}
				if took := time.Since(began); took != c.took || client.most.Load() != c.most {
					t.Errorf("it took %v, %d calls at a time; want %v and %d", took, client.most.Load(), c.took, c.most)
				}
			})
		})
	}
}

// TestClientThatMisbehaves: a client that panics or ends its goroutine makes a batch fail, and not the process.
func TestClientThatMisbehaves(t *testing.T) {
	for want, misbehave := range map[string]func(){
		"the client panicked: a nil map":   func() { panic("a nil map") },
		"the client called runtime.Goexit": runtime.Goexit,
	} {
		store := newStore(t, &meddler{Client: granting{}, before: misbehave}, dynamostore.Config{Table: "table"})
		if answers, err := store.Acquire(t.Context(), requests(2)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Acquire: %v, %v; want an error that says %q", answers, err, want)
		}
	}
}

// TestFailedTripLeavesNoClaims: if some calls of a batch fail, the claims that the others acquired
// are released, because the caller does not learn of them. That holds even if the context ended
// before the last call failed.
func TestFailedTripLeavesNoClaims(t *testing.T) {
	for _, timeIsUp := range []bool{false, true} {
		t.Run(fmt.Sprint("time is up: ", timeIsUp), func(t *testing.T) {
			client := connect(t)
			table := newTable(t, client)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			meddling := &meddler{Client: client, refuse: "3"}
			if timeIsUp {
				meddling.refusing = func() {
					for meddling.calls.Load() < 10 || meddling.underWay.Load() > 1 { // until the others have their claims
						time.Sleep(time.Millisecond)
					}
					stop()
				}
			}
			failing := newStore(t, meddling, dynamostore.Config{Table: table})
			if answers, err := failing.Acquire(ctx, requests(10)); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "acquiring: ") {
				t.Errorf("Acquire: %v, %v", answers, err)
			}
			for _, r := range requests(10) {
				claim(t, newStore(t, client, dynamostore.Config{Table: table}), r)
			}
		})
	}
}

// TestCallsForEachMethod: each method makes one call, and one more where a lease outlasts the
// retention.
func TestCallsForEachMethod(t *testing.T) {
	client := &meddler{Client: connect(t)}
	store := newStore(t, client, dynamostore.Config{Table: newTable(t, connect(t))})
	count := func(what string, want int64, call func() error) {
		t.Helper()
		before := client.calls.Load()
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := client.calls.Load() - before; n != want {
			t.Errorf("%s took %d calls, want %d", what, n, want)
		}
	}
	var c idempotency.Claim
	extend := func(lease time.Duration) func() error {
		return func() error {
			held, err := store.Extend(t.Context(), []idempotency.Extension{{Claim: c, Lease: lease}})
			if err == nil && !held[0] {
				err = errors.New("the claim was not held")
			}
			return err
		}
	}
	count("acquiring", 1, func() error {
		c = claim(t, store, idempotency.Request{Key: "key", Lease: time.Hour, Retention: 24 * time.Hour})
		return nil
	})
	count("acquiring what is in progress", 1, func() error {
		_, err := store.Acquire(t.Context(), []idempotency.Request{{Key: "key", Lease: time.Hour, Retention: time.Hour}})
		return err
	})
	count("extending", 1, extend(2*time.Hour))
	count("extending beyond the retention", 2, extend(48*time.Hour))
	count("completing", 1, func() error {
		_, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: c, Retention: time.Hour}})
		return err
	})
	count("releasing", 1, func() error { _, err := store.Release(t.Context(), []idempotency.Claim{c}); return err })
}

// TestItemsAreOfTheirTimes: the table has these attributes after each step.
func TestItemsAreOfTheirTimes(t *testing.T) {
	client := connect(t)
	store, table := open(t, client)
	check := func(when string, want map[string]string) {
		t.Helper()
		got := make(map[string]string)
		for name, value := range item(t, client, table, "key") {
			switch value := value.(type) {
			case *types.AttributeValueMemberS:
				got[name] = value.Value
			case *types.AttributeValueMemberN:
				got[name] = "a number of " + fmt.Sprint(len(value.Value))
			case *types.AttributeValueMemberB:
				got[name] = "bytes " + string(value.Value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	request := idempotency.Request{Key: "key", Digest: []byte{1, 0xff}, Lease: time.Hour, Retention: 24 * time.Hour}
	const seconds, millis, micros = "a number of 10", "a number of 13", "a number of 16"

	c := claim(t, store, request)
	check("acquired", map[string]string{"id": "key", "status": "INPROGRESS", "expiration": seconds, "in_progress_expiration": millis, "validation": "01ff", "reprise_token": micros})
	if _, err := store.Release(t.Context(), []idempotency.Claim{c}); err != nil {
		t.Fatal(err)
	}
	check("released", map[string]string{"id": "key", "status": "INPROGRESS", "expiration": seconds, "in_progress_expiration": "a number of 1", "validation": "01ff", "reprise_token": micros})
	request.Digest = nil
	again := claim(t, store, request)
	if again.Token != c.Token+1 {
		t.Errorf("token %d came after %d, want one more", again.Token, c.Token)
	}
	if held, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: again, Result: []byte("booked"), Retention: time.Hour}}); err != nil || !held[0] {
		t.Fatal(held, err)
	}
	check("completed with text", map[string]string{"id": "key", "status": "COMPLETED", "expiration": seconds, "in_progress_expiration": millis, "reprise_result": "bytes booked", "reprise_token": micros})

}

// TestResultsThatAreJSON: results that are JSON are kept unchanged, in the attribute that
// Powertools uses.
func TestResultsThatAreJSON(t *testing.T) {
	client := connect(t)
	store, table := open(t, client)
	for result, isJSON := range map[string]bool{`{"a": 1}`: true, "null": true, "\"é\"": true, "\"\xff\"": false, "booked": false, `{"a": 1} `: true, "": false} {
		c := claim(t, store, idempotency.Request{Key: fmt.Sprintf("key of %q", result), Lease: time.Hour, Retention: time.Hour})
		if held, err := store.Complete(t.Context(), []idempotency.Completion{{Claim: c, Result: []byte(result), Retention: time.Hour}}); err != nil || !held[0] {
			t.Fatal(held, err)
		}
		data, ok := item(t, client, table, c.Key)["data"].(*types.AttributeValueMemberS)
		if ok != isJSON || ok && data.Value != result {
			t.Errorf("the result %q is kept as JSON: %v, want %v", result, ok, isJSON)
		}
		answers, err := store.Acquire(t.Context(), []idempotency.Request{{Key: c.Key, Lease: time.Hour, Retention: time.Hour}})
		if err != nil || string(answers[0].Result) != result {
			t.Errorf("the result %q came back as %v, %v", result, answers, err)
		}
	}
}

// TestForeignItemIsAnError: for an item that is not an idempotency record, the store returns an
// error, and nothing runs.
func TestForeignItemIsAnError(t *testing.T) {
	client := connect(t)
	store, table := open(t, client)
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	s := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for want, foreign := range map[string]map[string]types.AttributeValue{
		`status is ""`:                       {},
		`status is "EXPIRED"`:                {"status": s("EXPIRED"), "expiration": n("9999999999")},
		"expiration is no number":            {"status": s("INPROGRESS"), "expiration": s("tomorrow")},
		"in_progress_expiration is 9.9e15, ": {"status": s("INPROGRESS"), "expiration": n("9999999999"), "in_progress_expiration": n("9.9e15")},
	} {
		foreign["id"] = s(want)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: foreign}); err != nil {
			t.Fatal(err)
		}
		answers, err := store.Acquire(t.Context(), []idempotency.Request{{Key: want, Lease: time.Hour, Retention: time.Hour}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "key ") {
			t.Errorf("%v, %v; want an error with %q", answers, err, want)
		}
	}
}
