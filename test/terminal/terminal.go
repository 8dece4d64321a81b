// Package terminal runs programs on a pseudo terminal and knows what is on its screen: for tests that type, and for pictures.
package terminal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Terminal is a program that runs on a terminal of its own.
type Terminal struct {
	cmd  *exec.Cmd
	file *os.File
	done chan struct{}

	mu     sync.Mutex
	screen *Screen
}

// Start starts a program on a terminal of the given size in columns and rows. Stop must be called.
func Start(cmd *exec.Cmd, columns, rows int) (*Terminal, error) {
	ours, theirs, err := open(columns, rows)
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = ownTerminal()
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start %s on a terminal: %w", cmd.Path, err)
	}
	t := &Terminal{cmd: cmd, file: ours, done: make(chan struct{}), screen: NewScreen(columns, rows)}
	go t.read()
	return t, nil
}

// read ends when the program and its children have closed the terminal, which reads as an error.
func (t *Terminal) read() {
	defer close(t.done)
	buf := make([]byte, 4096)
	for {
		n, err := t.file.Read(buf)
		t.mu.Lock()
		t.screen.Write(buf[:n])
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type types keys.
func (t *Terminal) Type(keys string) error {
	_, err := t.file.WriteString(keys)
	return err
}

// Screen is what is on the screen now.
func (t *Terminal) Screen() *Screen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.clone()
}

// WaitFor waits until the screen is as expected, or reports what it was instead.
func (t *Terminal) WaitFor(ctx context.Context, wanted func(*Screen) bool) (*Screen, error) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		s := t.Screen()
		if wanted(s) {
			return s, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return s, fmt.Errorf("the screen is not as wanted: %w\n%s", ctx.Err(), s)
		}
	}
}

// Stop ends the program, waits for it, and returns how it ended.
func (t *Terminal) Stop() error {
	_ = t.cmd.Process.Signal(os.Interrupt) // it may have ended
	kill := time.AfterFunc(5*time.Second, func() { _ = t.cmd.Process.Kill() })
	defer kill.Stop()
	err := t.cmd.Wait()
	t.file.Close()
	<-t.done
	return err
}
