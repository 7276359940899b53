package review

import (
	"fmt"
	"strings"

	"github.com/reprise-sqs/reprise/plan"
)

// Text is the report for people: the schedule of each queue as a table and a chart, the findings
// with their remedies, and the least permissions. Lines of the chart have at most so many columns.
func (r Report) Text(columns int, unicode bool) string {
	var b strings.Builder
	for i, review := range r.Reviews {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "queue     %s%s\n", review.Name, inParentheses(review.place()))
		fmt.Fprintf(&b, "settings  %s\n", review.settings())
		p := r.Policy
		p.MaxAttempts = plan.MaxAttempts(p, review.Queue) // a policy without a limit takes the queue's
		fmt.Fprintf(&b, "policy    %s\n\n", policyText(p))
		b.WriteString(review.Schedule.String())
		b.WriteString("\nwhen each attempt comes: earliest to latest, the dot is the expected time\n\n")
		b.WriteString(Chart(review.Schedule, columns, unicode))
		b.WriteString("\n")
		writeFindings(&b, review.Findings)
		if review.Permissions != nil {
			fmt.Fprintf(&b, "\nleast permissions\n\n%s\n", review.Permissions)
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\nnot read\n\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%s\n", n)
	}
	return b.String()
}

func writeFindings(b *strings.Builder, found []plan.Finding) {
	if len(found) == 0 {
		b.WriteString("no findings\n")
	}
	for _, f := range found {
		fmt.Fprintf(b, "%-8s %s\n         %s\n         remedy: %s\n", f.Severity, f.Code, f.Problem, f.Remedy)
	}
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return "  (" + text + ")"
}

// String is FILE:LINE: TEXT.
func (n Note) String() string {
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Text)
	}
	return n.File + ": " + n.Text
}

// Markdown is the report for a comment on a change: a summary, and of each queue the findings and
// the schedule.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Retry plan\n\nPolicy: %s\n\n| queue | errors | warnings | ends, as expected |\n|---|---|---|---|\n", code(policyText(r.Policy)))
	for _, review := range r.Reviews {
		one := Report{Reviews: []Review{review}}
		errs := one.Count(plan.Error)
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", code(review.Name), errs, one.Count(plan.Warning)-errs, review.Schedule.Expected)
	}
	for _, review := range r.Reviews {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", code(review.Name), strings.Join(strings.Fields(code(review.place())+" "+cell(review.settings())), " "))
		if len(review.Findings) == 0 {
			b.WriteString("No findings.\n\n")
		} else {
			b.WriteString("| severity | finding | what happens | remedy |\n|---|---|---|---|\n")
			for _, f := range review.Findings {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Severity, code(f.Code), cell(f.Problem), cell(f.Remedy))
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "<details><summary>Schedule</summary>\n\n```text\n%s```\n\n</details>\n", review.Schedule)
		if review.Permissions != nil {
			fmt.Fprintf(&b, "\n<details><summary>Least permissions</summary>\n\n```json\n%s\n```\n\n</details>\n", review.Permissions)
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\nNot read:\n\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", cell(n.String()))
	}
	return b.String()
}

// code and cell keep text of others, such as names in templates, from being more than text: from breaking a table, and from
// links, images, HTML, mentions and references in a comment that speaks in the name of the check.

// code is text as code, in which Markdown means nothing.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.NewReplacer("`", "'", "|", "\\|", "\n", " ", "\r", " ").Replace(text) + "`"
}

// cell is text as text. No backslash keeps GitHub from linking mentions, references and addresses; an empty comment does.
func cell(text string) string { return plainText.Replace(text) }

var plainText = strings.NewReplacer(
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "$", "\\$", "[", "\\[", "]", "\\]", "|", "\\|",
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ",
	"@", "@"+nothing, "#", "#"+nothing, "://", ":"+nothing+"//", "www.", "www"+nothing+".",
)

const nothing = "<!-- -->"
