package load_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
)

// Each viewer sees its page and asks for the figures of its charts; all end when they are closed.
func TestViewers(t *testing.T) {
	var streams, figures atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			streams.Add(1)
			fmt.Fprint(w, "data: all is well\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			streams.Add(-1)
		case "/figures":
			figures.Add(1)
			fmt.Fprint(w, "{}")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	addr := web.Listener.Addr().String()
	viewers, err := load.OpenViewers(addr, 6, load.Page{Stream: "/page"}, load.Page{Stream: "/page", Figures: "/figures"})
	if err != nil {
		t.Fatal(err)
	}
	if n := streams.Load(); n != 6 {
		t.Errorf("%d viewers look, want 6", n)
	}
	got, err := viewers.Close()
	if err != nil {
		t.Error(err)
	}
	if got == 0 {
		t.Error("the viewers were sent nothing")
	}
	web.Close() // when all requests have ended
	if n := streams.Load(); n != 0 {
		t.Errorf("%d viewers look after they were closed", n)
	}
}

// A viewer that cannot see its page, or whose page ends, is an error: a benchmark would measure nothing.
func TestViewersThatSeeNothing(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ends" {
			fmt.Fprint(w, "data: once\n\n")
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(web.Close)
	addr := web.Listener.Addr().String()
	if _, err := load.OpenViewers(addr, 2, load.Page{Stream: "/absent"}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the error of a page that is absent is %v", err)
	}
	viewers, err := load.OpenViewers(addr, 1, load.Page{Stream: "/ends"})
	for err == nil && viewers.Problem() == nil { // the page ends at some time after it was seen
		time.Sleep(time.Millisecond)
	}
	if err == nil {
		_, err = viewers.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the stream has ended") {
		t.Errorf("the error of a page that ends is %v", err)
	}
}
