package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gangctl/gangctl/test/howto"
	"github.com/gangctl/gangctl/test/transcript"
)

// played plays whole pages, each with a sandbox of its own, and compares what is printed with what they show.
func played(t *testing.T) {
	for _, path := range howto.Played() {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../..", path))
			must(t, err)
			page, err := transcript.Parse(string(text))
			must(t, err)
			bin := t.TempDir()
			must(t, os.Symlink(programs.gangctl, filepath.Join(bin, "gangctl")))
			must(t, os.Symlink(programs.sandbox, filepath.Join(bin, "gangctl-sandbox")))
			stage := &transcript.Stage{Bin: bin, Home: t.TempDir(), Pictures: t.TempDir(), Wait: time.Minute}
			t.Cleanup(func() { must(t, stage.End()) })
			if err := stage.Check(t.Context(), page); err != nil {
				t.Errorf("%s: %v\nIf that is right: make transcript", path, err)
			}
		})
	}
}
