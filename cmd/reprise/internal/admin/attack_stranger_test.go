package admin_test

// Holds off: a client of another machine, another user of this one, a client that guesses
// tokens, and viewers that do not read.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

const token = "0123456789abcdef0123456789abcdef"

// TestAttackStrangerAdminAPI: without a token only this machine may call, through no proxy; with one
// nobody without it, and with keys for the queues nobody who has no token. The log does not have it.
func TestAttackStrangerAdminAPI(t *testing.T) {
	open := func(*admin.Config) {}
	tokened := func(cfg *admin.Config) { cfg.Token = token }
	keyed := func(cfg *admin.Config) { cfg.NeedsToken = true }
	readOnly := func(cfg *admin.Config) { cfg.ReadOnly = true }
	for _, test := range []struct {
		what         string
		cfg          func(*admin.Config)
		from         string
		header       []string
		read, action int // the status
	}{
		{"this machine", open, "127.0.0.1:1", nil, 200, 200},
		{"another machine", open, "192.0.2.1:1", nil, 403, 403},
		{"a proxy", open, "127.0.0.1:1", []string{"X-Forwarded-For", "192.0.2.1"}, 403, 403},
		{"a proxy that tells nothing", open, "127.0.0.1:1", []string{"Forwarded", ""}, 403, 403},
		{"another machine with a token, which is not asked for", open, "192.0.2.1:1", []string{"Authorization", "Bearer " + token}, 403, 403},
		{"no token", tokened, "127.0.0.1:1", nil, 401, 401},
		{"a wrong token", tokened, "127.0.0.1:1", []string{"Authorization", "Bearer " + token[1:]}, 401, 401},
		{"another scheme", tokened, "127.0.0.1:1", []string{"Authorization", "Basic " + token}, 401, 401},
		{"the token", tokened, "192.0.2.1:1", []string{"Authorization", "bearer " + token}, 200, 200},
		{"keys without a token", keyed, "127.0.0.1:1", nil, 403, 403},
		{"read-only", readOnly, "127.0.0.1:1", nil, 200, 403},
	} {
		log := new(journal)
		cfg := admin.Config{Events: new(admin.Events), Logger: slog.New(slog.NewTextHandler(log, nil))}
		all := consumers(t)
		cfg.Consumers, cfg.Pages = func() []admin.Running { return all }, pages(t, cfg.Logger)
		test.cfg(&cfg)
		api := admin.New(cfg)
		for request, want := range map[string]int{"GET consumers": test.read, "POST consumers/orders/pause": test.action} {
			method, path, _ := strings.Cut(request, " ")
			r := httptest.NewRequest(method, "http://localhost:9325"+admin.Path+path, strings.NewReader("{}"))
			r.RemoteAddr = test.from
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(test.header); i += 2 {
				r.Header.Set(test.header[i], test.header[i+1])
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s: %s answers %d %s, want %d", test.what, request, w.Code, w.Body, want)
			}
		}
		if paused := all[0].Status().Paused; paused != (test.action == 200) {
			t.Errorf("%s: paused %t", test.what, paused)
		}
		if strings.Contains(log.String(), token[1:]) {
			t.Errorf("%s: the log has the token: %s", test.what, log)
		}
	}
}

// TestUnixSocketNeedsNoToken: who can connect to the socket is its owner.
func TestUnixSocketNeedsNoToken(t *testing.T) {
	cfg := admin.Config{Events: new(admin.Events), Logger: slog.New(slog.DiscardHandler), Token: token, NeedsToken: true}
	cfg.Consumers, cfg.Pages = func() []admin.Running { return nil }, pages(t, cfg.Logger)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: admin.New(cfg)} //nolint:gosec // G112: the test is its only client
	go server.Serve(l)
	defer server.Close()
	client, err := admin.NewClient("unix:"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Consumers(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAttackRedirectedToken: a server in place of the process cannot have the token sent elsewhere.
func TestAttackRedirectedToken(t *testing.T) {
	got := make(chan string, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	client, err := admin.NewClient(redirecting.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Consumers(t.Context()); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect: %v", err)
	}
	select {
	case header := <-got:
		t.Errorf("the other server got %q", header)
	default:
	}
}

// TestAttackStrangerSlowViewers: viewers that do not read hold up no consumer, and lose events, of
// which they are told the number; more than 32 of one client are refused, and more than 64 of all.
func TestAttackStrangerSlowViewers(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) { cfg.Events = events })
	slow := s.stream("")
	for range 31 {
		s.stream("?queue=other")
	}
	if status, _ := s.call("GET", admin.Path+"events", ""); status != 503 {
		t.Errorf("a 33rd stream of one client: %d", status)
	}
	observer := events.Observer(queueURL + "orders")
	var told atomic.Int64
	tell := func(err error) {
		observer.Attempt(t.Context(), reprise.Attempt{Message: message("m"), Err: err})
		told.Add(1)
	}
	long := errors.New(strings.Repeat("x", 1900))
	for range 20_000 { // far more than the stream and the buffers of the sockets have room for
		tell(long)
	}
	go func() { // the number of the lost comes with the next event
		for t.Context().Err() == nil {
			tell(nil)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	seen, lost := int64(0), int64(0)
	for lost == 0 || seen+lost != told.Load() {
		switch name, data := slow.next(); name {
		case "attempt":
			seen++
		case "lost":
			lost += decode[admin.LostEvent](t, data).Events
		default:
			t.Fatalf("the stream ends after %d events, with %d lost of %d", seen, lost, told.Load())
		}
	}
	if seen < 256 {
		t.Errorf("%d events were seen, want at least those that fit", seen)
	}
}

// TestAttackStrangerStreamsOfAll: one client has half of the streams at most, so that another one finds room.
func TestAttackStrangerStreamsOfAll(t *testing.T) {
	streams := admin.Streams{Most: 64, MostOfOne: 32}
	clientOf := func(remote string) string { return admin.ClientOf(&http.Request{RemoteAddr: remote}) }
	for i := range 40 {
		if begun := streams.Begin(clientOf(fmt.Sprintf("[2001:db8::%d]:%d", i, i+1))); begun != (i < 32) {
			t.Fatalf("stream %d of one network begins: %t", i+1, begun)
		}
	}
	for i := range 40 {
		if begun := streams.Begin(clientOf(fmt.Sprintf("10.0.0.1:%d", i+1))); begun != (i < 32) {
			t.Fatalf("stream %d of another client begins: %t", i+1, begun)
		}
	}
	if streams.Begin("a third") {
		t.Error("there are more than 64")
	}
	streams.End(clientOf("10.0.0.1:9"))
	if !streams.Begin(clientOf("10.0.0.1:10")) {
		t.Error("the end of a stream makes no room")
	}
	if clientOf("[::ffff:10.0.0.1]:1") != clientOf("10.0.0.1:2") || clientOf("@") != "" {
		t.Error("addresses of one client are told apart")
	}
}

// TestClientAddresses: what is no address of a process is refused, with one that is.
func TestClientAddresses(t *testing.T) {
	for _, address := range []string{"", "unix:", "ftp://localhost", "http://", "http://localhost/admin", "http://a:b@localhost", "http://localhost?x", "%"} {
		if _, err := admin.NewClient(address, ""); err == nil || !strings.Contains(err.Error(), "unix:/run/reprise/admin.sock") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"localhost:9325", "http://localhost:9325/", "https://reprise.example", "unix:/run/s"} {
		if _, err := admin.NewClient(address, ""); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}
