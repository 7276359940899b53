package emulator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// The invocation types of the Invoke API.
const (
	typeSync   = "RequestResponse"
	typeEvent  = "Event"
	typeDryRun = "DryRun"
)

// newRoutes returns the Invoke API, and the actions that clients call before they invoke.
// https://docs.aws.amazon.com/lambda/latest/api/
func (l *Lambda) newRoutes() http.Handler {
	mux := http.NewServeMux()
	for pattern, action := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /2015-03-31/functions/{name}/invocations":                    l.serveInvoke,
		"GET /2015-03-31/functions":                                        l.serveList,
		"GET /2015-03-31/functions/{$}":                                    l.serveList,
		"GET /2015-03-31/functions/{name}":                                 l.serveFunction,
		"GET /2015-03-31/functions/{name}/configuration":                   l.serveConfiguration,
		"GET /2019-09-30/functions/{name}/concurrency":                     l.serveConcurrency,
		"POST /2021-11-15/functions/{name}/response-streaming-invocations": refuseStreaming,
		"/": refuseAction,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amzn-Requestid", newRequestID())
			if err := action(w, r); err != nil {
				writeError(w, err)
			}
		})
	}
	return mux
}

// serveInvoke is the action Invoke.
func (l *Lambda) serveInvoke(w http.ResponseWriter, r *http.Request) error {
	name, arn, err := l.cfg.resolve(r.PathValue("name"), r.URL.Query().Get("Qualifier"))
	if err != nil {
		return err
	}
	if _, known := l.function(name); !known {
		return notFound("Function not found: " + arn)
	}
	kind, limit := r.Header.Get("X-Amz-Invocation-Type"), maxSyncPayload
	switch kind {
	case "", typeSync, typeDryRun:
	case typeEvent:
		limit = maxAsyncPayload
	default:
		return invalid("X-Amz-Invocation-Type is %q: pass RequestResponse, Event or DryRun", kind)
	}
	inv, err := readInvocation(w, r, arn, limit)
	if err != nil {
		return err
	}
	w.Header().Set("X-Amzn-Requestid", inv.id)
	switch kind {
	case typeDryRun:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case typeEvent:
		if err := l.events.accept(name, inv); err != nil {
			return err
		}
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	result, err := l.invoke(r.Context(), name, inv)
	if err != nil {
		return err
	}
	writeResult(w, result, r.Header.Get("X-Amz-Log-Type") == "Tail")
	return nil
}

// readInvocation makes an invocation of a request.
func readInvocation(w http.ResponseWriter, r *http.Request, arn string, limit int) (*invocation, error) {
	// Some bytes beyond the limit are read, so that the error can name the size.
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*maxSyncPayload))
	if err != nil {
		if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestTooLargeException",
				Message: fmt.Sprintf("more than %d bytes of payload are too large for every invocation type", over.Limit)}
		}
		return nil, invalid("reading the payload: %v", err)
	}
	inv, err := newInvocation(arn, payload, limit)
	if err != nil {
		return nil, err
	}
	if trace := r.Header.Get("X-Amzn-Trace-Id"); trace != "" {
		inv.trace = trace
	}
	if encoded := r.Header.Get("X-Amz-Client-Context"); encoded != "" {
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !json.Valid(text) {
			return nil, &Error{Status: http.StatusBadRequest, Code: "InvalidRequestContentException",
				Message: "Client context must be a valid Base64-encoded JSON object."}
		}
		inv.clientContext = string(text)
	}
	return inv, nil
}

func writeResult(w http.ResponseWriter, result Result, withLog bool) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Amz-Executed-Version", latest)
	if result.FunctionError != "" {
		header.Set("X-Amz-Function-Error", result.FunctionError)
	}
	if withLog {
		header.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString(result.Log))
	}
	_, _ = w.Write(result.Payload) // the caller may have gone
}

// configuration is a function in the form of the actions that describe it: the members that are
// known here, and those that clients wait for.
type configuration struct {
	FunctionName     string
	FunctionArn      string
	Runtime          string
	Handler          string
	Timeout          int
	MemorySize       int
	Version          string
	PackageType      string
	State            string
	LastUpdateStatus string
	Environment      struct{ Variables map[string]string }
}

func (l *Lambda) configuration(f Function) configuration {
	c := configuration{
		FunctionName: f.Name, FunctionArn: l.cfg.functionARN(f.Name), Runtime: f.Runtime, Handler: f.Handler,
		Timeout: int((f.Timeout + time.Second - 1) / time.Second), MemorySize: f.MemorySize,
		Version: latest, PackageType: "Zip", State: "Active", LastUpdateStatus: "Successful",
	}
	c.Environment.Variables = f.Environment
	return c
}

// serveList is the action ListFunctions, in one page.
func (l *Lambda) serveList(w http.ResponseWriter, _ *http.Request) error {
	list := []configuration{}
	for _, f := range l.functions() {
		list = append(list, l.configuration(f))
	}
	return writeJSON(w, struct{ Functions []configuration }{list})
}

// serveFunction is the action GetFunction.
func (l *Lambda) serveFunction(w http.ResponseWriter, r *http.Request) error {
	f, err := l.named(r)
	if err != nil {
		return err
	}
	return writeJSON(w, struct {
		Configuration configuration
		Concurrency   concurrency
	}{l.configuration(f), reserved(f)})
}

// serveConfiguration is the action GetFunctionConfiguration.
func (l *Lambda) serveConfiguration(w http.ResponseWriter, r *http.Request) error {
	f, err := l.named(r)
	if err != nil {
		return err
	}
	return writeJSON(w, l.configuration(f))
}

// concurrency is the reserved concurrency; nil: none.
type concurrency struct {
	ReservedConcurrentExecutions *int `json:",omitempty"`
}

func reserved(f Function) concurrency {
	if f.Concurrency == 0 {
		return concurrency{}
	}
	return concurrency{new(max(f.Concurrency, 0))}
}

// serveConcurrency is the action GetFunctionConcurrency.
func (l *Lambda) serveConcurrency(w http.ResponseWriter, r *http.Request) error {
	f, err := l.named(r)
	if err != nil {
		return err
	}
	return writeJSON(w, reserved(f))
}

// named returns the function that the request's path names.
func (l *Lambda) named(r *http.Request) (Function, error) {
	name, arn, err := l.cfg.resolve(r.PathValue("name"), r.URL.Query().Get("Qualifier"))
	if err != nil {
		return Function{}, err
	}
	f, known := l.function(name)
	if !known {
		return Function{}, notFound("Function not found: " + arn)
	}
	return f, nil
}

func refuseStreaming(http.ResponseWriter, *http.Request) error {
	return unsupported("InvokeWithResponseStream is not emulated: use Invoke, which returns a streamed response in one piece")
}

func refuseAction(_ http.ResponseWriter, r *http.Request) error {
	return unsupported("%s %s is not emulated: the functions are those of the template, and the actions are Invoke, GetFunction, GetFunctionConfiguration, GetFunctionConcurrency and ListFunctions", r.Method, r.URL.Path)
}

func unsupported(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "UnsupportedOperationException", Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "InvalidParameterValueException", Message: fmt.Sprintf(format, args...)}
}

func writeJSON(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the caller may have gone
	return nil
}

// writeError replies with an error as Lambda does: SDKs read the header, people the body.
func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Status: http.StatusInternalServerError, Code: "ServiceException", Message: err.Error()}
	}
	body := struct {
		Type    string
		Reason  string `json:",omitempty"`
		Message string `json:"message"`
	}{"User", e.Reason, e.Message}
	if e.Status >= http.StatusInternalServerError {
		body.Type = "Service"
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte("{}") // strings always have a JSON form
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", e.Code)
	w.WriteHeader(e.Status)
	_, _ = w.Write(text) // the caller may have gone
}
