package shortkey_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/internal/shortkey"
)

// FuzzOf: a short key is as it was; a long one becomes 256 bytes at most, begins as it did, stays UTF-8, differs from
// other long keys, and is not shortened again.
func FuzzOf(f *testing.F) {
	for _, key := range []string{"", "acme", strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("ü", 200), strings.Repeat("🚀", 100), "a" + strings.Repeat("🚀", 100), strings.Repeat("\x80", 300)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		short := shortkey.Of(key)
		if len(key) <= shortkey.Max {
			if short != key {
				t.Errorf("Of(%q) = %q, want it as it is", key, short)
			}
			return
		}
		if len(short) > shortkey.Max || len(short) < shortkey.Max-utf8.UTFMax || !strings.HasPrefix(short, key[:200]) {
			t.Errorf("Of(%q) = %q, of %d bytes", key, short, len(short))
		}
		if utf8.ValidString(key) && !utf8.ValidString(short) {
			t.Errorf("Of(%q) = %q, which is not UTF-8", key, short)
		}
		if again := shortkey.Of(short); again != short {
			t.Errorf("Of(Of(%q)) = %q, want %q", key, again, short)
		}
		if other := shortkey.Of(key + "."); other == short {
			t.Errorf("%q and the same with a dot are both %q", key, short)
		}
	})
}
