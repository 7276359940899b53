package template

import (
	"slices"
	"strings"
)

// dependency is a resource that another resource needs first.
type dependency struct {
	from, to string
	p        place
	n        *node
}

// depend notes that the resource at p needs the resource called id.
func (l *loader) depend(p place, n *node, id string) {
	for _, apart := range []string{"Events", "EventInvokeConfig"} {
		if strings.HasPrefix(p.property, apart) {
			return // SAM makes resources of their own of these, which nothing needs
		}
	}
	l.needs = append(l.needs, dependency{p.resource, id, p, n})
}

// checkCircles refuses resources that depend on each other in a circle: CloudFormation could
// create none of them.
func (l *loader) checkCircles() {
	needed := make(map[string][]dependency)
	for _, d := range l.needs {
		needed[d.from] = append(needed[d.from], d)
	}
	done := make(map[string]bool)
	var path []string
	var visit func(id string)
	visit = func(id string) {
		path = append(path, id)
		for _, d := range needed[id] {
			if i := slices.Index(path, d.to); i >= 0 {
				l.refuse(d.p, d.n, "Circular dependency between resources: %s: take a reference out", strings.Join(append(slices.Clone(path[i:]), d.to), " -> "))
			} else if !done[d.to] {
				visit(d.to)
			}
		}
		done[id] = true
		path = path[:len(path)-1]
	}
	for _, r := range l.order {
		if !done[r.id] {
			visit(r.id)
		}
	}
}
