package resubmit

import "testing"

func TestWord(t *testing.T) {
	for set, want := range map[string]string{
		"spec.tfReplicaSpecs.Worker.replicas=8":      "--workers=8",
		"spec.tfReplicaSpecs.PS.replicas=2":          "--ps=2",
		"spec.tfReplicaSpecs.Chief.replicas=1":       "--chief=1",
		"spec.tfReplicaSpecs.Evaluator.replicas=1":   "--evaluator=1",
		"spec.mpiReplicaSpecs.Worker.replicas=4":     "--workers=4",
		"spec.pytorchReplicaSpecs.Worker.replicas=3": "--workers=4",
		"spec.parallelism=6":                         "--workers=6",
		"spec.tfReplicaSpecs.Worker.replicas=many":   "--set=spec.tfReplicaSpecs.Worker.replicas=many",
		"spec.successPolicy=AllWorkers":              "--set=spec.successPolicy=AllWorkers",
	} {
		if got := word(set); got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
	}
}
