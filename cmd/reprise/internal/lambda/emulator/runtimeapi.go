package emulator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
const (
	headerRequestID     = "Lambda-Runtime-Aws-Request-Id"
	headerDeadline      = "Lambda-Runtime-Deadline-Ms"
	headerARN           = "Lambda-Runtime-Invoked-Function-Arn"
	headerTrace         = "Lambda-Runtime-Trace-Id"
	headerClientContext = "Lambda-Runtime-Client-Context"
	headerErrorType     = "Lambda-Runtime-Function-Error-Type"
	headerErrorBody     = "Lambda-Runtime-Function-Error-Body" // a trailer
)

// runtimeAPI serves the process at the address host:port that only this process gets, and refuses
// web pages, which could otherwise take its events and answer them.
func (i *instance) runtimeAPI(host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", i.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", i.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", i.failed)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", i.initFailed)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		i.log(SourceTrouble, "", fmt.Sprintf("%s %s is not served locally: extensions, telemetry and SnapStart are not emulated", r.Method, r.URL.Path))
		refuse(w, http.StatusNotFound, "NotSupported", r.URL.Path+" is not served locally")
	})
	guard, _ := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{ // fails for origins only
		Host: host,
		OnRefused: func(r *http.Request, err error, unreported int) {
			i.log(SourceTrouble, "", fmt.Sprintf("%s %.100q was refused, and %d requests before it: %v", r.Method, r.URL.Path, unreported, err))
		},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := guard.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "AccessDenied", err.Error())
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// next ends the invoke that the caller has answered, and waits for another.
func (i *instance) next(w http.ResponseWriter, r *http.Request) {
	if inv := i.settle(); inv != nil {
		i.report(inv, time.Now())
		i.pool.finish(inv)
	}
	select {
	case inv := <-i.queue:
		if r.Context().Err() == nil && i.ctx.Err() == nil {
			i.deliver(w, inv)
			return
		}
		i.queue <- inv // there is room: the queue is new
	case <-i.ctx.Done():
	case <-r.Context().Done(): // the process has closed the connection
	}
	// The process is gone or about to be killed: it would only log an answer as an error.
	<-r.Context().Done()
}

// settle removes the invoke that was answered first, if any: an invoke may still fail until the
// process asks for the next one.
func (i *instance) settle() *invocation {
	i.output.drain()
	p := i.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !i.ready {
		i.ready = true
		i.init.Stop()
		i.cold = time.Since(i.begun)
	}
	if len(i.answered) == 0 {
		return nil
	}
	inv := i.answered[0]
	i.answered = i.answered[1:]
	delete(i.active, inv.id)
	inv.timer.Stop()
	p.active--
	if len(i.active) == 0 {
		p.rest(i)
	}
	p.admit()
	return inv
}

// deliver sends inv to the process and starts its timeout.
func (i *instance) deliver(w http.ResponseWriter, inv *invocation) {
	timeout := i.pool.function.Timeout
	beginning := fmt.Sprintf("START RequestId: %s Version: %s", inv.id, latest)
	i.pool.mu.Lock()
	if i.active[inv.id] != inv {
		// The process has died, and inv has ended or belongs to another instance.
		i.pool.mu.Unlock()
		refuseDead(w)
		return
	}
	inv.taken = time.Now()
	inv.cold, i.cold = i.cold, 0
	inv.timer = time.AfterFunc(timeout, func() { i.expire(inv) })
	inv.tail.add(beginning)
	i.pool.mu.Unlock()
	i.log(SourcePlatform, inv.id, beginning)

	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(inv.payload)))
	header.Set(headerRequestID, inv.id)
	header.Set(headerDeadline, strconv.FormatInt(inv.taken.Add(timeout).UnixMilli(), 10))
	header.Set(headerARN, inv.arn)
	header.Set(headerTrace, inv.trace)
	if inv.clientContext != "" {
		header.Set(headerClientContext, inv.clientContext)
	}
	// A process that does not read the event ends or times out.
	_, _ = w.Write(inv.payload)
}

// expire ends inv, whose function has taken too long. The process is killed when its other
// invokes have ended; those that it has not taken go to another instance.
func (i *instance) expire(inv *invocation) {
	i.output.drain()
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	if i.active[inv.id] != inv {
		return
	}
	if !inv.answered {
		i.timeOut(inv)
		i.answered = append(i.answered, inv)
	}
	i.ending = true
	i.pool.forget(i)
	for _, untaken := range i.untaken() {
		delete(i.active, untaken.id)
		i.pool.place(untaken)
	}
	i.endIfAnswered()
}

// untaken empties the queue; the pool's lock is held.
func (i *instance) untaken() []*invocation {
	var all []*invocation
	for {
		select {
		case inv := <-i.queue:
			all = append(all, inv)
		default:
			return all
		}
	}
}

// endIfAnswered kills an ending instance without unanswered invokes; the pool's lock is held.
func (i *instance) endIfAnswered() {
	if i.ending && len(i.answered) == len(i.active) {
		i.kill()
	}
}

// response receives the function's result.
func (i *instance) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResponse))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	if err != nil && !tooLarge {
		refuse(w, http.StatusBadRequest, "InvalidRequest", "reading the response: "+err.Error())
		return
	}
	i.answer(w, r, func(inv *invocation) int {
		if tooLarge {
			inv.fail(failureTooLarge, fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse))
			return http.StatusRequestEntityTooLarge
		}
		// A runtime that streams its response reports a failure in trailers.
		if kind := r.Trailer.Get(headerErrorType); kind != "" {
			text, err := base64.StdEncoding.DecodeString(r.Trailer.Get(headerErrorBody))
			if err != nil {
				inv.fail(kind, "the runtime gave no readable reason")
			} else {
				inv.answer(text, kind)
			}
			return http.StatusAccepted
		}
		inv.answer(body, "")
		return http.StatusAccepted
	})
}

// failed receives the function's error.
func (i *instance) failed(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResponse))
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequest", "reading the error: "+err.Error())
		return
	}
	i.answer(w, r, func(inv *invocation) int {
		inv.answer(body, errorType(r))
		return http.StatusAccepted
	})
}

// answer calls with, which sets the result of the invoke that r names, and replies with the
// status that with returns. The first answer counts.
func (i *instance) answer(w http.ResponseWriter, r *http.Request, with func(*invocation) int) {
	id := r.PathValue("id")
	i.pool.mu.Lock()
	inv := i.active[id]
	if inv == nil || inv.taken.IsZero() || inv.answered {
		i.pool.mu.Unlock()
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "no invoke "+id+" waits for an answer")
		return
	}
	status := with(inv)
	i.answered = append(i.answered, inv)
	i.endIfAnswered()
	i.pool.mu.Unlock()
	if status != http.StatusAccepted {
		refuse(w, status, "RequestEntityTooLarge", fmt.Sprintf("the response has more than %d bytes", maxResponse))
		return
	}
	accept(w)
}

// initFailed receives the error of the function's initialisation. The process is expected to end
// by itself soon.
func (i *instance) initFailed(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResponse))
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequest", "reading the error: "+err.Error())
		return
	}
	i.pool.mu.Lock()
	i.initFail, i.initKind = body, errorType(r)
	if i.init.Stop() {
		i.init.Reset(initErrorGrace)
	}
	i.pool.mu.Unlock()
	accept(w)
}

// errorType returns the runtime's type of the error that it posts.
func errorType(r *http.Request) string {
	if kind := r.Header.Get(headerErrorType); kind != "" {
		return kind
	}
	return failureUnknown
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`) // the process may have gone
}

func refuseDead(w http.ResponseWriter) {
	refuse(w, http.StatusInternalServerError, "Container", "the instance is being ended")
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The process may have gone.
	_ = json.NewEncoder(w).Encode(struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}{kind, message})
}
