//go:build race

package journal_test

// raceDetector is whether the race detector is on.
const raceDetector = true
