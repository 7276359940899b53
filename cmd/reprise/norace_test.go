//go:build !race && unix

package main_test

// raceFlags have a build do what the tests' own did: leave the race detector out.
var raceFlags []string
