package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

// TestVendored: the code of others is as its authors published it, and has its licence beside it.
func TestVendored(t *testing.T) {
	readme, err := assetFiles.ReadFile("assets/vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| ([0-9a-f]{64}) \\|$").FindAllStringSubmatch(string(readme), -1) {
		listed[row[1]] = row[2]
	}
	entries, err := assetFiles.ReadDir("assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "README.md" {
			continue
		}
		content, err := assetFiles.ReadFile("assets/vendor/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if want, got := listed[entry.Name()], hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s has the sum %s, and assets/vendor/README.md says %q", entry.Name(), got, want)
		}
		delete(listed, entry.Name())
	}
	if len(listed) > 0 {
		t.Errorf("README.md lists %v, which are missing", listed)
	}
	if len(entries) < 5 {
		t.Errorf("only %d files", len(entries))
	}
}

// TestOwnAssets: what is ours asks nobody else for anything.
func TestOwnAssets(t *testing.T) {
	for name, a := range assets {
		text := strings.ReplaceAll(string(a.content), "http://www.w3.org/2000/svg", "")
		if !strings.HasPrefix(name, "vendor/") && regexp.MustCompile(`https?://|@import|eval\(|new Function`).MatchString(text) {
			t.Errorf("%s refers to another place, or evaluates text", name)
		}
	}
}
