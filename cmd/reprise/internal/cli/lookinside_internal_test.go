package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestInsideLookAtMostSoMany: a look at the messages that a server shows takes as many as were asked for, also if these are
// more than it asks for at once, and not one more. It goes on behind messages that were sent after its start, which take
// the places of those that have gone.
func TestInsideLookAtMostSoMany(t *testing.T) {
	const has = 1700
	sent := func(i int) time.Time {
		if i%insidePage == insidePage-1 {
			return time.Now().Add(time.Hour)
		}
		return time.Now().Add(-time.Hour)
	}
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || limit < 1 {
			t.Errorf("limit is %q", r.URL.Query().Get("limit"))
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("after")) // "": the first page
		page := admin.Messages{At: time.Now()}
		for i := from; i < min(from+limit, has); i++ {
			page.Messages = append(page.Messages, admin.Message{Message: operate.Message{ID: strconv.Itoa(i), Sent: sent(i)}, State: "visible"})
		}
		if page.Looked = len(page.Messages); from+limit < has {
			page.Next = strconv.Itoa(from + limit)
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer process.Close()
	server, err := admin.NewClient(process.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]int{1: 1, insidePage - 1: insidePage - 1, insidePage: insidePage, insidePage + 200: insidePage + 200, 2 * insidePage: 2 * insidePage, has + 1: has, 0: has} {
		l := &look{app: &app{ctx: t.Context(), drain: make(chan struct{})}, inside: &insideLook{server: server}, target: target{url: process.URL + "/000000000000/orders"}}
		l.pass.Most = most
		next := 0
		outcome, err := l.each(func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
			for i := range batch {
				if batch[i].ID != strconv.Itoa(next) {
					t.Fatalf("message %d has the id %s", next, batch[i].ID)
				}
				next++
			}
			return nil, nil
		})
		if err != nil || next != want || outcome.Looked != want || outcome.Partial != "" {
			t.Errorf("of %d messages at most %d: %d are shown, want %d; %+v, %v", has, most, next, want, outcome, err)
		}
	}
}
