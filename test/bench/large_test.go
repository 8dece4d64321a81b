package bench

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// BenchmarkLarge runs commands in a cluster of 5,000 nodes and 50,000
// pods, beside kubectl's list of all pods in the same run: figures of one
// machine say little, their ratio says more. The cluster is a real API server
// whose nodes and pods are objects only: nothing runs on them, and nothing
// changes them. To fill it takes minutes.
//
// GANGCTL_BENCH_PODS is another number of pods. GANGCTL_BENCH_CLUSTER is the data
// dir of a cluster to keep: the next run finds it filled, and leaves it running.
func BenchmarkLarge(b *testing.B) {
	program := installed(b)
	if os.Getenv(sandboxtest.BinaryEnv) == "" {
		b.Skip(sandboxtest.BinaryEnv + " names no program: use make bench-large")
	}
	kubeconfig := cluster(b)
	publishTo(b, program, kubeconfig)
	for _, c := range commands() {
		b.Run(c.name, func(b *testing.B) { repeat(b, kubeconfig, c.least, append([]string{program}, c.args...)...) })
	}
	b.Run("top-watch", func(b *testing.B) { watchFor(b, kubeconfig, program, "top", "job", "-A", "--watch") })
	b.Run("why-pending-save", func(b *testing.B) {
		repeat(b, kubeconfig, 3, append(append([]string{program}, subjectArgs...), "--source=cluster", "--save", filepath.Join(b.TempDir(), "snapshot.yaml.gz"))...)
	})
	b.Run("kubectl-get-pods", func(b *testing.B) {
		kubectl, err := exec.LookPath("kubectl")
		if err != nil {
			b.Skip("kubectl is not installed")
		}
		repeat(b, kubeconfig, 0, kubectl, "get", "pods", "-A", "-o", "json")
	})
}

// installed copies the program of GANGCTL_BIN, as every way to install one does. Of a file that a
// linker has just written the kernel maps larger pieces at once, and counts them.
func installed(b *testing.B) string {
	program := os.Getenv(sandboxtest.GangctlEnv)
	if program == "" {
		b.Skip(sandboxtest.GangctlEnv + " names no gangctl: build it, or use make bench-large")
	}
	from, err := os.Open(program)
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(b.TempDir(), filepath.Base(program))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		b.Fatal(err)
	}
	// In pieces: of what is written at once the kernel maps larger pieces, too.
	_, err = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	if err := errors.Join(err, to.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// repeat runs a command b.N times. An exit code below least means that it did
// not do what is measured. It returns what the last run printed.
func repeat(b *testing.B, kubeconfig string, least int, command ...string) (output string) {
	var sum cost
	for b.Loop() {
		c := measure(b, kubeconfig, command...)
		if c.Exit < least || least == 0 && c.Exit != 0 {
			b.Fatalf("%v: exit code %d\n%s", command, c.Exit, c.Output)
		}
		sum.Wall, sum.CPU, sum.Written = sum.Wall+c.Wall, sum.CPU+c.CPU, c.Written
		sum.Resident = max(sum.Resident, c.Resident)
		output = c.Output
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op") // the process that measures is in it
	b.ReportMetric(float64(sum.Wall)/n/float64(time.Millisecond), "ms-wall")
	b.ReportMetric(float64(sum.CPU)/n/float64(time.Millisecond), "ms-cpu")
	b.ReportMetric(float64(sum.Resident)/1e6, "MB-resident")
	b.ReportMetric(float64(sum.Written)/1e6, "MB-printed")
	return output
}

// pods is how many pods the cluster gets.
func pods(b *testing.B) int {
	text := os.Getenv("GANGCTL_BENCH_PODS")
	if text == "" {
		return 50000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		b.Fatalf("GANGCTL_BENCH_PODS=%s: want a number of at least 1000", text)
	}
	return n
}
