package operate

import "time"

// longestPace bounds what Pace returns: at the smallest rates it would be more nanoseconds than a duration has.
const longestPace = 100 * 365 * 24 * time.Hour

// Pace returns how long n messages take at so many a second, which is more than 0: at most a hundred years.
func Pace(n int, rate float64) time.Duration {
	return time.Duration(min(float64(n)/rate, longestPace.Seconds()) * float64(time.Second))
}
