package retry

import "math/bits"

// stream is the sequence of random numbers that belongs to one message.
//
// Both of its parts are published algorithms, so that any language can recompute
// a schedule: the n-th number is the n-th output of SplitMix64 whose state is
// the 64-bit xxHash (XXH64, seed 0) of the message's seed. This must never change: consumers of
// different versions must agree on a message's attempts.
type stream uint64

// newStream hashes seed by XXH64 with seed 0.
// See https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
func newStream(seed string) stream {
	s := seed
	h := uint64(prime5)
	if len(s) >= 32 {
		// Four variables, not an array: they stay in registers.
		v1, v2, v3, v4 := uint64(prime1plus2), uint64(prime2), uint64(0), uint64(minusPrime1)
		for ; len(s) >= 32; s = s[32:] {
			v1 = xxhRound(v1, word64(s[0:8]))
			v2 = xxhRound(v2, word64(s[8:16]))
			v3 = xxhRound(v3, word64(s[16:24]))
			v4 = xxhRound(v4, word64(s[24:32]))
		}
		h = bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
		h = (h^xxhRound(0, v1))*prime1 + prime4
		h = (h^xxhRound(0, v2))*prime1 + prime4
		h = (h^xxhRound(0, v3))*prime1 + prime4
		h = (h^xxhRound(0, v4))*prime1 + prime4
	}
	h += uint64(len(seed))
	for ; len(s) >= 8; s = s[8:] {
		h = bits.RotateLeft64(h^xxhRound(0, word64(s)), 27)*prime1 + prime4
	}
	if len(s) >= 4 {
		h = bits.RotateLeft64(h^uint64(word32(s))*prime1, 23)*prime2 + prime3
		s = s[4:]
	}
	for i := range len(s) {
		h = bits.RotateLeft64(h^uint64(s[i])*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return stream(h ^ h>>32)
}

const (
	prime1      = 0x9E3779B185EBCA87
	prime2      = 0xC2B2AE3D27D4EB4F
	prime3      = 0x165667B19E3779F9
	prime4      = 0x85EBCA77C2B2AE63
	prime5      = 0x27D4EB2F165667C5
	prime1plus2 = (prime1 + prime2) & (1<<64 - 1)
	minusPrime1 = 1<<64 - prime1
)

func xxhRound(lane, word uint64) uint64 {
	return bits.RotateLeft64(lane+word*prime2, 31) * prime1
}

// word64 reads s[:8] as a little-endian number; the compiler makes it one load.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func word32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// lastDraw is the number of the draw for a retry that MaxAge cuts short. Waits
// before retries are drawn by the numbers of the retries, from 1 on.
const lastDraw = 0

// draw returns the n-th output of SplitMix64 with s as its state.
// See https://prng.di.unimi.it/splitmix64.c.
func (s stream) draw(n int) uint64 {
	z := uint64(s) + uint64(n)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
