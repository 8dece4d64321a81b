// Package bench measures the programs as whole processes. Its figures are in
// docs/benchmarks.md; `make bench` makes them again.
package bench

import (
	"os"
	"os/exec"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// BenchmarkStartup runs the command that does least, beside kubectl's in the
// same run: figures of one machine say little, their ratio says more.
func BenchmarkStartup(b *testing.B) {
	program := os.Getenv("GANGCTL_BIN")
	if program == "" {
		b.Skip("GANGCTL_BIN names no gangctl: use make bench")
	}
	b.Run("gangctl", func(b *testing.B) { startup(b, program, "version") })
	b.Run("kubectl", func(b *testing.B) {
		kubectl, err := exec.LookPath("kubectl")
		if err != nil {
			b.Skip("kubectl is not installed")
		}
		startup(b, kubectl, "version", "--client")
	})
}

func startup(b *testing.B, program string, args ...string) {
	file, err := os.Stat(program)
	if err != nil {
		b.Fatal(err)
	}
	repeat(b, os.Getenv(clientcmd.RecommendedConfigPathEnvVar), 0, append([]string{program}, args...)...)
	b.ReportMetric(float64(file.Size())/1e6, "MB-on-disk")
}
