//go:build unix

package forward

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

var (
	// plainWord matches words that the shell does not change.
	plainWord = regexp.MustCompile(`^[A-Za-z0-9_./+:@%,-]+$`)
	// assignment matches assignments of variables, which may precede a command.
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9_./+:@%,=-]*$`)
)

// runnable asks the shell whether there is a command with the name that line begins with: a
// program, a builtin or a keyword of the shell. Only a run shows what the line does afterwards,
// and whether there is a command whose name the shell has to expand.
func runnable(line string) error {
	name := commandName(line)
	if name == "" {
		return nil
	}
	if strings.Contains(name, "/") {
		return executable(name)
	}
	err := exec.Command("/bin/sh", "-c", `command -v -- "$1" >/dev/null`, "sh", name).Run() //nolint:gosec,noctx // G204: the user's own command; it ends at once
	if _, answered := errors.AsType[*exec.ExitError](err); answered {
		return fmt.Errorf("there is no command %q: install it, correct the name, or write ./%s if it is a file in this directory", name, name)
	}
	if err != nil {
		return fmt.Errorf("the shell /bin/sh cannot be run: %w", err)
	}
	return nil
}

// executable returns why the program at path cannot be run. Some shells would only tell that the
// file exists.
func executable(path string) error {
	if _, err := exec.LookPath(path); err == nil {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a program in it", path)
	case err == nil:
		return fmt.Errorf("%s is not executable: chmod +x %s", path, path)
	}
	dir, err := os.Getwd()
	if err != nil || strings.HasPrefix(path, "/") {
		return fmt.Errorf("there is no program %s: correct the path", path)
	}
	return fmt.Errorf("there is no program %s in the directory %s: correct the path, or start this program elsewhere", path, dir)
}

// commandName is the name of the first command in line; "" if it is not known.
func commandName(line string) string {
	for _, word := range strings.Fields(line) {
		if end := strings.TrimRight(word, ";&"); end != word {
			word = end // what follows is another command
		}
		switch {
		case strings.HasPrefix(word, "PATH="), strings.HasPrefix(word, "-"):
			return "" // looked for elsewhere; an option of exec
		case assignment.MatchString(word), word == "exec":
		case plainWord.MatchString(word):
			return word
		default:
			return ""
		}
	}
	return ""
}
