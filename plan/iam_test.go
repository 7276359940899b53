package plan_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
)

// features returns those of a consumer, and fails the test without them.
func features(t *testing.T, q plan.Queue, s plan.Settings) []plan.Feature {
	t.Helper()
	found, err := plan.Features(q, s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// actions returns the actions that each resource is permitted.
func actions(d plan.Document) map[string]string {
	permitted := map[string]string{}
	for _, s := range d.Statement {
		permitted[s.Resource] += strings.Join(s.Action, " ")
	}
	return permitted
}

const (
	orders     = "arn:aws:sqs:us-east-1:123456789012:orders"
	dead       = "arn:aws:sqs:us-east-1:123456789012:dead"
	ordersFIFO = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
	deadFIFO   = "arn:aws:sqs:us-east-1:123456789012:dead.fifo"
	key        = "1234abcd-12ab-34cd-56ef-1234567890ab"
	keyARN     = "arn:aws:kms:us-east-1:123456789012:key/" + key
	consume    = "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage"
	sendDead   = "sqs:GetQueueAttributes sqs:SendMessage"
)

// TestIAM is which permissions a configuration takes: those, and no others.
func TestIAM(t *testing.T) {
	for _, tt := range []struct {
		name     string
		queue    plan.Queue
		settings plan.Settings
		want     map[string]string
	}{
		{"a standard queue", sound, plan.Settings{}, map[string]string{orders: consume + " sqs:SendMessage", dead: sendDead}},
		{"no copies", sound, plan.Settings{Via: plan.ViaVisibility}, map[string]string{orders: consume, dead: sendDead}},
		{"no dead-letter queue", plan.Queue{ARN: orders}, plan.Settings{Via: plan.ViaVisibility}, map[string]string{orders: consume}},
		{"a FIFO queue", soundFIFO, plan.Settings{}, map[string]string{ordersFIFO: consume, deadFIFO: sendDead}},
		{"a FIFO queue cannot requeue", soundFIFO, plan.Settings{Via: plan.ViaRequeue}, map[string]string{ordersFIFO: consume, deadFIFO: sendDead}},
		{
			"by name", plan.Queue{ARN: orders}, plan.Settings{Via: plan.ViaVisibility, ByName: true},
			map[string]string{orders: "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:GetQueueUrl sqs:ReceiveMessage"},
		},
		{
			"a dead-letter queue of the consumer's", sound,
			plan.Settings{Via: plan.ViaVisibility, DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/210987654321/graveyard/"},
			map[string]string{orders: consume, "arn:aws:sqs:us-east-1:210987654321:graveyard": sendDead},
		},
		{
			"a key by its id", with(sound, func(q *plan.Queue) { q.KMSKey = key }), plan.Settings{},
			map[string]string{orders: consume + " sqs:SendMessage", dead: sendDead, keyARN: "kms:Decrypt kms:GenerateDataKey"},
		},
		{
			"a key by its ARN, no copies", with(sound, func(q *plan.Queue) { q.KMSKey = keyARN }), plan.Settings{Via: plan.ViaVisibility},
			map[string]string{orders: consume, dead: sendDead, keyARN: "kms:Decrypt"},
		},
		{
			"a key of the dead-letter queue's", with(sound, func(q *plan.Queue) { q.DeadLetterKMSKey = "arn:aws:kms:us-east-1:210987654321:key/" + key }),
			plan.Settings{Via: plan.ViaVisibility},
			map[string]string{
				orders: consume, dead: sendDead,
				"arn:aws:kms:us-east-1:210987654321:key/" + key: "kms:Decrypt kms:GenerateDataKey",
			},
		},
		{
			"the key that AWS manages", with(sound, func(q *plan.Queue) { q.KMSKey, q.DeadLetterKMSKey = "alias/aws/sqs", "alias/aws/sqs" }),
			plan.Settings{Via: plan.ViaVisibility}, map[string]string{orders: consume, dead: sendDead},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := plan.IAM(features(t, tt.queue, tt.settings))
			if diff := cmp.Diff(tt.want, actions(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(d.Statement) != len(tt.want) {
				t.Errorf("%d statements for %d resources", len(d.Statement), len(tt.want))
			}
		})
	}
}

// TestIAMConditions: keys may be used through SQS of the key's region alone, and
// keys known by an alias are found by it.
func TestIAMConditions(t *testing.T) {
	via := func(service string) map[string]string { return map[string]string{"kms:ViaService": service} }
	for _, tt := range []struct {
		arn, key  string
		resource  string
		condition map[string]map[string]string
	}{
		{
			orders, "alias/orders", "arn:aws:kms:us-east-1:123456789012:key/*",
			map[string]map[string]string{
				"StringEquals":             via("sqs.us-east-1.amazonaws.com"),
				"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/orders"},
			},
		},
		{
			orders, "arn:aws:kms:us-east-1:210987654321:alias/orders", "arn:aws:kms:us-east-1:210987654321:key/*",
			map[string]map[string]string{
				"StringEquals":             via("sqs.us-east-1.amazonaws.com"),
				"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/orders"},
			},
		},
		{
			"arn:aws-cn:sqs:cn-north-1:123456789012:orders", key, "arn:aws-cn:kms:cn-north-1:123456789012:key/" + key,
			map[string]map[string]string{"StringEquals": via("sqs.cn-north-1.amazonaws.com.cn")},
		},
		{
			"arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders", key, "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/" + key,
			map[string]map[string]string{"StringEquals": via("sqs.us-gov-west-1.amazonaws.com")},
		},
	} {
		d := plan.IAM(features(t, plan.Queue{ARN: tt.arn, KMSKey: tt.key}, plan.Settings{}))
		var got []plan.Statement
		for _, s := range d.Statement {
			if strings.HasPrefix(s.Action[0], "kms:") {
				got = append(got, s)
			} else if s.Condition != nil {
				t.Errorf("%s has the condition %v", s.Resource, s.Condition)
			}
		}
		want := []plan.Statement{{
			Effect: "Allow", Action: []string{"kms:Decrypt", "kms:GenerateDataKey"}, Resource: tt.resource, Condition: tt.condition,
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", tt.arn, tt.key, diff)
		}
	}
}

// TestIAMTwoAliases: two keys known by their aliases are two statements, though
// their resource is spelled the same.
func TestIAMTwoAliases(t *testing.T) {
	q := with(sound, func(q *plan.Queue) { q.KMSKey, q.DeadLetterKMSKey = "alias/orders", "alias/dead" })
	d := plan.IAM(features(t, q, plan.Settings{Via: plan.ViaVisibility}))
	got := map[string][]string{}
	for _, s := range d.Statement {
		if alias := s.Condition["ForAnyValue:StringEquals"]["kms:ResourceAliases"]; alias != "" {
			got[alias] = s.Action
		}
	}
	want := map[string][]string{"alias/orders": {"kms:Decrypt"}, "alias/dead": {"kms:Decrypt", "kms:GenerateDataKey"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIAMDocument is the policy as AWS reads it.
func TestIAMDocument(t *testing.T) {
	d := plan.IAM(features(t, with(sound, func(q *plan.Queue) { q.KMSKey = key }), plan.Settings{}))
	var got map[string]any
	if err := json.Unmarshal([]byte(d.String()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Statement", "Version"}, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if got["Version"] != "2012-10-17" {
		t.Errorf("version %v", got["Version"])
	}
	for _, s := range got["Statement"].([]any) {
		s := s.(map[string]any)
		members := slices.Sorted(maps.Keys(s))
		want := []string{"Action", "Effect", "Resource"}
		if strings.Contains(s["Resource"].(string), ":kms:") {
			want = []string{"Action", "Condition", "Effect", "Resource"}
		}
		if diff := cmp.Diff(want, members); diff != "" {
			t.Errorf("statement %v (-want +got):\n%s", s, diff)
		}
	}
}

// TestFeaturesAreWhatTheConsumerCalls holds the permissions and the consumer's
// client together: a call without a permission fails in production, a permission
// without a call is too much.
func TestFeaturesAreWhatTheConsumerCalls(t *testing.T) {
	calls := map[string]bool{}
	for m := range reflect.TypeFor[reprise.Client]().Methods() {
		calls["sqs:"+strings.TrimSuffix(m.Name, "Batch")] = true
	}
	permitted := map[string]bool{}
	for _, f := range features(t, sound, plan.Settings{}) {
		for _, p := range f.Needs {
			permitted[p.Action] = true
		}
	}
	if diff := cmp.Diff(calls, permitted); diff != "" {
		t.Errorf("(-calls of reprise.Client +permissions):\n%s", diff)
	}
}

func TestRedriveFeatures(t *testing.T) {
	q := with(sound, func(q *plan.Queue) { q.KMSKey, q.DeadLetterKMSKey = "orders-key", "dead-key" })
	found, err := plan.RedriveFeatures(q, plan.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		dead: "sqs:CancelMessageMoveTask sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes " +
			"sqs:ListMessageMoveTasks sqs:ReceiveMessage sqs:StartMessageMoveTask",
		orders: "sqs:SendMessage",
		"arn:aws:kms:us-east-1:123456789012:key/dead-key":   "kms:Decrypt",
		"arn:aws:kms:us-east-1:123456789012:key/orders-key": "kms:Decrypt kms:GenerateDataKey",
	}
	if diff := cmp.Diff(want, actions(plan.IAM(found))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := plan.RedriveFeatures(plan.Queue{ARN: orders}, plan.Settings{}); err == nil || !strings.Contains(err.Error(), "no dead-letter queue") {
		t.Errorf("without a dead-letter queue: %v", err)
	}
}

func TestFeaturesOfWhatIsNotKnown(t *testing.T) {
	type unknown struct {
		queue    plan.Queue
		settings plan.Settings
		says     []string
	}
	var incomplete []unknown
	for i := range strings.Split(orders, ":") {
		parts := strings.Split(orders, ":")
		parts[i] = ""
		arn := strings.Join(parts, ":")
		incomplete = append(incomplete, unknown{plan.Queue{ARN: arn}, plan.Settings{}, []string{"Queue.ARN", arn}})
	}
	incomplete = append(incomplete, unknown{plan.Queue{ARN: orders + ":more"}, plan.Settings{}, []string{"Queue.ARN", ":more"}})
	for _, tt := range append(incomplete, []unknown{
		{plan.Queue{}, plan.Settings{}, []string{"Queue.ARN", `""`, "QueueArn attribute"}},
		{plan.Queue{ARN: "https://sqs.us-east-1.amazonaws.com/123456789012/orders"}, plan.Settings{}, []string{"Queue.ARN", "https:"}},
		{plan.Queue{ARN: "arn:aws:sns:us-east-1:123456789012:orders"}, plan.Settings{}, []string{"Queue.ARN", "sns"}},
		{plan.Queue{ARN: orders, DeadLetterARN: "dead"}, plan.Settings{}, []string{"Queue.DeadLetterARN", `"dead"`}},
		{plan.Queue{ARN: orders}, plan.Settings{DeadLetterURL: "dead"}, []string{"Settings.DeadLetterURL", `"dead"`, "GetQueueUrl"}},
	}...) {
		for name, list := range map[string]func(plan.Queue, plan.Settings) ([]plan.Feature, error){"Features": plan.Features, "RedriveFeatures": plan.RedriveFeatures} {
			_, err := list(tt.queue, tt.settings)
			if err == nil {
				t.Errorf("%s accepts %+v, %+v", name, tt.queue, tt.settings)
				continue
			}
			for _, word := range tt.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %v; it does not say %s", name, err, word)
				}
			}
		}
	}
}

// TestDenied: a call that is denied is reported with the features that are off for it.
func TestDenied(t *testing.T) {
	all := features(t, with(sound, func(q *plan.Queue) { q.KMSKey = key }), plan.Settings{ByName: true})
	for _, tt := range []struct {
		action, resource string
		want             map[string]plan.Severity // by the first word of the problem
	}{
		{"sqs:SendMessage", orders, map[string]plan.Severity{"requeue": plan.Warning}},
		{"sqs:SendMessage", dead, map[string]plan.Severity{"dead-letter": plan.Warning}},
		{"kms:Decrypt", keyARN, map[string]plan.Severity{"receive": plan.Error, "requeue": plan.Warning}},
		{"sqs:DeleteMessage", orders, map[string]plan.Severity{"delete": plan.Error}},
		{"sqs:ChangeMessageVisibility", orders, map[string]plan.Severity{"retry": plan.Error}},
		{"sqs:GetQueueUrl", orders, map[string]plan.Severity{"find-queue": plan.Error}},
		{"sqs:PurgeQueue", orders, map[string]plan.Severity{}},
	} {
		got := map[string]plan.Severity{}
		for _, f := range plan.Denied(all, tt.action, tt.resource) {
			feature, _, _ := strings.Cut(f.Problem, " ")
			got[feature] = f.Severity
			if f.Code != plan.CodePermission || !strings.Contains(f.Problem, tt.action+" on "+tt.resource+" is denied") || f.Remedy == "" {
				t.Errorf("finding %v", f)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", tt.action, tt.resource, diff)
		}
	}
}

// TestEveryLackIsToldApart: features have names of their own and say what is
// lost.
func TestEveryLackIsToldApart(t *testing.T) {
	all := features(t, sound, plan.Settings{ByName: true})
	redrive, err := plan.RedriveFeatures(sound, plan.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range slices.Concat(all, redrive) {
		if f.Name == "" || f.Without == "" || len(f.Needs) == 0 || seen[f.Name] {
			t.Errorf("feature %+v", f)
		}
		seen[f.Name] = true
	}
}
