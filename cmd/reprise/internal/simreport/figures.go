package simreport

// Figure is a metric of a report, with its value in each run.
type Figure struct {
	// Name is that which conditions use, About says what it is.
	Name, About string
	Values      []string
}

// Figures are the metrics that a comparison shows, each with its value in every run.
func (r Report) Figures() []Figure {
	var all []Figure
	for _, m := range metrics {
		if !m.shown {
			continue
		}
		f := Figure{Name: m.name, About: m.about}
		for _, one := range r.Runs {
			f.Values = append(f.Values, m.text(one.Result))
		}
		all = append(all, f)
	}
	return all
}
