package configfile

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSchemaHasTheForms: the keys that are read are those of the schema.
func TestSchemaHasTheForms(t *testing.T) {
	tags := func(form any, more ...string) []string {
		for field := range reflect.TypeOf(form).Fields() {
			more = append(more, field.Tag.Get("yaml"))
		}
		slices.Sort(more)
		return more
	}
	if diff := cmp.Diff(tags(queueForm{}, "faults", "consume"), slices.Sorted(maps.Keys(queueProperties))); diff != "" {
		t.Errorf("the keys of a queue (-read +schema):\n%s", diff)
	}
	if diff := cmp.Diff(tags(poolForm{}), slices.Sorted(maps.Keys(poolProperties))); diff != "" {
		t.Errorf("the keys of a pool (-read +schema):\n%s", diff)
	}
	text, err := json.Marshal(sqsserver.Fault{Kind: "k", Action: "a", Skip: 1, Every: 1, Probability: 1, Limit: 1, Delay: 1})
	if err != nil {
		t.Fatal(err)
	}
	var fault object
	if err := json.Unmarshal(text, &fault); err != nil {
		t.Fatal(err)
	}
	if n := reflect.TypeFor[sqsserver.Fault]().NumField(); len(fault) != n {
		t.Errorf("a fault with all fields has %d members, want %d: %s", len(fault), n, text)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fault)), slices.Sorted(maps.Keys(faultProperties))); diff != "" {
		t.Errorf("the keys of a fault (-read +schema):\n%s", diff)
	}
}

// TestSchemaHasTheKinds: the server's complaint of an unknown kind lists all.
func TestSchemaHasTheKinds(t *testing.T) {
	complaint := sqsserver.Fault{Kind: "fire"}.Validate().Error()
	for _, kind := range faultKinds {
		if !strings.Contains(complaint, fmt.Sprintf("%q", kind)) {
			t.Errorf("the schema has the kind %s, the server has not", kind)
		}
	}
	if n := strings.Count(complaint, `"`)/2 - 1; n != len(faultKinds) {
		t.Errorf("the server has %d kinds, the schema %d: %s", n, len(faultKinds), complaint)
	}
}

// TestSchemaHasTheAttributes: an attribute that the SDK knows is in the schema if the
// server's CreateQueue knows it, even if it refuses the value.
func TestSchemaHasTheAttributes(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{Logger: slog.New(slog.DiscardHandler)})
	defer server.Close()
	settable := func(name string) bool {
		for _, queue := range []string{"q", "q.fifo"} {
			attributes := map[string]string{name: "?"}
			if queue == "q.fifo" && name != "FifoQueue" {
				attributes["FifoQueue"] = "true"
			}
			_, err := server.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: queue, Attributes: attributes})
			if err == nil || !strings.Contains(err.Error(), "Unknown Attribute") {
				return true
			}
		}
		return false
	}
	var want []string
	for _, name := range types.QueueAttributeName("").Values() {
		if settable(string(name)) {
			want = append(want, string(name))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, daemon.QueueAttributes); diff != "" {
		t.Errorf("attributes (-server +schema):\n%s", diff)
	}
}
