package agreement

import (
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A TFJob must make exactly the pods that the gang has: as many of each role, by the names that the operator gives them.
func TestJobMakesThePodsOfTheGang(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		for _, g := range New(seed, Options{Gangs: 6}).Gangs {
			if g.Form != ByJob {
				continue
			}
			seen++
			for _, held := range []bool{true, false} {
				u, err := g.job("team", held)
				if err != nil {
					t.Fatal(err)
				}
				job := &kubeflowv1.TFJob{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, job); err != nil {
					t.Fatal(err)
				}
				var replicas int32
				for role, spec := range job.Spec.TFReplicaSpecs {
					replicas += *spec.Replicas
					if gated := len(spec.Template.Spec.SchedulingGates) > 0; gated != held {
						t.Errorf("seed %d, %s %s: gated %t", seed, g.Name, role, gated)
					}
					if spec.Template.Spec.Containers[0].Name != kubeflowv1.TFJobDefaultContainerName {
						t.Errorf("seed %d, %s %s: container %s", seed, g.Name, role, spec.Template.Spec.Containers[0].Name)
					}
				}
				if int(replicas) != len(g.Pods) || *job.Spec.RunPolicy.SchedulingPolicy.MinAvailable != g.Min {
					t.Errorf("seed %d: %s makes %d of %d pods", seed, g.Name, replicas, len(g.Pods))
				}
			}
			for _, p := range g.Pods {
				if memberOf(&g, p.Name[len(g.Name)+1:]) != p {
					t.Errorf("seed %d: %s is no member of %s", seed, p.Name, g.Name)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d TFJobs in 60 scenarios", seen)
	}
}

func TestClaimOf(t *testing.T) {
	for seed := range uint64(200) {
		s := New(seed, Options{Gangs: 6})
		for _, g := range s.Gangs {
			for _, p := range g.Pods {
				claim := claimOf(p, s.Templates)
				if (claim != nil) != (len(p.Spec.ResourceClaims) > 0) {
					t.Fatalf("seed %d: pod %s requests %v and gets %v", seed, p.Name, p.Spec.ResourceClaims, claim)
				}
				if claim != nil && claim.OwnerReferences[0].Name != p.Name {
					t.Errorf("seed %d: the claim of %s is owned by %v", seed, p.Name, claim.OwnerReferences)
				}
			}
		}
	}
}
