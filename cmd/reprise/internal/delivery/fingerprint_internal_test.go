package delivery

import (
	"os"
	"testing"

	"github.com/reprise-sqs/reprise"
)

// TestFingerprint: a consumer is made anew when a setting, the queue that one leads to, or the content of any
// file that one names has changed, even if the file keeps its size and time; and only then.
func TestFingerprint(t *testing.T) {
	settings := []string{"url", "https://localhost", "retry-lane", "lane", "dead-letter", "dead"}
	files := make(map[string]string)
	for _, file := range []struct{ setting, prefix string }{
		{"bearer-token", "file:"}, {"hmac-secret", "file:"}, {"client-cert", ""}, {"client-key", ""}, {"ca", ""}, {"signing-key-file", ""},
	} {
		files[file.setting] = fileWith(t, file.setting, "before")
		settings = append(settings, file.setting, file.prefix+files[file.setting])
	}
	var cfg reprise.Config
	cfg.RetryLane.URL, cfg.DeadLetterURL = "https://sqs.invalid/0/lane", "https://sqs.invalid/0/dead"
	fingerprint := func() string {
		s := settingsOf(t, settings...)
		return s.Fingerprint(cfg, s.Content())
	}
	last := fingerprint()
	same := func(after string, want bool) {
		t.Helper()
		now := fingerprint()
		if (now == last) != want {
			t.Errorf("after %s the fingerprint is the same: %t, want %t", after, now == last, want)
		}
		last = now
	}
	same("nothing", true)
	for setting, name := range files {
		before, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("rotate"), 0o600); err != nil { // as long as before
			t.Fatal(err)
		}
		if err := os.Chtimes(name, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		same("a change of the file of "+setting, false)
	}
	cfg.RetryLane.URL = "https://sqs.invalid/1/lane"
	same("another retry lane of that name", false)
	cfg.DeadLetterURL = "https://sqs.invalid/1/dead"
	same("another dead-letter queue of that name", false)
	settings = append(settings, "timeout", "31s")
	same("another timeout", false)
	same("all of it", true)
}

// TestFingerprintOfBasicAuth: the file of --basic-auth, which excludes --bearer-token, counts too.
func TestFingerprintOfBasicAuth(t *testing.T) {
	name := fileWith(t, "basic", "user:before")
	s := settingsOf(t, "url", "https://localhost", "basic-auth", "file:"+name)
	before := s.Fingerprint(reprise.Config{}, s.Content())
	if err := os.WriteFile(name, []byte("user:rotate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Fingerprint(reprise.Config{}, s.Content()) == before {
		t.Error("a changed password does not change the fingerprint")
	}
}
