package operate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Words are the criteria for people; empty: all messages.
func (c Criteria) Words() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("reason", strings.Join(c.Reasons, " or "))
	add("from", c.Source)
	add("group", c.Group)
	add("error matches", c.Error)
	add("body matches", c.Body)
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		add("attribute "+name+" matches", c.Attributes[name])
	}
	add("where", strings.Join(c.Where, " and "))
	add("ids", strings.Join(c.IDs, " "))
	add("older than", c.OlderThan)
	add("newer than", c.NewerThan)
	return strings.Join(parts, ", ")
}

// Words are the changes for people; empty: there are none.
func (r Rewrite) Words() string {
	var parts []string
	if r.Find != "" {
		parts = append(parts, fmt.Sprintf("%q in bodies becomes %q", r.Find, r.Replace))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		parts = append(parts, fmt.Sprintf("attribute %s becomes %q", name, r.Set[name]))
	}
	for _, name := range r.Remove {
		parts = append(parts, "attribute "+name+" is removed")
	}
	return strings.Join(parts, ", ")
}
