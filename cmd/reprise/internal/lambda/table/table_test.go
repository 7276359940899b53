package table_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/table"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

// serve serves tables until the test ends, to the real SDK's client.
func serve(t *testing.T, tables *table.Tables) *dynamodb.Client {
	t.Helper()
	server := httptest.NewServer(tables)
	t.Cleanup(server.Close)
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

// TestStore: a table holds what every store for idempotency must hold.
func TestStore(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	idempotencytest.Run(t, idempotencytest.Config{
		Open: func(t *testing.T) idempotency.Store {
			name := fmt.Sprint("table-", opened.Add(1))
			tables, err := table.New([]table.Table{{Name: name, Key: "id"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			store, err := dynamostore.New(serve(t, tables), dynamostore.Config{Table: name})
			if err != nil {
				t.Fatal(err)
			}
			return store
		},
	})
}

// TestItemsAreKept: what was answered is there when the journal is opened again.
func TestItemsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for start := range 3 {
		j, err := journal.Open(journal.Options{Dir: dir, MinFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		tables, err := table.New([]table.Table{{Name: "kept", Key: "id"}}, j)
		if err != nil {
			t.Fatal(err)
		}
		client := serve(t, tables)
		name := "kept"
		key := func(id string) map[string]types.AttributeValue {
			return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
		}
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: key("a")})
		if err != nil || (len(out.Item) == 1) != (start == 1) {
			t.Errorf("start %d finds %v, %v", start, out, err)
		}
		if start == 0 {
			_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: key("a")})
		} else {
			_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: key("a")})
		}
		if err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExpressions: what an update makes of an item, and what is refused.
func TestExpressions(t *testing.T) {
	t.Parallel()
	tables, err := table.New([]table.Table{{Name: "t", Key: "id"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, tables)
	for _, test := range []struct {
		update, condition string
		want              string // of n; else the code of the error
	}{
		{"SET n = :five", "attribute_not_exists(id)", "5"},
		{"SET n = n + :half", "n >= :five AND NOT attribute_not_exists(n)", "5.5"},
		{"SET n = n - :five", "(n < :five OR n > :five) AND n <> :half", "0.5"},
		{"SET n = if_not_exists(absent, :five) REMOVE x, y", "n = :half", "5"},
		{"SET n = if_not_exists(n, :half)", "n <= :five", "5"},
		{"SET n = :half", "n < :five", "ConditionalCheckFailedException"},
		{"SET n = :half", "absent = absent", "ConditionalCheckFailedException"},
		{"SET n = :half", "begins_with(n, :five)", "ValidationException"},
		{"SET n = :half", "n = :five n", "ValidationException"},
		{"SET n = :absent", "", "ValidationException"},
		{"SET n = absent", "", "ValidationException"},
		{"ADD n :five", "", "ValidationException"},
		{"SET n = :five", "n = :five", "5"}, // nothing has changed
	} {
		in := &dynamodb.UpdateItemInput{
			TableName: new("t"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}},
			UpdateExpression: &test.update, ReturnValues: types.ReturnValueAllNew,
			ExpressionAttributeValues: map[string]types.AttributeValue{":five": &types.AttributeValueMemberN{Value: "5"}, ":half": &types.AttributeValueMemberN{Value: "0.5"}},
		}
		if test.condition != "" {
			in.ConditionExpression = &test.condition
		}
		out, err := client.UpdateItem(t.Context(), in)
		got := ""
		if api, ok := errors.AsType[smithy.APIError](err); ok {
			got = api.ErrorCode()
		} else if err != nil {
			t.Fatal(err)
		} else if n, ok := out.Attributes["n"].(*types.AttributeValueMemberN); ok {
			got = n.Value
		}
		if got != test.want {
			t.Errorf("%s if %s: %s (%v), want %s", test.update, test.condition, got, err, test.want)
		}
	}
}

// TestRefusals: tables that are not there, other keys and other actions.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tables, err := table.New([]table.Table{{Name: "t", Key: "id"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, tables)
	number := map[string]types.AttributeValue{"id": &types.AttributeValueMemberN{Value: "1"}}
	for want, call := range map[string]func(context.Context) error{
		"ResourceNotFoundException": func(ctx context.Context) error {
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: new("absent"), Key: number})
			return err
		},
		"the key of table t is one string": func(ctx context.Context) error {
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: new("t"), Key: number})
			return err
		},
		"Query is not emulated": func(ctx context.Context) error {
			_, err := client.Query(ctx, &dynamodb.QueryInput{TableName: new("t")})
			return err
		},
	} {
		if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
