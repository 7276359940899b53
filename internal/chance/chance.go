// Package chance fixes what a consumer leaves to chance, so that a test outside the root package
// repeats. The seed is a field of reprise.Config that users do not see, so that the root package
// provides the function.
package chance

// Seeded returns a reprise.Config like config, whose consumer draws everything from seed. Package
// reprise sets it when it is imported.
var Seeded func(config any, seed uint64) any
