package operating

import (
	"context"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
)

// TestObserversTellEveryEventToAll: each event is passed on to all observers in order, and events
// without a listener have no function. This is checked for all events, so a new one that is not
// passed on fails. One that panics keeps the event from no other one.
func TestObserversTellEveryEventToAll(t *testing.T) {
	events := reflect.TypeFor[reprise.Observer]()
	for field := range events.Fields() {
		t.Run(field.Name, func(t *testing.T) {
			var told []string
			listener := func(name string) reprise.Observer {
				var o reprise.Observer
				reflect.ValueOf(&o).Elem().FieldByIndex(field.Index).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
					told = append(told, name)
					if name == "panics" {
						panic("as told")
					}
					if field.Type.NumOut() == 0 {
						return nil
					}
					return []reflect.Value{args[0], reflect.ValueOf(name)} // Starting
				}))
				return o
			}
			both := reprise.Observers(listener("a"), reprise.Observer{}, listener("b"))
			args := make([]reflect.Value, field.Type.NumIn())
			for i := range args {
				args[i] = reflect.Zero(field.Type.In(i))
			}
			if field.Type.In(0) == reflect.TypeFor[context.Context]() {
				args[0] = reflect.ValueOf(t.Context())
			}
			for other := range events.Fields() {
				if f := reflect.ValueOf(both).FieldByIndex(other.Index); f.IsNil() != (other.Name != field.Name) {
					t.Errorf("a listener to %s makes %s nil: %v", field.Name, other.Name, f.IsNil())
				}
			}
			reflect.ValueOf(both).FieldByIndex(field.Index).Call(args)
			reflect.ValueOf(reprise.Observers(listener("alone"))).FieldByIndex(field.Index).Call(args)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic does not reach the caller, which logs it")
					}
				}()
				reflect.ValueOf(reprise.Observers(listener("panics"), listener("behind"))).FieldByIndex(field.Index).Call(args)
			}()
			if diff := cmp.Diff([]string{"a", "b", "alone", "panics", "behind"}, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestObserversStartInTurn: each observer derives its context from that of the one before, and the
// last trail that is not empty counts.
func TestObserversStartInTurn(t *testing.T) {
	type key string
	start := func(name key, trail string) reprise.Observer {
		return reprise.Observer{Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) {
			return context.WithValue(ctx, name, true), trail
		}}
	}
	none := reprise.Observer{Starting: func(context.Context, *reprise.Message) (context.Context, string) { return nil, "" }}
	ctx, trail := reprise.Observers(start("a", "of-a"), start("b", "of-b"), none).Starting(t.Context(), nil)
	if ctx.Value(key("a")) != true || ctx.Value(key("b")) != true {
		t.Errorf("the context has a: %v, b: %v, want both", ctx.Value(key("a")), ctx.Value(key("b")))
	}
	if trail != "of-b" {
		t.Errorf("the trail is %q, want that of b", trail)
	}
}
