package daemon_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

func TestParseQueue(t *testing.T) {
	for _, test := range []struct {
		text string
		want daemon.Queue
	}{
		{"orders", daemon.Queue{Name: "orders", Attributes: map[string]string{}}},
		{"q,VisibilityTimeout=60,DelaySeconds=0", daemon.Queue{Name: "q", Attributes: map[string]string{"VisibilityTimeout": "60", "DelaySeconds": "0"}}},
		{"q,dead-letter=d", daemon.Queue{Name: "q", Attributes: map[string]string{}, DeadLetter: "d"}},
		{"q,max-receives=1000,dead-letter=d", daemon.Queue{Name: "q", Attributes: map[string]string{}, DeadLetter: "d", MaxReceives: 1000}},
		{
			`q,RedriveAllowPolicy={"redrivePermission":"byQueue","sourceQueueArns":["a=b","c"]},DelaySeconds=3`,
			daemon.Queue{Name: "q", Attributes: map[string]string{
				"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["a=b","c"]}`,
				"DelaySeconds":       "3",
			}},
		},
	} {
		got, err := daemon.ParseQueue(test.text)
		if err != nil {
			t.Errorf("ParseQueue(%q): %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("ParseQueue(%q) (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestParseQueueBad(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "begin with a name",
		",DelaySeconds=1":                     "begin with a name",
		"DelaySeconds=1":                      "begin with a name",
		"q,":                                  "attribute=value",
		"q,DelaySeconds":                      "attribute=value",
		"q,DelaySeconds=":                     "attribute=value",
		"q,=1":                                "attribute=value",
		"q,dead-letter=d,max-receives=0":      "1 to 1000",
		"q,dead-letter=d,max-receives=many":   `"many"`,
		"q,dead-letter=d,max-receives=100000": "1 to 1000",
		"q,max-receives=5":                    "dead-letter=q-dead",
	} {
		if q, err := daemon.ParseQueue(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseQueue(%q) = %+v, %v; want an error with %q", text, q, err, want)
		}
	}
}
