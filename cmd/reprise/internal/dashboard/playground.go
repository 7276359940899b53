package dashboard

import (
	"context"
	"errors"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/playground"
	"github.com/reprise-sqs/reprise/plan"
)

const playgroundPath = Path + "playground"

var playgroundPage = page{
	path: playgroundPath, template: "playground", nav: "Playground",
	data: func(v *view) (string, any, error) {
		p, err := v.play()
		return "Playground", p, err
	},
}

// tryURL is the playground with the policy of a queue's consumer.
func tryURL(policy, queue string) string {
	return playgroundPath + "?" + url.Values{"policy": {policy}, "queue": {queue}}.Encode()
}

// played is a form about a policy, as it is shown, with its answer.
type played struct {
	playground.Sliders
	// Values has the text of each field; Problems what is wrong with some of them.
	Values   map[string]string
	Problems map[string]string
	// Link is the page with this form.
	Link string
	// Queues are those that can be chosen. Used is the policy of the consumer of the chosen queue, if one runs
	// here with another policy, and UsedLink the page with that.
	Queues         []string
	Used, UsedLink string
	// Answer is nil if Problem is why there is none.
	Answer  *playground.Answer
	Problem string
}

// play answers the form of a request. What is wrong with the form is told on the page.
func (v *view) play() (*played, error) {
	values := v.URL.Query()
	form, problems := playground.Read(values)
	p := &played{Values: make(map[string]string), Problems: make(map[string]string)}
	p.Sliders = form.Sliders()
	if stats, _, err := v.samples.latest(v.Context()); err == nil { // the page is of use without the queues
		p.choose(stats, form)
	}
	of, err := v.settingsOf(form.Queue)
	if err != nil {
		_, problem := explain(err)
		problems = append(problems, playground.Problem{Field: "queue", Text: problem})
	}
	query := form.Query()
	p.Link = playgroundPath + "?" + query.Encode()
	for name := range query {
		p.Values[name] = query.Get(name)
	}
	for _, problem := range problems {
		p.Problems[problem.Field] = problem.Text
		p.Values[problem.Field] = values.Get(problem.Field)
	}
	if len(problems) > 0 {
		p.Problem = "Nothing was simulated: a field above cannot be used as it is."
		return p, nil
	}
	p.Answer, err = v.simulate(form, of)
	if err != nil && v.Context().Err() != nil {
		return nil, err
	}
	if err != nil {
		p.Problem = err.Error()
	}
	return p, nil
}

// choose fills in the queues, and the policy that one is consumed with here.
func (p *played) choose(stats *admin.Stats, form playground.Form) {
	for i := range stats.Queues {
		if q := &stats.Queues[i].Queue; len(q.DeadLettersOf) == 0 {
			p.Queues = append(p.Queues, q.Name)
		}
	}
	slices.Sort(p.Queues)
	for i := range stats.Consumers {
		c := &stats.Consumers[i].Consumer
		if c.Queue != form.Queue || c.Policy == "" || c.Policy == form.PolicyText() {
			continue
		}
		used := form
		if err := used.Policy.UnmarshalText([]byte(c.Policy)); err == nil && used.PolicyText() != form.PolicyText() {
			p.Used, p.UsedLink = c.Policy, playgroundPath+"?"+used.Query().Encode()
		}
	}
}

// settingsOf are the settings of a queue; of none if its name is empty.
func (v *view) settingsOf(queue string) (of playground.Settings, err error) {
	if queue == "" {
		return of, nil
	}
	found, err := v.api.Queue(v.Context(), queue)
	if err != nil {
		return of, err
	}
	if of.Queue, err = plan.ReadQueue(found.Attributes); err == nil {
		err = of.Queue.ReadDeadLetter(found.DeadLetterAttributes)
	}
	of.Known = len(found.Attributes) > 0
	return of, err
}

// errBusy is the error of a simulation for which there is no place.
var errBusy = errors.New("others simulate now, one at a time since this process also has queues to serve: try again in a moment")

// playWait is how long a form waits for the simulations of others.
const playWait = 10 * time.Second

// simulate answers a form when no other is being answered.
func (v *view) simulate(form playground.Form, of playground.Settings) (*playground.Answer, error) {
	waiting, cancel := context.WithTimeout(v.Context(), playWait)
	defer cancel()
	select {
	case v.playing <- struct{}{}:
		defer func() { <-v.playing }()
	case <-waiting.Done():
		return nil, errBusy
	}
	return playground.Ask(v.Context(), form, of)
}

// Picture and Retries are drawn by this program, which escapes every text in them.
func (p *played) Picture() template.HTML { return template.HTML(p.Answer.Picture) } //nolint:gosec // G203: see above
func (p *played) Retries() template.HTML { return template.HTML(p.Answer.Retries) } //nolint:gosec // G203: see above

// Findings are what conflicts with the settings of the queue.
func (p *played) Findings() (all []attention) {
	for _, f := range p.Answer.Findings {
		l := levelNote
		switch f.Severity {
		case plan.Error:
			l = levelBad
		case plan.Warning:
			l = levelWarning
		}
		all = append(all, attention{Level: l, Text: f.Problem, Remedy: sentence(f.Remedy)})
	}
	return all
}

// mostListed is how many attempts of a schedule the page lists.
const mostListed = 14

// Header has the names of the columns of Listed.
func (*played) Header() []string { return plan.Header() }

// Listed are the attempts of the schedule that are listed: the first ones, and the last.
func (p *played) Listed() []plan.ScheduledAttempt {
	all := p.Answer.Schedule.Attempts
	if len(all) <= mostListed {
		return all
	}
	return append(slices.Clone(all[:mostListed-1]), all[len(all)-1])
}

// Omitted is how many attempts are not listed.
func (p *played) Omitted() int { return max(0, len(p.Answer.Schedule.Attempts)-mostListed) }

// Given is the share of messages that are given up, as text.
func (p *played) Given() string {
	if p.Answer.GivenUp > 0 && p.Answer.GivenUp < 1e-6 {
		return "fewer than one message in a million is"
	}
	return playground.Percent(math.Round(p.Answer.GivenUp*1e6)/1e6) + " are"
}

// formField is a field of the form with its label and hint.
type formField struct{ Name, Label, Hint, Value, Problem string }

// Field is a field of text.
func (p *played) Field(name, label, hint string) formField {
	return formField{name, label, hint, p.Values[name], p.Problems[name]}
}

// slider is a control that selects a time.
type slider struct {
	Name, Label, Text, Texts string
	At, Last                 int
}

// Slider is a control at a position; if its first position means something else than a time, first says what.
func (*played) Slider(name, label string, at int, first string) slider {
	texts := make([]string, len(playground.Times))
	for i := range texts {
		texts[i] = playground.TimeText(i)
	}
	if first != "" {
		texts[0] = first
	}
	return slider{name, label, texts[at], strings.Join(texts, "|"), at, len(texts) - 1}
}

// Kinds and Jitters are what can be chosen.
func (*played) Kinds() []string   { return playground.Kinds }
func (*played) Jitters() []string { return playground.Jitters }
