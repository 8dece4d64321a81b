package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// workload is a size of a benchmark.
type workload struct{ benchmark, size string }

// String returns the name as the benchmarks print it.
func (w workload) String() string { return w.benchmark + "/" + w.size }

// pattern returns what `go test -bench` matches the workload, and no other, with.
func (w workload) pattern() string {
	return "^BenchmarkPerfScheduling$/^" + regexp.QuoteMeta(w.benchmark) + "$/^" + regexp.QuoteMeta(w.size) + "$"
}

// measured is the label of the workloads that upstream measures; the others are tests of the benchmarks.
const measured = "performance"

// workloadsOf reads the workloads that are measured from the directory of a suite.
func workloadsOf(dir string) (all []workload, err error) {
	const file = "performance-config.yaml"
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("read workloads: %w", err)
	}
	var benchmarks []struct {
		Name      string
		Labels    []string
		Workloads []struct {
			Name   string
			Labels []string
		}
	}
	if err := yaml.Unmarshal(text, &benchmarks); err != nil {
		return nil, fmt.Errorf("read workloads: %s: %w", file, err)
	}
	for _, b := range benchmarks {
		for _, w := range b.Workloads {
			if slices.Contains(b.Labels, measured) || slices.Contains(w.Labels, measured) {
				all = append(all, workload{b.Name, w.Name})
			}
		}
	}
	return all, nil
}
