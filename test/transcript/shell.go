package transcript

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// shell is a bash that goes on from one line to the next.
type shell struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	mu     sync.Mutex
	number int
}

func startShell(ctx context.Context, dir string, env []string) (*shell, error) {
	cmd := exec.CommandContext(ctx, "bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Env = dir, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &shell{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	_, err = fmt.Fprintln(in, "exec 2>&1")
	return s, err
}

// types types a command and returns what it prints, on both streams, and its exit code. The command reads nothing.
func (s *shell) types(command string) (lines []string, code int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	mark := fmt.Sprintf("--- end of %d: ", s.number)
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null; printf '\\n%s%%d\\n' $?\n", command, mark); err != nil {
		return nil, 0, fmt.Errorf("type %s: %w", command, err)
	}
	for {
		line, err := s.out.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		if end, ok := strings.CutPrefix(line, mark); ok {
			code, err = strconv.Atoi(end)
			return trim(lines), code, err
		}
		if err != nil {
			return lines, 0, fmt.Errorf("%s: the shell is gone: %w", command, err)
		}
		lines = append(lines, line)
	}
}

// trim leaves out empty lines at the end.
func trim(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func (s *shell) close() {
	s.in.Close()
	_ = s.cmd.Wait() // how it ended shows nothing that its lines did not
}
