package sqsserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// AdminPath is where the handler of Server.Admin expects its requests.
const AdminPath = "/_reprise/"

// Admin returns a handler for the tests of other programs, which sets the server's
// faults and its time:
//
//	GET    /_reprise/faults          all faults, with what they have seen and done
//	PUT    /_reprise/faults          {"queues": {"orders": [FAULT...]}} replaces them all
//	DELETE /_reprise/faults          clears them all
//	PUT    /_reprise/faults/QUEUE    [FAULT...] replaces those of a queue; "*" is every one
//	DELETE /_reprise/faults/QUEUE    clears those of a queue
//	GET    /_reprise/clock           the server's time
//	POST   /_reprise/clock           {"advance": "12h"} moves it on
//
// FAULT is a Fault in the form of its MarshalJSON. A success answers 200 with JSON;
// a mistake 400 with {"error": TEXT}, and nothing has changed. Faults for a queue that
// does not exist are a mistake, unless ?later=true says that it is created later.
//
// It answers only clients with a loopback address who call the server by a loopback name,
// through no proxy and from no web page. Others get 403. A request with one of the headers Origin,
// Forwarded, X-Forwarded-For, -Host and -Proto, X-Client-Ip, X-Real-Ip and Via, even an empty one,
// counts as coming from a page or a proxy; a proxy that adds none of them cannot be distinguished
// from a program. It requires no signature, whatever Config.Credentials are.
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request) (any, error)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+AdminPath+path, func(w http.ResponseWriter, r *http.Request) {
			reply, err := do(r)
			writeAdmin(w, http.StatusBadRequest, reply, err)
		})
	}
	handle("GET {$}", func(*http.Request) (any, error) {
		return nil, errors.New("name what to see or to change: " + AdminPath + "faults or " + AdminPath + "clock")
	})
	handle("GET faults", func(*http.Request) (any, error) { return s.adminFaults(), nil })
	handle("PUT faults", s.adminReplaceFaults)
	handle("DELETE faults", func(*http.Request) (any, error) {
		err := s.ReplaceFaults(nil)
		return s.adminFaults(), err
	})
	handle("PUT faults/{queue}", s.adminSetFaults)
	handle("DELETE faults/{queue}", func(r *http.Request) (any, error) {
		err := s.SetFaults(r.PathValue("queue"))
		return s.adminFaults(), err
	})
	handle("GET clock", func(*http.Request) (any, error) { return s.adminClock(), nil })
	handle("POST clock", s.adminAdvance)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.pages.report(r, s.fromHere(r)); err != nil {
			writeAdmin(w, http.StatusForbidden, nil, err)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// fromHere refuses requests from other machines and from all web pages, even those that may use
// the queues: a page may send them without its user's knowledge.
func (s *Server) fromHere(r *http.Request) error {
	if err := CheckLocal(r, AdminPath); err != nil {
		return err
	}
	if _, present := r.Header["Origin"]; present || slices.Contains(r.Header["Sec-Fetch-Site"], "same-site") {
		return fmt.Errorf("%s is not for web pages, whatever their origin: call it from a program", AdminPath)
	}
	return s.pages.judge(r)
}

// faultsForm is all faults as the wire has them.
type faultsForm[F any] struct {
	Queues map[string][]F `json:"queues"`
}

func (s *Server) adminFaults() any { return faultsForm[FaultCount]{s.AllFaults()} }

func (s *Server) adminReplaceFaults(r *http.Request) (any, error) {
	var form faultsForm[Fault]
	if err := readStrict(r, &form); err != nil {
		return nil, err
	}
	if err := s.checkFaultTargets(r, slices.Sorted(maps.Keys(form.Queues))...); err != nil {
		return nil, err
	}
	err := s.ReplaceFaults(form.Queues)
	return s.adminFaults(), err
}

func (s *Server) adminSetFaults(r *http.Request) (any, error) {
	var faults []Fault
	if err := readStrict(r, &faults); err != nil {
		return nil, err
	}
	queue := r.PathValue("queue")
	if err := s.checkFaultTargets(r, queue); err != nil {
		return nil, err
	}
	err := s.SetFaults(queue, faults...)
	return s.adminFaults(), err
}

// checkFaultTargets finds a queue that does not exist, such as one whose name is
// misspelt, unless the request is for queues that are created later.
func (s *Server) checkFaultTargets(r *http.Request, queues ...string) error {
	switch later := r.URL.Query().Get("later"); later {
	case "true":
		return nil
	case "", "false":
	default:
		return fmt.Errorf("later is %q: write true or false", later)
	}
	missing := s.MissingQueues(queues...)
	if len(missing) == 0 {
		return nil
	}
	names, err := s.queueNames(func(*queue) bool { return true })
	if err != nil {
		return err
	}
	existing := "there is none"
	if len(names) > 0 {
		var texts []string
		for _, name := range names {
			texts = append(texts, name.name)
		}
		slices.Sort(texts)
		if texts = slices.Compact(texts); len(texts) > 10 {
			texts = append(texts[:10], "…")
		}
		existing = "there are " + strings.Join(texts, ", ")
		if len(texts) == 1 {
			existing = "there is " + texts[0]
		}
	}
	return fmt.Errorf("queue %q does not exist (%s): correct the name, create the queue first, or add ?later=true if it is created later", missing[0], existing)
}

type clockForm struct {
	Now     time.Time `json:"now"`
	Scale   float64   `json:"scale"`
	Virtual bool      `json:"virtual"` // the time differs from the machine's
}

func (s *Server) adminClock() any {
	return clockForm{Now: s.Now().UTC(), Scale: s.clock.scale(), Virtual: s.clock.setting.Load() != nil}
}

func (s *Server) adminAdvance(r *http.Request) (any, error) {
	var form struct {
		Advance string `json:"advance"`
	}
	if err := readStrict(r, &form); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(form.Advance)
	if err != nil {
		return nil, fmt.Errorf(`advance is %q: write a duration like "90s" or "12h"`, form.Advance)
	}
	err = s.Advance(d)
	return s.adminClock(), err
}

// maxAdminBody is far more than a request to Admin needs.
const maxAdminBody = 1 << 20

// readStrict reads the body of a request, one JSON value. A member that into does not have, or
// text after the value, is an error.
func readStrict(r *http.Request, into any) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAdminBody))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(into); {
	case errors.Is(err, io.EOF):
		return errors.New("the body is empty: send JSON")
	case err != nil:
		return fmt.Errorf("the body cannot be understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body has text after its JSON value")
	}
	return nil
}

func writeAdmin(w http.ResponseWriter, failure int, reply any, err error) {
	status := http.StatusOK
	if err != nil {
		status, reply = failure, map[string]string{"error": strings.TrimPrefix(err.Error(), "sqsserver: ")}
	}
	text, err := json.MarshalIndent(reply, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error means that the client has gone
}
