package stranger_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// drawn is how many scenarios the tests of what is drawn look at: drawing takes no time.
const drawn = 2000

// inputs returns what a scenario passes to the library, by value: configurations and messages.
func (s *scenario) inputs(t *testing.T) (all []any) {
	w := &world{record: &record{}, s: s, t: t}
	for _, plan := range s.Processes {
		v := s.version(plan)
		p := &program{w: w, life: &life{settings: v}, plan: plan}
		if v.Lambda {
			cfg, err := p.config(v, places{dead: "dead"})
			if err != nil {
				t.Fatalf("seed %d: %v", s.Seed, err)
			}
			if all = append(all, v.functionConfig(nil, cfg)); v.Batch {
				all = append(all, v.batchFunctionConfig(nil, cfg))
			}
			continue
		}
		cfg, err := p.config(v, places{lane: "lane", dead: "dead"})
		if err != nil {
			t.Fatalf("seed %d: %v", s.Seed, err)
		}
		if v.Pooled {
			all = append(all, v.poolConfig())
		}
		if all = append(all, cfg); v.Batch {
			all = append(all, v.batchConfig(cfg))
		}
	}
	all = append(all, s.senderConfig())
	for n := range min(5, len(s.Messages)) {
		if s.Messages[n].Size < 1000 {
			all = append(all, s.outgoing(n))
		}
	}
	return all
}

// inputTypes are the types that a user of the library fills in.
var inputTypes = []reflect.Type{
	reflect.TypeFor[reprise.PoolConfig](), reflect.TypeFor[repriselambda.Config](), reflect.TypeFor[repriselambda.BatchConfig](),
	reflect.TypeFor[reprise.Config](), reflect.TypeFor[reprise.Outage](), reflect.TypeFor[reprise.RetryLane](), reflect.TypeFor[reprise.Share](),
	reflect.TypeFor[reprise.Observer](), reflect.TypeFor[reprise.BatchConfig](), reflect.TypeFor[reprise.SenderConfig](),
	reflect.TypeFor[reprise.Outgoing](), reflect.TypeFor[retry.Policy](), reflect.TypeFor[retry.Rule](),
	reflect.TypeFor[retry.Exponential](), reflect.TypeFor[retry.Linear](), reflect.TypeFor[retry.Polynomial](),
}

// notDrawn are fields that no scenario sets, and why.
var notDrawn = map[string]string{
	"repriselambda.Config.Client": "the test makes no client; New refuses a function without one",
}

// TestEveryFieldIsDrawn: each field of each configuration has a value other than zero in some scenario, and each
// named value of a choice is chosen.
func TestEveryFieldIsDrawn(t *testing.T) {
	set := make(map[string]bool)
	for seed := range uint64(drawn) {
		s := draw(seed + 1)
		for _, in := range s.inputs(t) {
			collect(set, reflect.ValueOf(in))
		}
	}
	for _, in := range inputTypes {
		for f := range in.Fields() {
			if !f.IsExported() {
				continue
			}
			name := in.String() + "." + f.Name
			switch why, known := notDrawn[name]; {
			case !set[name] && !known:
				t.Errorf("no scenario of %d sets %s: draw it, or say in notDrawn why it cannot be drawn", drawn, name)
			case set[name] && known:
				t.Errorf("%s is drawn, and notDrawn says that it is not: %q", name, why)
			}
		}
	}
	for _, choice := range []fmt.Stringer{
		reprise.ViaVisibility, reprise.ViaRequeue, reprise.FIFOBlock, reprise.FIFOSkip,
		retry.None, retry.Equal, retry.FromBase, retry.Decorrelated, retry.Percent(20),
	} {
		if name := fmt.Sprintf("%T %v", choice, choice); !set[name] {
			t.Errorf("no scenario of %d chooses %s", drawn, name)
		}
	}
	known := func(name string) bool {
		return slices.ContainsFunc(inputTypes, func(in reflect.Type) bool { return strings.HasPrefix(name, in.String()+".") })
	}
	for name := range notDrawn {
		if !known(name) {
			t.Errorf("notDrawn names %s, which is no field of an input", name)
		}
	}
}

// collect notes the fields of v that are not zero, and the values of choices.
func collect(set map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for f := range v.Type().Fields() {
			if value := v.FieldByIndex(f.Index); f.IsExported() && !value.IsZero() {
				set[v.Type().String()+"."+f.Name] = true
				collect(set, value)
			}
		}
	case reflect.Interface:
		collect(set, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			collect(set, v.Index(i))
		}
	default:
		if name, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Pointer {
			set[fmt.Sprintf("%T %v", name, name)] = true
		}
	}
}

// TestEveryFieldIsDrawnCanFail: a field that no scenario sets is not taken for one that is.
func TestEveryFieldIsDrawnCanFail(t *testing.T) {
	set := make(map[string]bool)
	collect(set, reflect.ValueOf(reprise.Config{Outage: reprise.Outage{Threshold: 1}}))
	if !set["reprise.Outage.Threshold"] || set["reprise.Outage.Off"] || set["reprise.Config.Lease"] {
		t.Errorf("of a threshold alone, these are set: %v", set)
	}
}
