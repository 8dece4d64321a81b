package scheduler

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// userHZ is the unit of the times in /proc, fixed by the kernel's interface.
const userHZ = 100

// cpuOf is the CPU time that processes have used.
func cpuOf(b testing.TB, pids ...int) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, pid := range pids {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		for _, at := range []int{11, 12} { // user and system
			ticks, err := strconv.ParseInt(fields[at], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(ticks) * time.Second / userHZ
		}
	}
	return sum
}

// residentOf is the most memory that a process ever had, in MiB.
func residentOf(b testing.TB, pid int) int {
	b.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return kib >> 10
		}
	}
	b.Fatalf("process %d has no VmHWM", pid)
	return 0
}

// writesTo counts the writes that an API server has answered, without those that create pods and groups, which the measurement makes, and
// without those of nodes.
func writesTo(ctx context.Context, b testing.TB, client kubernetes.Interface) int {
	b.Helper()
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for _, m := range metricsOf(b, text)["apiserver_request_total"].GetMetric() {
		l := labelsOf(m)
		create := l["verb"] == "POST" && l["subresource"] == "" && (l["resource"] == "pods" || l["resource"] == "podgroups")
		switch l["verb"] {
		case "POST", "PUT", "PATCH", "DELETE", "APPLY":
			if !create && l["resource"] != "nodes" && l["resource"] != "leases" {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

// metricsOf are the metrics that a program serves, by name.
func metricsOf(b testing.TB, text []byte) map[string]*dto.MetricFamily {
	b.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	return families
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
