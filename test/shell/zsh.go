package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gangctl/gangctl/test/terminal"
)

// zshrc loads the script as a system does that finds it in the fpath. One tab completes and lists; Ctrl-X m draws what all keys
// before it have changed, and then sets the title of the terminal.
const zshrc = `PROMPT='%%%% '
fpath=(%q $fpath)
autoload -Uz compinit && compinit -u -D
unsetopt list_ambiguous auto_menu list_beep beep
LISTMAX=500
mark() { zle -R; print -n '\e]0;marked\a' > /dev/tty }
zle -N mark
bindkey '^Xm' mark
`

// zsh types on a terminal, because zsh completes nowhere else.
func zsh(ctx context.Context, s Session, line string) (string, error) {
	if err := os.WriteFile(filepath.Join(s.Home, ".zshrc"), fmt.Appendf(nil, zshrc, s.Scripts), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "zsh", "-d", "-i") // -d: not the system's own settings
	cmd.Env = append(s.environment(), "ZDOTDIR="+s.Home, "TERM=xterm")
	term, err := terminal.Start(cmd, 120, 160)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Type("\x15exit\r"); _ = term.Stop() }()
	prompt := func(screen *terminal.Screen) bool { return strings.HasPrefix(screen.String(), "%") }
	if _, err := term.WaitFor(ctx, prompt); err != nil {
		return "", err
	}
	if err := term.Type(line + "\t\x18m"); err != nil {
		return "", err
	}
	screen, err := term.WaitFor(ctx, func(screen *terminal.Screen) bool { return screen.Title == "marked" })
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(screen.String(), "% "+strings.TrimSpace(line)), nil
}
