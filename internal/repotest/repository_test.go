// Package repotest has the tests of the repository: which package may import which, what the pages name, what the checks
// of a change do, and which mistakes the other tests must see.
package repotest

import (
	"fmt"
	"os"
	"testing"
)

// TestMain has the tests run in the repository's root folder.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
