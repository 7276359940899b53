package review

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/reprise-sqs/reprise/plan"
)

// The parts of SARIF 2.1.0 that are used. See
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// codeNotRead is the rule of notes.
const codeNotRead = "not-read"

var sarifLevels = map[plan.Severity]string{plan.Error: "error", plan.Warning: "warning", plan.Info: "note"}

// SARIF is the report for code scanning. version is the program's.
func (r Report) SARIF(version string) ([]byte, error) {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "reprise plan", Version: version, Rules: []sarifRule{}}
	add := func(code, level, text string, where sarifLocation) {
		i := slices.IndexFunc(run.Tool.Driver.Rules, func(rule sarifRule) bool { return rule.ID == code })
		if i < 0 {
			i = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{code})
		}
		run.Results = append(run.Results, sarifResult{code, i, level, sarifMessage{text}, []sarifLocation{where}})
	}
	for _, review := range r.Reviews {
		where := sarifLocation{Logical: []sarifLogical{{review.Name, "resource"}}}
		if !review.Deployed && !review.Assumed {
			where.Physical = physical(review.Source, review.Line)
		}
		for _, f := range review.Findings {
			add(f.Code, sarifLevels[f.Severity], fmt.Sprintf("queue %s: %s Remedy: %s", review.Name, f.Problem, f.Remedy), where)
		}
	}
	for _, n := range r.Notes {
		add(codeNotRead, "note", n.Text, sarifLocation{Physical: physical(n.File, n.Line)})
	}
	return indented(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func physical(file string, line int) *sarifPhysical {
	p := &sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: filepath.ToSlash(file)}).String()}}
	if line > 0 {
		p.Region = &sarifRegion{line}
	}
	return p
}
