// Package shell writes command lines that a POSIX shell reads back as they are meant, and reads such lines.
package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	shellquote "github.com/kballard/go-shellquote"
)

// Quote returns an argument such that every POSIX shell reads it as it is. One without special characters stays bare.
func Quote(arg string) string {
	if arg != "" && strings.IndexFunc(arg, special) < 0 && arg[0] != '=' { // zsh replaces an argument that begins with = by the path of a program
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// special reports whether a character may mean something to a shell, wherever it stands in an argument. Shells take what is not ASCII
// as it is, but for spaces.
func special(r rune) bool {
	if r > unicode.MaxASCII {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-+=:,./@%", r)
}

// Join returns the command line of an argv.
func Join(argv ...string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// Split returns the argv of a command line, or an error for one with a quote that does not end. It knows quotes and backslashes,
// and neither variables nor operators.
func Split(line string) ([]string, error) { return shellquote.Split(line) }
