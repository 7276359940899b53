package dashboard

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestSearchOfAQueue: each field of the form means what it says, and the next page is one of the same search.
func TestSearchOfAQueue(t *testing.T) {
	asked := url.Values{"state": {"in flight"}, "text": {"x & y"}, "id": {" m-1 "}, "group": {"g"}, "where": {"a=1"}, "older": {"2h"}}
	s := searchOf(asked)
	if want := (operate.Criteria{IDs: []string{"m-1"}, Group: "g", Body: "(?i)x & y", Where: []string{"a=1"}, OlderThan: "2h"}); !reflect.DeepEqual(s.criteria(), want) {
		t.Errorf("the selection is %+v, want %+v", s.criteria(), want)
	}
	list := messageList{Queue: "orders", Search: s}
	list.Next = "m-50"
	for after, text := range map[string]string{"m-50": list.NextURL(), "": list.FirstURL()} {
		next, err := url.Parse(text)
		if err != nil || next.Path != "/ui/queues/orders/messages" || next.Query().Get("after") != after || searchOf(next.Query()) != s {
			t.Errorf("%v: the page after %q is %s, of the search %+v, want %+v", err, after, text, searchOf(next.Query()), s)
		}
	}
}
