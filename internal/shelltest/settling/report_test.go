package settling

import (
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
)

// TestReportOfCopies: a report counts copies separately from the dead letters before them.
func TestReportOfCopies(t *testing.T) {
	var r reprise.Report
	r.Counts.Retried, r.Counts.Requeued = 1, 1
	if got := r.String(); !strings.Contains(got, "1 retried, 0 released, 0 dead-lettered, 1 requeued as copies;") {
		t.Errorf("the report says %q", got)
	}
}
