package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// BenchmarkSubmit is how long a submission takes, from the start of the program to its end, against a sandbox.
func BenchmarkSubmit(b *testing.B) {
	program := os.Getenv("GANGCTL_BIN")
	if program == "" || os.Getenv(sandboxtest.BinaryEnv) == "" {
		b.Skipf("GANGCTL_BIN or %s names no program: use make bench", sandboxtest.BinaryEnv)
	}
	dir := filepath.Join(b.TempDir(), "sandbox")
	up := func(words ...string) error {
		cmd := exec.CommandContext(context.WithoutCancel(b.Context()), os.Getenv(sandboxtest.BinaryEnv), append(words, "--data-dir", dir)...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		return cmd.Run()
	}
	b.Cleanup(func() {
		if err := up("down"); err != nil {
			b.Error(err)
		}
	})
	if err := up("up"); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		cmd := exec.CommandContext(b.Context(), program, "--kubeconfig", filepath.Join(dir, "kubeconfig"), "submit", "tf", fmt.Sprintf("job-%d", i), "--image", "x", "--workers", "2", "--", "true")
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median")
}
