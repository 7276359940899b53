package emulator

// Holds off a function whose requests have control characters in their paths, ids and errors.

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// TestAttackErrorsAreJSON: whatever is quoted in an error of the Runtime API, it is JSON.
func TestAttackErrorsAreJSON(t *testing.T) {
	for _, hostile := range []string{"a\x07b", "\x1b[2J\x9b", "\"}\n{", "\u2028\x00\v"} {
		w := httptest.NewRecorder()
		refuse(w, 400, "Kind"+hostile, "no invoke "+hostile+" waits")
		var got struct{ ErrorType, ErrorMessage string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.ErrorType == "" || got.ErrorMessage == "" {
			t.Errorf("%q makes %q: %v", hostile, w.Body, err)
		}
	}
}
