package admin_test

// Holds off: a program that listens at the address of a process that has stopped, to get the token that an operator's command would
// send to it, or to have its words printed.

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestAttackTokenToAnImpostor: commands send no token. What an impostor gets is good for the very request at the very address, once, for
// five minutes.
func TestAttackTokenToAnImpostor(t *testing.T) {
	var got []byte
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = httputil.DumpRequest(r, true)
		io.WriteString(w, "{}")
	}))
	defer impostor.Close()
	client, err := admin.NewClient(impostor.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Act(t.Context(), "orders", "pause", admin.Keys{}); err != nil {
		t.Fatal(err)
	}
	if text := string(got); strings.Contains(text, token) || !strings.Contains(text, "Authorization: Reprise-HMAC-SHA256 ") {
		t.Fatalf("the impostor gets %s", text)
	}
	head, body, _ := strings.Cut(string(got), "\r\n\r\n")
	_, authorization, _ := strings.Cut(head, "Authorization: ")
	authorization, _, _ = strings.Cut(authorization, "\r\n")
	s, once := serve(t, func(cfg *admin.Config) { cfg.Token = token }), ""
	replay := func(method, path, body, host string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Content-Type", "application/json")
		r.Host = host
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		return reply.StatusCode
	}
	there := strings.TrimPrefix(impostor.URL, "http://")
	const pause = admin.Path + "consumers/orders/pause"
	for _, test := range []struct {
		name, method, path, body, host string
		want                           int
	}{
		{"at the process's own address", "POST", pause, body, "", 401},
		{"another action", "POST", admin.Path + "consumers/orders/wake", body, there, 401},
		{"another query", "POST", pause + "?queue=mail", body, there, 401},
		{"another method", "GET", admin.Path + "consumers", "", there, 401},
		{"another body", "POST", pause, `{"keys":["acme"]}`, there, 403},
	} {
		if status := replay(test.method, test.path, test.body, test.host); status != test.want {
			t.Errorf("%s: %d, want %d", test.name, status, test.want)
		}
	}
	real, err := admin.NewClient(s.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := real.Act(t.Context(), "orders", "pause", admin.Keys{}); err != nil {
			t.Errorf("the process itself: %v", err)
		}
	}
	for _, want := range []int{200, 403} { // the same request twice
		r := httptest.NewRequest("GET", s.URL+admin.Path, http.NoBody)
		r.Header.Set("Authorization", once)
		if want == 200 {
			admin.Sign(r, token, nil, time.Now())
			once = r.Header.Get("Authorization")
		}
		w := httptest.NewRecorder()
		if s.api.ServeHTTP(w, r); w.Code != want {
			t.Errorf("a signed request: %d %s, want %d", w.Code, w.Body, want)
		}
	}
	wrong, err := admin.NewClient(s.URL, token+"x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Consumers(t.Context()); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("a wrong token: %v", err)
	}
}

// TestAttackSignedLater: a signature counts for five minutes, to the second, before and after the process's time. One that is ahead of it
// would otherwise count again when the process has forgotten it.
func TestAttackSignedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ahead, want := range map[time.Duration]int{
			0: 200, -5 * time.Minute: 200, -5*time.Minute - time.Second: 403, 5 * time.Minute: 200, 5*time.Minute + time.Second: 403,
		} {
			api := admin.New(admin.Config{Events: new(admin.Events), Logger: slog.New(slog.DiscardHandler), Token: token, Pages: pages(t, slog.New(slog.DiscardHandler)), Consumers: func() []admin.Running { return nil }})
			r := httptest.NewRequest("GET", "http://localhost:9325"+admin.Path, bytes.NewReader(nil))
			admin.Sign(r, token, nil, time.Now().Add(ahead))
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("signed at the process's time plus %v: %d %s", ahead, w.Code, w.Body)
			}
		}
	})
}

// TestAttackWordsOfAnImpostor: an error of whoever listens is one line, without control characters, and bounded.
func TestAttackWordsOfAnImpostor(t *testing.T) {
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"error":"no\nreprise: all is well\u001b[2J\u202e`+strings.Repeat("x", 1<<20)+`","code":"x"}`)
	}))
	defer impostor.Close()
	client, err := admin.NewClient(impostor.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Act(t.Context(), "orders", "wake", admin.Wake{})
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\u202e") || len(err.Error()) > 8<<10 {
		t.Errorf("the error is %.200q", err)
	}
}

// TestAttackImpostorWithoutCertificate: by HTTPS the token goes only to who has the address's certificate.
func TestAttackImpostorWithoutCertificate(t *testing.T) {
	asked := false
	impostor := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer impostor.Close()
	impostor.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	client, err := admin.NewClient(impostor.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Consumers(t.Context()); err == nil || asked {
		t.Errorf("an unknown certificate: %v", err)
	}
}
