//go:build unix

package cli

import (
	"os"
	"testing"
)

// TestEditorsEnd: editors end a text with a new line. It is taken off if the body had none, and is a part of it otherwise.
func TestEditorsEnd(t *testing.T) {
	a := &app{stdin: os.Stdin, stdout: newStream(os.Stdout), stderr: newStream(os.Stderr), ctx: t.Context()}
	t.Setenv("VISUAL", "")
	for _, test := range []struct{ body, left, want string }{
		{"a", `b\n`, "b"}, {"a", "b", "b"}, {"a", `b\n\n`, "b\n"}, {"a\n", `b\n`, "b\n"}, {"a\n", "b", "b"}, {"a\nb\n", `c\nd\n\n`, "c\nd\n\n"},
	} {
		t.Setenv("EDITOR", `printf '`+test.left+`' > "$1"; true`)
		got, err := a.inEditor(test.body)
		if err != nil {
			t.Fatal(err)
		}
		if *got != test.want {
			t.Errorf("%q, which the editor leaves as %s, becomes %q, want %q", test.body, test.left, *got, test.want)
		}
	}
}
