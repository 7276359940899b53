package cli

import (
	"cmp"
	"fmt"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/review"
)

// templateSubjects reads the queues of a SAM or CloudFormation template. Its account, and its region
// unless that is given, are not known.
func templateSubjects(file string, text []byte, parameters map[string]string, region string) ([]review.Subject, []review.Note, error) {
	survey, err := template.LoadSurvey(text, template.Options{
		File: file, Parameters: parameters, Region: cmp.Or(region, "REGION"), AccountID: "ACCOUNT",
		QueueURL: func(name string) string {
			return "https://sqs." + cmp.Or(region, "REGION") + ".amazonaws.com/ACCOUNT/" + name
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w; pass a SAM or CloudFormation template, or the output of terraform show -json", err)
	}
	subjects := make([]review.Subject, len(survey.Queues))
	for i, q := range survey.Queues {
		subjects[i] = review.Subject{
			Name: q.Name, Source: file, Line: q.Line, Attributes: q.Attributes, Unknown: q.Unknown, FunctionTimeout: q.FunctionTimeout,
			Wholesale: q.Wholesale, OnFailure: q.OnFailure,
		}
	}
	var notes []review.Note
	for _, n := range survey.Notes {
		place := n.Resource
		if n.Property != "" {
			place += ", " + n.Property
		}
		notes = append(notes, review.Note{File: n.File, Line: n.Line, Text: place + ": " + n.Text})
	}
	return review.Link(subjects), notes, nil
}
