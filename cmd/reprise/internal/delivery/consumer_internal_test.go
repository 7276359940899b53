package delivery

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
)

// elsewhere are the fields of reprise.Config that no setting of one queue decides, with what
// does.
var elsewhere = map[string]string{
	"Logger":             "the flags --log-level and --log-format",
	"Observer":           "package daemon, which measures what --admin-addr shows",
	"Outage.Unavailable": "the verdicts of targets, see --unavailable-status",
}

// TestEveryFieldHasASetting: each field of the library's configuration has a setting, and the
// field follows the setting's value.
func TestEveryFieldHasASetting(t *testing.T) {
	values := map[string]string{
		"concurrency": "7", "prefetch": "3", "long-poll": "7s", "rate": "2.5", "retry": "constant(3s) attempts=4",
		"via": "visibility", "retry-lane": "lane", "retry-lane-priority": "4", "retry-lane-weight": "9", "fifo": "skip",
		"in-flight-quota": "99", "timeout": "9s", "lease": "40s", "stop-budget": "11s", "dead-letter": "dead",
		"consumer-name": "me", "signing-key-file": signingKeyFile(t), "outage": "off", "outage-threshold": "5",
		"outage-key": "group", "outage-probe": "http://localhost/health",
		"payloads": "s3://bucket/orders/",
	}
	const via = "Via" // which excludes a retry lane
	before := configOf(t, "exec", "true", "retry-lane", "other", "dead-letter", "other-dead")
	for _, field := range fieldsOf(reflect.TypeFor[reprise.Config](), "") {
		setting, ok := fields[field]
		if why := elsewhere[field]; why != "" {
			if ok {
				t.Errorf("Config.%s has a setting, and yet %s decides it", field, why)
			}
			continue
		}
		if !ok || values[setting] == "" {
			t.Errorf("Config.%s has no setting, or no value here: add one", field)
			continue
		}
		with := []string{"exec", "true", "retry-lane", "other", "dead-letter", "other-dead"}
		if field == via {
			with = with[:2]
		}
		if i := slices.Index(with, setting); i >= 0 {
			with[i+1] = values[setting]
		} else {
			with = append(with, setting, values[setting])
		}
		after := configOf(t, with...)
		if reflect.DeepEqual(valueOf(before, field), valueOf(after, field)) {
			t.Errorf("--%s %s does not change Config.%s", setting, values[setting], field)
		}
	}
	for field := range fields {
		if !slices.Contains(fieldsOf(reflect.TypeFor[reprise.Config](), ""), field) {
			t.Errorf("Config has no field %s", field)
		}
	}
}

// TestChoices: each word of a setting means what it says: block in the place of skip would let messages of a FIFO queue
// overtake, or dead-letter them.
func TestChoices(t *testing.T) {
	for word, want := range map[string]reprise.Via{"auto": reprise.ViaAuto, "visibility": reprise.ViaVisibility, "requeue": reprise.ViaRequeue} {
		if got := configOf(t, "exec", "true", "via", word).Via; got != want {
			t.Errorf("--via %s: %v, want %v", word, got, want)
		}
	}
	for word, want := range map[string]reprise.FIFO{"hold": reprise.FIFOHold, "block": reprise.FIFOBlock, "skip": reprise.FIFOSkip} {
		if got := configOf(t, "exec", "true", "fifo", word).FIFO; got != want {
			t.Errorf("--fifo %s: %v, want %v", word, got, want)
		}
	}
	for word, off := range map[string]bool{"on": false, "off": true} {
		if got := configOf(t, "exec", "true", "outage", word).Outage.Off; got != off {
			t.Errorf("--outage %s: off %v", word, got)
		}
	}
	m := &reprise.Message{
		GroupID: "group", Body: `{"tenant":"pointer"}`,
		Attributes: map[string]types.MessageAttributeValue{"tenant": {DataType: aws.String("String"), StringValue: aws.String("attribute")}},
	}
	for part, want := range map[string]string{"group": "group", "attribute:tenant": "attribute", "json:/tenant": "pointer", "attribute:absent": "", "json:/absent": ""} {
		if got := configOf(t, "exec", "true", "outage-key", part).Outage.Key(m); got != want {
			t.Errorf("--outage-key %s: %q, want %q", part, got, want)
		}
	}
}

// fieldsOf returns the paths of the exported fields of a struct, those of structs of the
// library below it included.
func fieldsOf(of reflect.Type, prefix string) (found []string) {
	for field := range of.Fields() {
		switch {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == reflect.TypeFor[reprise.Config]().PkgPath() && field.Name != "Observer":
			found = append(found, fieldsOf(field.Type, prefix+field.Name+".")...)
		default:
			found = append(found, prefix+field.Name)
		}
	}
	return found
}

// valueOf returns what can be compared of a field: of a function, whether there is one.
func valueOf(cfg reprise.Config, path string) any {
	v := reflect.ValueOf(cfg)
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	if v.Kind() == reflect.Func {
		return !v.IsNil()
	}
	return v.Interface()
}

// configOf returns the configuration that the settings make, with the queues that they name.
func configOf(t *testing.T, settings ...string) reprise.Config {
	t.Helper()
	s := settingsOf(t, settings...)
	if err := s.Check("orders"); err != nil {
		t.Fatalf("%v: %v", settings, err)
	}
	cfg, err := s.Config(new(Secrets), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%v: %v", settings, err)
	}
	cfg.DeadLetterURL, cfg.RetryLane.URL = s.DeadLetter, s.RetryLane
	if s.Payloads() {
		handler := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
		if _, cfg.AfterDelete, err = s.Fetched(handler, nowhereS3{}, cfg.Logger); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

// settingsOf returns settings with the values of pairs of names and texts.
func settingsOf(t *testing.T, pairs ...string) *Settings {
	t.Helper()
	s := new(Settings)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(flags)
	s.RegisterShare(flags)
	for pair := range slices.Chunk(pairs, 2) {
		if err := flags.Set(pair[0], pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
