// Command generate plays the sessions of pages and writes what they print into the pages: make transcript.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/gangctl/gangctl/test/transcript"
)

func main() {
	bin := flag.String("bin", "bin", "directory of gangctl and gangctl-sandbox")
	check := flag.Bool("check", false, "compare with the pages instead of writing them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, page := range flag.Args() {
		if err := play(ctx, *bin, page, *check); err != nil {
			fmt.Fprintf(os.Stderr, "error: %s: %v\n", page, err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, page)
	}
}

// play plays one page in a home of its own, in which no sandbox is left.
func play(ctx context.Context, bin, path string, check bool) (err error) {
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "transcript-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := transcript.Parse(string(text))
	if err != nil {
		return err
	}
	stage := &transcript.Stage{Bin: bin, Home: home, Pictures: filepath.Dir(path), Wait: time.Minute}
	defer func() { err = errors.Join(err, stage.End()) }()
	if check {
		return stage.Check(ctx, page)
	}
	if err := stage.Play(ctx, page); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(page.String()), 0o644)
}
