package digest_test

import (
	"crypto/md5"
	"encoding/hex"
	"testing"

	"github.com/reprise-sqs/reprise/internal/digest"
)

// The digests are those that AWS returned for the same attributes.
func TestDigestsOfAWS(t *testing.T) {
	color := digest.AppendString(nil, "color", "String", "blue")
	three := digest.AppendBinary(nil, "blob", "Binary", []byte{1, 2, 3})
	three = digest.AppendString(three, "color", "String", "blue")
	three = digest.AppendString(three, "count", "Number", "3")
	tests := []struct {
		name string
		text []byte
		want string
	}{
		{"a string", color, "da1b33cc3cbfe8b1630921e78e6b9880"},
		{"three types", three, "d838729972a4b70e2d2acd9d59ac847c"},
		{"a number", digest.AppendString(nil, "timestamp", "Number", "1493147359900"), "235c5c510d26fb653d073faed50ae77c"},
	}
	for _, tt := range tests {
		sum := md5.Sum(tt.text)
		if got := hex.EncodeToString(sum[:]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestIsBinary: a label is no part of what decides.
func TestIsBinary(t *testing.T) {
	for dataType, want := range map[string]bool{
		"Binary": true, "Binary.png": true, "Binary.": true,
		"String": false, "String.Binary": false, "Number.int": false, "Binaryx": false, "": false,
	} {
		if got := digest.IsBinary(dataType); got != want {
			t.Errorf("IsBinary(%q) = %v", dataType, got)
		}
	}
}
