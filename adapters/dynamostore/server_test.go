package dynamostore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/reprise-sqs/reprise/adapters/dynamostore"
)

// moto runs moto's DynamoDB on a free port until its input ends. The server answers one request at
// a time: moto checks conditions and writes in two steps, so that two threads could both acquire a
// key.
const moto = `
import os, sys, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
backends = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()
def one_at_a_time(environ, start_response):
    with turn:
        return list(backends(environ, start_response))
server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
print(server.server_port, flush=True)
def end():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
server.serve_forever()
`

// endpoint is the server's address; absent is the reason why there is no server.
var endpoint, absent string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if absent = missing("moto.server"); absent != "" {
			return m.Run()
		}
		stop, err := startMoto()
		if err != nil {
			fmt.Fprintln(os.Stderr, "starting moto:", err)
			return 1
		}
		defer stop()
		return m.Run()
	}())
}

// missing returns the reason why Python cannot run with a module; empty if it can.
func missing(module string) string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "python3 is not installed"
	}
	if err := exec.Command(python, "-c", "import "+module).Run(); err != nil {
		return module + " is not installed for python3"
	}
	return ""
}

func startMoto() (stop func(), err error) {
	cmd := exec.Command("python3", "-c", moto)
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it has no more to say
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("%w\n%s", err, log.String())
	}
	endpoint = "http://127.0.0.1:" + strings.TrimSpace(line)
	return stop, nil
}

// connect returns a client of the server, or skips the test.
func connect(t testing.TB) *dynamodb.Client {
	t.Helper()
	if absent != "" {
		t.Skip("skipped: " + absent)
	}
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &endpoint,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "thing"}, nil
		}),
	})
}

var tables atomic.Int32

// newTable creates a table as the package's documentation says.
func newTable(t testing.TB, client *dynamodb.Client) string {
	t.Helper()
	table := "table-" + strconv.Itoa(int(tables.Add(1)))
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &table,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// newStore returns a store in that table.
func newStore(t testing.TB, client dynamostore.Client, cfg dynamostore.Config) *dynamostore.Store {
	t.Helper()
	store, err := dynamostore.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// open returns a store in a table of its own, and the table's name.
func open(t testing.TB, client *dynamodb.Client) (*dynamostore.Store, string) {
	t.Helper()
	table := newTable(t, client)
	return newStore(t, client, dynamostore.Config{Table: table}), table
}

// item returns the item of the table under an id.
func item(t testing.TB, client *dynamodb.Client, table, id string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

var errRefused = errors.New("refused")

// meddler is a client that counts calls, and lets some fail.
type meddler struct {
	dynamostore.Client
	calls, underWay, most atomic.Int64
	before                func() // each call
	refuse                string // calls about this id
	refusing              func() // what happens first; may be nil
}

func (m *meddler) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	m.calls.Add(1)
	now := m.underWay.Add(1)
	defer m.underWay.Add(-1)
	for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
	}
	if m.before != nil {
		m.before()
	}
	if id, ok := in.Key["id"].(*types.AttributeValueMemberS); ok && id.Value == m.refuse {
		if m.refusing != nil {
			m.refusing()
		}
		return nil, errRefused
	}
	return m.Client.UpdateItem(ctx, in, opts...)
}
