package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// write writes a file to a new directory, and returns the directory.
func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWorkloadsOf(t *testing.T) {
	got, err := workloadsOf(write(t, "performance-config.yaml", `
- name: Gangs
  workloads:
  - name: small
    labels: [integration-test, short]
  - name: large.1
    labels: [performance]
- name: All
  labels: [performance]
  workloads:
  - name: one
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []workload{{"Gangs", "large.1"}, {"All", "one"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := got[0].pattern(), `^BenchmarkPerfScheduling$/^Gangs$/^large\.1$`; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
	if _, err := workloadsOf(t.TempDir()); err == nil {
		t.Error("a directory without workloads was read")
	}
	if _, err := workloadsOf(write(t, "performance-config.yaml", "name: Gangs")); err == nil {
		t.Error("what is no list was read")
	}
}

func TestReadMeasurement(t *testing.T) {
	var m measurement
	err := m.read(write(t, "Benchmark.json", `{"version": "v1", "dataItems": [
		{"data": {"Average": 120.5, "Perc50": 1}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput"}},
		{"data": {"Duration": 25}, "unit": "s", "labels": {"Metric": "SchedulingDuration"}},
		{"data": {"Average": 7}, "unit": "MB", "labels": {"Metric": "MemoryUsage"}}]}`))
	if err != nil || !slices.Equal(m.throughputs, []float64{120.5}) || !slices.Equal(m.durations, []float64{25}) {
		t.Errorf("read %+v, %v", m, err)
	}
	if err := m.read(t.TempDir()); err == nil {
		t.Error("a benchmark that measured nothing was read")
	}
	if err := m.read(write(t, "Benchmark.json", "{")); err == nil {
		t.Error("what is no JSON was read")
	}
}

func TestTable(t *testing.T) {
	rows := table{
		{workload: workload{"Gangs", "3000Pods"}, stock: measurement{[]float64{100, 300, 200}, []float64{20, 30}}, ours: measurement{[]float64{500}, []float64{8}}},
		{workload: workload{"Gangs", "3Pods"}, stock: measurement{[]float64{100}, []float64{2}}, ours: measurement{nil, []float64{4}}},
	}
	const want = `| benchmark | workload | pods/s, stock | ours | ratio | seconds, stock | ours | ratio |
|---|---|---|---|---|---|---|---|
| Gangs | 3000Pods | 200 | 500 | 2.5 | 20.0 | 8.0 | 2.5 |
| Gangs | 3Pods | 100 |  |  | 2.0 | 4.0 | 0.5 |
`
	if got := rows.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
