package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/dashboard"
)

// functions are those of a process that is made up.
type functions struct {
	all   []dashboard.Function
	lines []dashboard.Line
}

func (f *functions) Functions() []dashboard.Function { return f.all }
func (f *functions) Lines() []dashboard.Line         { return f.lines }

// TestLambda shows functions, what waits for a retry with its last error, and logs, inert.
func TestLambda(t *testing.T) {
	now := time.Now()
	f := &functions{all: []dashboard.Function{
		{Name: "charge", Runtime: "python3.13", Running: 1, Waiting: 2, Instances: 3, Invokes: 1234567, Failed: 5, Throttled: 6, Events: 103, Next: []dashboard.Event{
			{ID: "0123456789abcdef", Accepted: now.Add(-time.Hour), Invokes: 1, Error: "Refused: <script>alert(1)</script>", Due: now.Add(90 * time.Second)},
			{ID: "running-for-the-first-time", Accepted: now},
			{ID: "fedcba9876543210", Accepted: now.Add(-time.Hour), Invokes: 2},
		}},
		{Name: "idle", Runtime: "nodejs24.x"},
	}}
	for i := range 300 {
		f.lines = append(f.lines, dashboard.Line{Time: now, Function: []string{"charge", "idle"}[i%2], Text: fmt.Sprintf("<b>line %d</b>", i), Platform: i%3 == 0})
	}
	f.lines = append(f.lines, dashboard.Line{Time: now, Text: "an event was lost", Trouble: true})
	s := serveWith(t, nil, func(cfg *dashboard.Config) { cfg.Functions = f })
	page := s.do("GET", "/ui/lambda", nil).text
	for _, want := range []string{
		"charge", "python3.13", "1,234,567", "01234567", "in 1m", "Refused: &lt;script&gt;", "fedcba98", ">now<", "2 times",
		"100 more events are not listed", "an event was lost", "&lt;b&gt;line 299&lt;/b&gt;", `>Lambda</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "running-") || strings.Contains(page, "line 100<") {
		t.Error("the page has an event that waits for nothing, or more lines than it should")
	}
	if newest, older := strings.Index(page, "line 299"), strings.Index(page, "line 298"); newest < 0 || older < newest {
		t.Errorf("the newest line is at %d, the one before at %d: want the newest first", newest, older)
	}
	if t.Failed() {
		t.Log(page)
	}
	one := s.do("GET", "/ui/lambda?function=idle", nil).text
	if strings.Contains(one, "line 298") || !strings.Contains(one, "line 299") || !strings.Contains(one, "Log of idle") {
		t.Errorf("the log of one function:\n%s", one)
	}

	none := serve(t, func(*admin.Config) {})
	if got := none.do("GET", "/ui/lambda", nil); got.StatusCode != 404 {
		t.Errorf("without functions there is a page: %d", got.StatusCode)
	}
	if strings.Contains(none.do("GET", "/", nil).text, "/ui/lambda") {
		t.Error("without functions the page is in the navigation")
	}
}
