package simulate

// Draws are hashes of the seed, of what they are for, and of numbers, so that what happens in one
// place does not change what is drawn in another.

// purpose is what a draw is for.
type purpose uint64

const (
	forID purpose = iota + 1
	forIDRest
	forArrival
	forPermanent
	forAlways
	forFailure
	forTakes
	forOutage
	forProbe
	forGroup
	forFluid
	forRequest
	forReceive
	forQueue
)

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw returns a random number that depends on nothing but its arguments.
func draw(seed uint64, why purpose, a, b uint64) uint64 {
	return mix(mix(mix(mix(seed)^uint64(why))^a) ^ b)
}

// unit maps a random number onto [0, 1).
func unit(r uint64) float64 { return float64(r>>11) / (1 << 53) }
