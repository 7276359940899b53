package delivery

// Holds off: whoever reads what a process shows without a signature, its health, logs and stories, and looks for secrets.

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
)

// TestAttackSecretOfTheURL: no error of a target or of its probe has the path or the query of its URL, which may be a webhook's secret;
// it has what is needed to mend it.
func TestAttackSecretOfTheURL(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	address := closed.Listener.Addr().String()
	closed.Close()
	cutting := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cutting.Close()
	cutting.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	for _, test := range []struct{ name, at, want string }{
		{"refused", "http://" + address, address},
		{"cut", cutting.URL, "EOF"},
		{"no such host", "http://host.invalid", "host.invalid"},
	} {
		secret := test.at + "/hooks/pa55?token=pa55"
		handler, err := targetOf(t, "url", secret)
		if err != nil {
			t.Fatal(err)
		}
		ask, err := probe(secret)
		if err != nil {
			t.Fatal(err)
		}
		for from, err := range map[string]error{
			"target": handler.Handle(t.Context(), &reprise.Message{ID: "m"}), "probe": ask(t.Context(), ""), "probe of a key": ask(t.Context(), "acme"),
		} {
			if err == nil || strings.Contains(err.Error(), "pa55") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: the %s fails with %v", test.name, from, err)
			}
		}
	}
}
