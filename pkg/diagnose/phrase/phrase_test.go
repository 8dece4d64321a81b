package phrase

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

func TestPhrases(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	tests := []struct{ got, want string }{
		{Names(nil), "none"}, {Names(five[:4]), "a, b, c, d"}, {Names(five), "a, b, c, d, +1"},
		{And(nil), ""}, {And(five[:1]), "a"}, {And(five[:3]), "a, b and c"}, {Fraction(1, 2), "1/2"}, {AreNames([]string{"n1"}), "n1 is"}, {AreNames([]string{"n1", "n2"}), "n1, n2 are"},
		{Or(five[:1]), "a"}, {Or(five[:3]), "a, b or c"}, {Or(five), "a, b, c, d or 1 more"},
		{Count(1, "GPU"), "1 GPU"}, {Count(2, "worker"), "2 workers"}, {Count(2, "entry"), "2 entries"}, {Count(2, "class"), "2 classes"},
		{Amount("nvidia.com/gpu", 8), "8 GPUs"}, {Amount(corev1.ResourceCPU, 32000), "32 cpu"}, {Amount(corev1.ResourceMemory, 1<<30), "1Gi memory"}, {Amount(corev1.ResourcePods, 2), "2 pod slots"},
		{Amount("amd.com/gpu", 1), "1 GPU"}, {Amount("rdma/hca", 2), "2 rdma/hca"}, {Amount(corev1.ResourceEphemeralStorage, 1<<40), "1Ti ephemeral-storage"}, {Amount(corev1.ResourceCPU, 500), "500m cpu"},
		{Resource("nvidia.com/mig-1g.10gb"), "nvidia.com/mig-1g.10gb"}, {Resource("amd.com/gpu"), "GPUs"}, {Resource(corev1.ResourcePods), "pod slots"}, {Resource(corev1.ResourceMemory), "memory"},
		{Quantity(corev1.ResourceMemory, 3<<29), "1536Mi"}, {Quantity("hugepages-2Mi", 1<<30), "1Gi"}, {Or(nil), "none"}, {Count(int64(0), "member"), "0 members"}, {Age(200 * time.Minute), "3h20m"}, {Age(4 * time.Second), "4s"},
		{Progress(nil, time.Unix(0, 0)), ""}, {Progress(&gang.Progress{Percent: new(int32(42)), End: time.Unix(720, 0)}, time.Unix(0, 0)), "42%, about 12m left"},
		{Progress(&gang.Progress{Percent: new(int32(42)), End: time.Unix(720, 0)}, time.Unix(721, 0)), "42%"},
		{Member("ps"), "PS"}, {Member("gpu"), "gpu member"}, {Member("workers"), "worker"}, {Member("process"), "process"}, {Member("s"), "s"}, {Member("Launcher"), "launcher"}, {Member("Worker#2"), "worker"}, {Role("Worker#2"), "Worker"}, {Role("PS"), "PS"},
		{Verb(1, "holds", "hold"), "holds"}, {Verb(2, "holds", "hold"), "hold"},
		{Clock(time.Unix(3600, 0), time.Unix(0, 0)), "01:00"}, {Clock(time.Unix(90000, 0), time.Unix(0, 0)), "1970-01-02 01:00"},
		{Age(280 * time.Second), "4m40s"}, {Age(-time.Second), "0s"}, {Member("PS"), "PS"}, {Member("Worker"), "worker"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
