// Package shell completes gangctl's command line in real shells, with the scripts that are shipped.
package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Shell is a shell that gangctl completes for.
type Shell struct {
	Name string
	// complete completes a command line and returns what the shell offers, or shows.
	complete func(ctx context.Context, s Session, line string) (string, error)
}

// Session is where a command line is completed.
type Session struct {
	// Scripts is the directory of the completion scripts.
	Scripts string
	// Env is the environment; gangctl is found in its PATH, and nothing of the user's own settings.
	Env []string
	// Home is an empty directory.
	Home string
}

// Shells are those whose scripts can be tested here.
func Shells() []Shell {
	return []Shell{{"bash", bash}, {"zsh", zsh}, {"fish", fish}}
}

// Complete completes the last word of a line and returns what the shell offers, with descriptions. What reaches the terminal otherwise is
// part of it.
func (s Shell) Complete(ctx context.Context, session Session, line string) (string, error) {
	output, err := s.complete(ctx, session, line)
	if err != nil {
		return "", fmt.Errorf("complete %q in %s: %w\n%s", line, s.Name, err, output)
	}
	return strings.TrimSpace(output), nil
}

// words stands for the one function of the package bash-completion that the script calls (it splits at blanks only), and for
// compopt, which bash allows only while the user presses tab.
const words = `compopt() { :; }
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
`

// listing is COMP_TYPE when bash lists what is possible, with descriptions.
const listing = "63"

func bash(ctx context.Context, s Session, line string) (string, error) {
	script := words + `source "$1/gangctl.bash"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=` + listing + `; COLUMNS=120
__start_gangctl
printf '%s\n' "${COMPREPLY[@]}"`
	typed := strings.Split(line, " ")
	return run(s, exec.CommandContext(ctx, "bash", append([]string{"--norc", "-c", script, "bash", s.Scripts}, typed...)...))
}

func fish(ctx context.Context, s Session, line string) (string, error) {
	script := `source "$argv[1]/gangctl.fish"; complete -C "$argv[2]"`
	return run(s, exec.CommandContext(ctx, "fish", "--no-config", "-c", script, s.Scripts, line))
}

func run(s Session, cmd *exec.Cmd) (string, error) {
	cmd.Env = s.environment()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s Session) environment() []string {
	return append(os.Environ(), append(s.Env, "HOME="+s.Home, "XDG_CONFIG_HOME="+filepath.Join(s.Home, ".config"), "XDG_DATA_HOME="+filepath.Join(s.Home, ".local"))...)
}
