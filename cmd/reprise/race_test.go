//go:build race && unix

package main_test

// raceFlags have a build do what the tests' own did: use the race detector.
var raceFlags = []string{"-race"}
