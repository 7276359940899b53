package operate

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// code is a number that tells causes apart: a status or an exit code.
var code = regexp.MustCompile(`(?i)\b(status|code|exit|http|answered|sqlstate)( code| status)?[ :=]*\(?\d{1,5}\b`)

// codeWords are those of code.
var codeWords = []string{"status", "code", "exit", "http", "answered", "sqlstate"}

// findCode finds the first match of code. The expression took a third of the time of a million
// letters, so it serves only texts that are not ASCII, in which letters have more forms.
func findCode(text string) (from, to int, found bool) {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			if at := code.FindStringIndex(text); at != nil {
				return at[0], at[1], true
			}
			return 0, 0, false
		}
	}
	for i := range len(text) {
		if i > 0 && isWord(text[i-1]) || !beginsCode(text[i]) {
			continue
		}
		for _, word := range codeWords {
			if end := codeEnd(text, afterWord(text, i, word)); end > 0 {
				return i, end, true
			}
		}
	}
	return 0, 0, false
}

// beginsCode reports whether one of codeWords begins with c.
func beginsCode(c byte) bool {
	switch c | 0x20 {
	case 's', 'c', 'e', 'h', 'a':
		return true
	}
	return false
}

// afterWord returns where a word that begins at i ends, whatever its case, and 0 if there is another.
func afterWord(text string, i int, word string) int {
	if end := i + len(word); end <= len(text) && strings.EqualFold(text[i:end], word) {
		return end
	}
	return 0
}

// codeEnd returns where the code ends whose word ends at i, and 0 if there is none.
func codeEnd(text string, i int) int {
	if i == 0 {
		return 0
	}
	for _, word := range []string{" code", " status"} {
		if end := afterWord(text, i, word); end > 0 {
			i = end
			break
		}
	}
	for i < len(text) && (text[i] == ' ' || text[i] == ':' || text[i] == '=') {
		i++
	}
	if i < len(text) && text[i] == '(' {
		i++
	}
	const mostDigits = 5
	end := i
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	if end == i || end-i > mostDigits || end < len(text) && isWord(text[end]) {
		return 0
	}
	return end
}

func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' }
