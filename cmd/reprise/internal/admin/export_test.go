package admin

import (
	"slices"
	"strings"
)

// Routes are the operations as a description has them: method and path, sorted.
func Routes() (all []string) {
	for _, r := range new(API).routes() {
		all = append(all, r.method+" /"+strings.TrimSuffix(r.path, "{$}"))
	}
	slices.Sort(all)
	return all
}
