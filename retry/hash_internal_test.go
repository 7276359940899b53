package retry

import "testing"

// Published test vectors of both algorithms: a schedule is a promise between
// processes, versions and languages, so neither may ever change.

func TestStreamIsXXH64(t *testing.T) {
	vectors := map[string]stream{
		"":     0xEF46DB3751D8E999,
		"a":    0xD24EC4F1A98C6E5B,
		"as":   0x1C330FB2D66BE179,
		"asd":  0x631C37CE72A97393,
		"abc":  0x44BC2CF5AD770999,
		"asdf": 0x415872F599CEA71E,
		"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
		// Computed by github.com/cespare/xxhash/v2: texts without a rest behind the words of 8 and 32 bytes.
		"Nobody i":                         0x93FC083B5A3F012C,
		"Nobody inspects the spammish rep": 0x96F5BFCBFE7F0D1A,
		"Call me Ishmael. Some years ago--never mind how long precisely-.": 0xDEDC9D897002EC0E,
		// 63 bytes: the longest path through every branch.
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02A2E85470D6FD96,
	}
	for text, want := range vectors {
		if got := newStream(text); got != want {
			t.Errorf("newStream(%q) = %#X, want %#X", text, uint64(got), uint64(want))
		}
	}
}

func TestDrawIsSplitMix64(t *testing.T) {
	const state = stream(1234567)
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	} {
		if got := state.draw(i + 1); got != want {
			t.Errorf("output %d = %d, want %d", i+1, got, want)
		}
	}
}
