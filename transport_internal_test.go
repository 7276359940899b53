package reprise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// TestServerClock: the difference between the clocks is that of the latest reply with a Date; less than three
// seconds are no difference.
func TestServerClock(t *testing.T) {
	for _, tt := range []struct{ skew, want time.Duration }{
		{0, 0},
		{2 * time.Second, 0},
		{-2 * time.Second, 0},
		{3 * time.Second, 3 * time.Second},
		{-3 * time.Second, -3 * time.Second},
		{time.Hour, time.Hour},
		{-time.Hour, -time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s serverClock
			s.observe(replyAt(t, time.Now().Add(-time.Minute)), time.Now(), time.Now()) // by an earlier reply
			s.observe(replyAt(t, time.Now().Add(tt.skew)), time.Now(), time.Now())
			if got := s.lead(); got != tt.want {
				t.Errorf("a server that is %v ahead is taken to be %v ahead", tt.skew, got)
			}
			s.observe(middleware.Metadata{}, time.Now(), time.Now())
			if got := s.lead(); got != tt.want {
				t.Errorf("after a reply without a Date the server that was %v ahead is %v ahead", tt.want, got)
			}
		})
	}
}

// TestLateReply: a reply that was read late, and taken in later still, does not show that SQS's clock is behind.
func TestLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s serverClock
		s.observe(replyAt(t, time.Now()), time.Now(), time.Now())
		asked := time.Now()
		time.Sleep(30 * time.Second)
		reply := replyAt(t, asked.Add(5*time.Second))
		time.Sleep(3 * time.Second)
		if late := s.observe(reply, asked, time.Now()); late != 28*time.Second || s.lead() != 0 {
			t.Errorf("it was late by %v, and SQS is ahead by %v; want 28 s and nothing", late, s.lead())
		}
	})
}

// replyAt returns the metadata of a reply with that Date, as the SDK computes it.
func replyAt(t *testing.T, date time.Time) middleware.Metadata {
	reply := &smithyhttp.Response{Response: &http.Response{Header: http.Header{"Date": {date.UTC().Format(http.TimeFormat)}}}}
	next := middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (out middleware.DeserializeOutput, m middleware.Metadata, err error) {
		return middleware.DeserializeOutput{RawResponse: reply}, m, nil
	})
	_, m, err := (&awsmiddleware.RecordResponseTiming{}).HandleDeserialize(t.Context(), middleware.DeserializeInput{}, next)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTransportApplies: the settings of a transport that a user has set stay, and smaller numbers of connections
// are raised.
func TestTransportApplies(t *testing.T) {
	for name, tt := range map[string]*struct {
		have           http.Transport
		idle, forHost  int
		headersTimeout time.Duration
	}{
		"nothing is set":       {forHost: 7, headersTimeout: headerTimeout},
		"fewer connections":    {have: http.Transport{MaxIdleConns: 5, MaxIdleConnsPerHost: 5}, idle: 7, forHost: 7, headersTimeout: headerTimeout},
		"more connections":     {have: http.Transport{MaxIdleConns: 50}, idle: 50, forHost: 7, headersTimeout: headerTimeout},
		"a timeout of its own": {have: http.Transport{ResponseHeaderTimeout: time.Second}, forHost: 7, headersTimeout: time.Second},
	} {
		got := &tt.have
		Transport{Connections: 7}.apply(got)
		if got.MaxIdleConns != tt.idle || got.MaxIdleConnsPerHost != tt.forHost || got.ResponseHeaderTimeout != tt.headersTimeout || !got.DisableCompression {
			t.Errorf("%s: %d idle connections, %d for each host, a timeout of %v, compression off %v", name, got.MaxIdleConns, got.MaxIdleConnsPerHost, got.ResponseHeaderTimeout, got.DisableCompression)
		}
	}
}

// TestTunedOptions: Tuned sets the number of connections, and checks bodies unless that is turned off.
func TestTunedOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		transport   Transport
		connections int
	}{
		"the zero Transport": {connections: 256},
		"a negative number":  {transport: Transport{Connections: -1}, connections: 256},
		"some connections":   {transport: Transport{Connections: 30, SkipChecksums: true}, connections: 30},
	} {
		var o sqs.Options
		Tuned(tt.transport)(&o)
		client := o.HTTPClient.(replyLimit).client.(bodyBuffer).client.(*awshttp.BuildableClient)
		if got := client.GetTransport().MaxIdleConnsPerHost; got != tt.connections {
			t.Errorf("%s: %d connections, want %d", name, got, tt.connections)
		}
		if o.DisableMessageChecksumValidation != tt.transport.SkipChecksums {
			t.Errorf("%s: checks of bodies are off: %v", name, o.DisableMessageChecksumValidation)
		}
	}
}

// TestTunedDials: the time for a connection is limited, unless the user has set a limit in the SDK's client.
func TestTunedDials(t *testing.T) {
	hangs := func(h *http.Transport) {
		h.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	sdk := awshttp.NewBuildableClient()
	for name, tt := range map[string]struct {
		client *awshttp.BuildableClient
		limit  time.Duration
	}{
		"the SDK's":           {sdk.WithTransportOptions(hangs), dialTimeout},
		"with its own limit":  {sdk.WithDialerOptions(func(d *net.Dialer) { d.Timeout = time.Minute }).WithTransportOptions(hangs), time.Hour},
		"without DialContext": {sdk.WithTransportOptions(func(h *http.Transport) { h.DialContext = nil }), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := sqs.Options{HTTPClient: tt.client}
			Tuned(Transport{})(&o)
			dial := o.HTTPClient.(replyLimit).client.(bodyBuffer).client.(*awshttp.BuildableClient).GetTransport().DialContext
			if dial == nil || tt.limit == 0 {
				if dial != nil || tt.limit != 0 {
					t.Errorf("%s: it dials by a function of its own: %v", name, dial != nil)
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // the caller's
			defer cancel()
			began := time.Now()
			if _, err := dial(ctx, "tcp", "host:1"); err == nil || time.Since(began) != tt.limit {
				t.Errorf("%s: a dial ends after %v with %v, want %v", name, time.Since(began), err, tt.limit)
			}
		})
	}
}

// TestDialsEnd: a dial ends after its limit, or before with its context.
func TestDialsEnd(t *testing.T) {
	for _, callers := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			dial := dialWithin(dialTimeout, func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			ctx, cancel := context.WithTimeout(t.Context(), callers)
			defer cancel()
			began := time.Now()
			if _, err := dial(ctx, "tcp", "host:1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != min(callers, dialTimeout) {
				t.Errorf("a dial of a caller with %v ends after %v with %v", callers, time.Since(began), err)
			}
		})
	}
}

// doFunc is an HTTP client.
type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// brokenBody fails after some bytes.
type brokenBody struct{ io.Reader }

func (brokenBody) Close() error { return nil }

// TestBodiesAreBuffered: a body of known length is sent from memory, again if net/http repeats the request, and
// the SDK's may be closed meanwhile. One of unknown length, and none, stay as they are; one that breaks off is an error.
func TestBodiesAreBuffered(t *testing.T) {
	for name, tt := range map[string]struct {
		body     io.Reader
		length   int64
		want     string
		buffered bool
		problem  string
	}{
		"a body":            {strings.NewReader("text"), 4, "text", true, ""},
		"of unknown length": {strings.NewReader("text"), -1, "text", false, ""},
		"none":              {nil, 0, "", false, ""},
		"an empty one":      {strings.NewReader(""), 0, "", false, ""},
		"it breaks off":     {strings.NewReader("te"), 4, "", false, "reading the request's body"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.body != nil {
			r.Body, r.ContentLength = brokenBody{tt.body}, tt.length
		}
		original := r.Body
		var got []string
		_, err = bodyBuffer{doFunc(func(sent *http.Request) (*http.Response, error) {
			if buffered := sent.Body != original; buffered != tt.buffered || buffered != (sent.GetBody != nil) {
				t.Errorf("%s: it is buffered: %v, and can be repeated: %v", name, buffered, sent.GetBody != nil)
			}
			if sent.Body != nil {
				text, err := io.ReadAll(sent.Body)
				got = append(got, string(text), errorOf(err))
			}
			if sent.GetBody != nil {
				again, err := sent.GetBody()
				text, readErr := io.ReadAll(again)
				got = append(got, string(text), errorOf(errors.Join(err, readErr)))
			}
			return &http.Response{}, nil
		})}.Do(r)
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: the error is %v, want %q", name, err, tt.problem)
		}
		for i, text := range got {
			if want := []string{tt.want, ""}[i%2]; text != want {
				t.Errorf("%s: read %d gives %q, want %q", name, i, text, want)
			}
		}
		if r.Body != original {
			t.Errorf("%s: the SDK's request is changed", name)
		}
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRepliesAreLimited: a body may be read up to the limit, and not beyond; replies without a body and failed
// calls stay as they are.
func TestRepliesAreLimited(t *testing.T) {
	for bytesThere, fits := range map[int]bool{0: true, 9: true, 10: true, 11: false} {
		b := &limitedBody{io.NopCloser(bytes.NewReader(make([]byte, bytesThere))), 10}
		text, err := io.ReadAll(b)
		// A reader learns of the end by another read, which the limit refuses.
		if atLimit := bytesThere >= 10; (err != nil) != atLimit || len(text) != min(bytesThere, 10) {
			t.Errorf("of %d bytes %d are read, with %v (they fit: %v)", bytesThere, len(text), err, fits)
		}
	}
	for name, reply := range map[string]*http.Response{"a body": {Body: http.NoBody}, "no body": {}} {
		got, err := replyLimit{doFunc(func(*http.Request) (*http.Response, error) { return reply, nil })}.Do(nil)
		if _, limited := got.Body.(*limitedBody); err != nil || limited != (name == "a body") {
			t.Errorf("%s: it is limited: %v, and the error is %v", name, limited, err)
		}
	}
	if _, err := (replyLimit{doFunc(func(*http.Request) (*http.Response, error) { return nil, errOther })}).Do(nil); !errors.Is(err, errOther) {
		t.Errorf("the error of a call becomes %v", err)
	}
}
