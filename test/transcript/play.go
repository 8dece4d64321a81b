package transcript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gangctl/gangctl/test/terminal"
)

// Stage is where pages are played.
type Stage struct {
	// Bin holds gangctl and gangctl-sandbox, by absolute path; Home is an empty directory, which is shown as /home/ann.
	Bin, Home string
	// Pictures is the directory that names of pictures are relative to.
	Pictures string
	// Wait is how long a step may take until it is as expected.
	Wait time.Duration
}

// Play types the commands of a page, and gives each the output that it has now. A command that fails where the page does not wait for
// something is an error, unless its exit code is an answer.
func (s *Stage) Play(ctx context.Context, p *Page) error {
	return s.play(ctx, p, func(step *Step, i int, sh *shell) error {
		c := &step.Commands[i]
		var until *regexp.Regexp
		if i == len(step.Commands)-1 {
			until = step.Until
		}
		lines, err := s.until(ctx, sh, c.Typed, func(lines []string, code int) error {
			if until != nil && !until.MatchString(strings.Join(lines, "\n")) {
				return fmt.Errorf("%s: its output does not match %s:\n%s", c.Typed, until, strings.Join(lines, "\n"))
			}
			if code != 0 && !answers(c.Typed, code) {
				return fmt.Errorf("%s: exit code %d\n%s", c.Typed, code, strings.Join(lines, "\n"))
			}
			return nil
		}, until != nil)
		c.Output = bounded(lines, step.Lines)
		return err
	})
}

// Check types the commands of a page and compares what they print with the page. Commands that only look are typed again
// until it is the same.
func (s *Stage) Check(ctx context.Context, p *Page) error {
	return s.play(ctx, p, func(step *Step, i int, sh *shell) error {
		c := &step.Commands[i]
		_, err := s.until(ctx, sh, c.Typed, func(lines []string, _ int) error {
			if lines = bounded(lines, step.Lines); !Alike(lines, c.Output) {
				return fmt.Errorf("$ %s\nprints\n%s\n\nand the page says\n%s", c.Typed, strings.Join(lines, "\n"), strings.Join(c.Output, "\n"))
			}
			return nil
		}, looks(c.Typed))
		return err
	})
}

// End takes a sandbox down that a page has left, if there is one.
func (s *Stage) End() error {
	down := exec.Command(filepath.Join(s.Bin, "gangctl-sandbox"), "down")
	down.Env = s.environment()
	if out, err := down.CombinedOutput(); err != nil {
		return fmt.Errorf("gangctl-sandbox down: %w\n%s", err, out)
	}
	return nil
}

// changes are commands that cannot be typed again.
var changes = regexp.MustCompile(`gangctl (submit|delete|suspend|resume|resubmit|install|uninstall|upgrade)|gangctl-sandbox (up|down|node)`)

func looks(command string) bool {
	return !changes.MatchString(command) || strings.Contains(command, "--dry-run")
}

// answers reports exit codes that are an answer: the verdicts of why-pending and fit, and a check that failed.
func answers(command string, code int) bool {
	return code >= 3 && code <= 9 && regexp.MustCompile(`gangctl (why-pending|fit|check|submit .*--dry-run=fit)`).MatchString(command)
}

func (s *Stage) play(ctx context.Context, p *Page, each func(*Step, int, *shell) error) error {
	dir := filepath.Join(s.Home, "work")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	env := s.environment()
	sh, err := startShell(ctx, dir, env)
	if err != nil {
		return err
	}
	defer sh.close()
	for i := range p.Steps {
		step := &p.Steps[i]
		for _, setup := range step.Setup {
			if lines, code, err := sh.types(setup); err != nil || code != 0 {
				return fmt.Errorf("setup: %s: %w, exit code %d\n%s", setup, err, code, strings.Join(lines, "\n"))
			}
		}
		if step.Screen != nil {
			if err := s.draw(ctx, sh, *step.Screen, env); err != nil {
				return err
			}
			continue
		}
		for j := range step.Commands {
			if err := each(step, j, sh); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Stage) environment() []string {
	env := []string{"PATH=" + s.Bin + ":" + os.Getenv("PATH"), "HOME=" + s.Home, "USER=ann", "LANG=C.UTF-8", "TERM=xterm-256color"}
	if dir := os.Getenv("TMPDIR"); dir != "" {
		env = append(env, "TMPDIR="+dir)
	}
	return env
}

// until types a command, again and again if it may be, until what it prints satisfies.
func (s *Stage) until(ctx context.Context, sh *shell, command string, satisfies func(lines []string, code int) error, again bool) ([]string, error) {
	deadline := time.NewTimer(s.Wait)
	defer deadline.Stop()
	look := time.NewTicker(300 * time.Millisecond)
	defer look.Stop()
	for {
		lines, code, err := sh.types(command)
		if err != nil {
			return nil, err
		}
		lines = Lasting(lines)
		for i := range lines {
			lines[i] = Normal(lines[i], s.Home, "/home/ann")
		}
		err = satisfies(lines, code)
		if err == nil || !again {
			return lines, err
		}
		select {
		case <-look.C:
		case <-deadline.C:
			return lines, err
		case <-ctx.Done():
			return lines, errors.Join(err, ctx.Err())
		}
	}
}

func bounded(lines []string, n int) []string {
	if n <= 0 || len(lines) <= n {
		return lines
	}
	return append(append([]string{}, lines[:n]...), "...")
}

// draw runs a command on a terminal and draws its screen. The command gets the environment of the shell, as far as it was exported.
func (s *Stage) draw(ctx context.Context, sh *shell, p Picture, env []string) error {
	exported, _, err := sh.types(`printf '%s' "$KUBECONFIG"`)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+p.Command)
	cmd.Env = append(env, "KUBECONFIG="+strings.Join(exported, ""))
	term, err := terminal.Start(cmd, p.Columns, p.Rows)
	if err != nil {
		return err
	}
	screen, err := term.WaitFor(ctx, func(screen *terminal.Screen) bool { return p.Until.MatchString(screen.String()) })
	if stopped := term.Stop(); err == nil && stopped != nil && ctx.Err() != nil {
		err = stopped
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.Command, err)
	}
	screen.Rewrite(func(row string) string { return Normal(row, s.Home, "/home/ann") })
	return os.WriteFile(filepath.Join(s.Pictures, p.File), []byte(screen.SVG("$ "+p.Command)), 0o644)
}
