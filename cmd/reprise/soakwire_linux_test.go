package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire is between the consumers and the server of the soak, and notes what both have said:
// an acknowledgement counts from when the server has given it.
type wire struct {
	server string // its address
	client *http.Transport

	mu       sync.Mutex
	receives map[string][]*receipt // by message id, in the order in which they came
	handles  map[string]*receipt
	deletes  map[string][]deletion // acknowledged, by message id
	problems []string
}

// receipt is a message that was received.
type receipt struct {
	key, id string
	role    string
	count   int   // ApproximateReceiveCount
	asked   int64 // when its request came
	at      int64 // when its reply was read
}

// deletion is an acknowledged delete.
type deletion struct {
	of *receipt // whose handle it named
	at int64
}

func newWire(server string) *wire {
	return &wire{
		server: server, client: &http.Transport{MaxIdleConnsPerHost: 100},
		receives: make(map[string][]*receipt), handles: make(map[string]*receipt), deletes: make(map[string][]deletion),
	}
}

// endpoint returns the URL at which role reaches the server.
func (w *wire) endpoint(t *testing.T, role string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.pass(out, r, role) }))
	t.Cleanup(s.Close)
	return s.URL
}

func (w *wire) pass(out http.ResponseWriter, r *http.Request, role string) {
	asked := time.Now().UnixNano()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // who asks was killed
	}
	request := r.Clone(r.Context())
	request.URL.Scheme, request.URL.Host, request.RequestURI = "http", w.server, ""
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	reply, err := w.client.RoundTrip(request)
	if err != nil {
		panic(http.ErrAbortHandler) // the server was killed
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if reply.StatusCode == http.StatusOK {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		w.note(role, action, body, answer, asked)
	}
	for name, values := range reply.Header {
		out.Header()[name] = values
	}
	out.WriteHeader(reply.StatusCode)
	_, _ = out.Write(answer) // who asks may have been killed
}

// note notes what a request and its reply said.
func (w *wire) note(role, action string, body, answer []byte, asked int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now().UnixNano()
	var request struct {
		QueueUrl      string
		ReceiptHandle string
		Entries       []struct{ Id, ReceiptHandle string }
	}
	var reply struct {
		Messages []struct {
			MessageId, ReceiptHandle, Body string
			Attributes                     map[string]string
		}
		Successful []struct{ Id string }
	}
	for _, text := range []struct {
		from []byte
		to   any
	}{{body, &request}, {answer, &reply}} {
		if err := json.Unmarshal(text.from, text.to); err != nil && len(text.from) > 0 {
			w.problems = append(w.problems, action+": "+err.Error())
		}
	}
	if !strings.HasSuffix(request.QueueUrl, "/"+soakQueue) {
		return
	}
	switch action {
	case "ReceiveMessage":
		for _, m := range reply.Messages {
			count, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
			if err != nil || len(m.Body) < soakKey {
				w.problems = append(w.problems, "a receive has no receive count, or not our body: "+m.MessageId)
				continue
			}
			r := &receipt{key: strings.TrimSpace(m.Body[:soakKey]), id: m.MessageId, role: role, count: count, asked: asked, at: now}
			w.receives[r.id] = append(w.receives[r.id], r)
			w.handles[m.ReceiptHandle] = r
		}
	case "DeleteMessage":
		w.deleted(request.ReceiptHandle, now)
	case "DeleteMessageBatch":
		for _, done := range reply.Successful {
			for _, entry := range request.Entries {
				if entry.Id == done.Id {
					w.deleted(entry.ReceiptHandle, now)
				}
			}
		}
	}
}

func (w *wire) deleted(handle string, now int64) {
	r := w.handles[handle]
	if r == nil {
		w.problems = append(w.problems, "a delete was acknowledged whose receipt handle was never given out")
		return
	}
	w.deletes[r.id] = append(w.deletes[r.id], deletion{r, now})
}
