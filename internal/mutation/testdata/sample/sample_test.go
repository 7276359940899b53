package sample

import "testing"

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		t     celsius
		dry   bool
		level int
		known bool
	}{{9, false, 0, true}, {10, false, 1, true}, {17, true, 2, false}, {30, false, 3, true}, {31, false, 4, true}, {31, true, 3, true}} {
		if level, known := Level(c.t, c.dry); level != c.level || known != c.known {
			t.Errorf("%v: %d %t", c, level, known)
		}
	}
}
