// Package race tells tests whether the race detector is on. With it a test runs five to ten
// times as long, and many are there for what a hundred different runs have in common: with the
// race detector they make the few runs that it needs to see what goes on at once, and make full
// runs them without it, in full.
package race

// Fewer returns few if the race detector is on, and full if it is not: how many times a test does
// something.
func Fewer(full, few int) int {
	if Enabled {
		return few
	}
	return full
}
