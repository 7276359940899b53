package operate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Table is text in columns.
type Table struct {
	Header []string
	Right  []bool // columns of numbers
	Rows   [][]string
}

// columnGap is how many spaces are between two columns, minColumn and maxColumn how narrow and how
// wide a column gets. Only the last may be wider.
const (
	columnGap = 2
	minColumn = 10
	maxColumn = 80
	maxCell   = 4 << 10 // bytes
)

// Text is the table in lines of at most width columns, the last column cut off if need be. The
// text of others is escaped.
func (t Table) Text(width int) string {
	rows := make([][]string, 0, len(t.Rows)+1)
	widths := make([]int, len(t.Header))
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		cells := make([]string, len(t.Header))
		for i := range cells {
			cells[i] = terminal.Line(row[i], maxCell)
			if i < len(cells)-1 {
				cells[i] = cut(cells[i], maxColumn)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		rows = append(rows, cells)
	}
	last := len(widths) - 1
	before := 0
	for _, w := range widths[:last] {
		before += w + columnGap
	}
	room := max(width-before, minColumn)
	var b strings.Builder
	for _, cells := range rows {
		var line strings.Builder
		for i, cell := range cells {
			if i == last && !t.Right[i] {
				line.WriteString(cut(cell, room))
				continue
			}
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.Right[i] {
				line.WriteString(padding + cell)
			} else {
				line.WriteString(cell + padding)
			}
			line.WriteString(strings.Repeat(" ", columnGap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// cut is at most n characters of text, the last three dots if there are more.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-3]) + "..."
}

// WithoutEmpty returns t without the columns that are empty in every row.
func (t Table) WithoutEmpty() Table {
	out := Table{Rows: make([][]string, len(t.Rows))}
	for i, name := range t.Header {
		if len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		out.Header, out.Right = append(out.Header, name), append(out.Right, t.Right[i])
		for j, row := range t.Rows {
			out.Rows[j] = append(out.Rows[j], row[i])
		}
	}
	return out
}
