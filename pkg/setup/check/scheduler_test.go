package check

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

func volcanoRuns(s *fixture) {
	s.Deployment("volcano-system", "volcano-scheduler", "volcanosh/vc-scheduler:v1.12")
	s.Lease("volcano-scheduler", 3*time.Second)
}

func TestSchedulersAlive(t *testing.T) {
	test(t, Cluster(), "scheduler-alive", []expected{
		{name: "healthy", status: OK, wantText: []string{"gang-scheduler: Deployment gangctl-system/gang-scheduler 1/1 ready", "lease gangctl-system/gang-scheduler renewed 2s ago"}},
		{name: "it has just bound", change: func(s *fixture) {
			s.Event("Pod", "team", "a", "gang-scheduler", "Scheduled", "assigned", 5*time.Second)
		}, status: OK, wantText: []string{"bound a pod 5s ago"}},
		{name: "none", change: func(s *fixture) { s.remove("gang-scheduler") }, status: Fail, wantText: []string{"no gang scheduler gives a sign of life", "gangctl install scheduler", "check --smoke"}},
		{name: "the default scheduler is none of gangs", change: func(s *fixture) {
			s.remove("gang-scheduler")
			s.Lease("kube-scheduler", time.Second)
		}, status: Fail, wantText: []string{"default-scheduler: lease"}},
		{name: "only Volcano", change: func(s *fixture) {
			s.remove("gang-scheduler")
			volcanoRuns(s)
		}, status: Warn, wantText: []string{"volcano: Deployment volcano-system/volcano-scheduler", "is not installed", "gangctl submit --scheduler NAME"}},
		{name: "outside of the cluster, and has bound lately", change: func(s *fixture) {
			s.remove("gang-scheduler")
			s.Event("Pod", "team", "a", "gang-scheduler", "Scheduled", "assigned", time.Minute)
		}, status: OK, wantText: []string{"gang-scheduler: bound a pod 60s ago"}},
		{name: "outside of the cluster, and has bound long ago", change: func(s *fixture) {
			s.remove("gang-scheduler")
			s.pod("team", "a", "gang-scheduler", "n1")
		}, status: Warn, wantText: []string{"has bound pods", "whether it lives is unknown"}},
		{name: "its lease has run out", change: func(s *fixture) {
			s.S.Leases = nil
			s.Lease("gang-scheduler", 10*time.Minute)
		}, status: Fail, wantText: []string{"gang-scheduler is down", "renewed 10m ago", "logs deployment/gang-scheduler"}},
		{name: "scaled to zero", change: func(s *fixture) {
			zero := int32(0)
			s.S.Leases = nil
			d := s.deployment("gang-scheduler")
			d.Spec.Replicas, d.Status.ReadyReplicas = &zero, 0
		}, status: Fail, wantText: []string{"is down", "0/0 ready", "it is scaled to 0: kubectl -n gangctl-system scale deployment/gang-scheduler --replicas=1"}},
		{name: "another one is down, too", change: func(s *fixture) {
			s.Deployment("volcano-system", "volcano-scheduler", "volcanosh/vc-scheduler:v1.12").Status.ReadyReplicas = 0
		}, status: Fail, wantText: []string{"volcano is down", "gang-scheduler: Deployment"}},
		{name: "it answers to other names", change: func(s *fixture) {
			s.deployment("gang-scheduler").Spec.Template.Spec.Containers[0].Args = []string{"scheduler", "--serve=volcano,kube-batch"}
		}, status: OK, wantText: []string{"volcano: Deployment gangctl-system/gang-scheduler", "kube-batch: Deployment gangctl-system/gang-scheduler"}},
	})
}

func TestUnservedPods(t *testing.T) {
	test(t, Cluster(), "pods-unserved", []expected{
		{name: "none waits", status: OK, wantText: []string{"no pod waits"}},
		{name: "they have a scheduler", change: func(s *fixture) { s.pod("team", "a", "gang-scheduler", "") }, status: OK, wantText: []string{"1 pod for gang-scheduler"}},
		{name: "the default scheduler cannot be seen", change: func(s *fixture) { s.pod("team", "a", "default-scheduler", "") }, status: OK},
		{name: "a name that no scheduler has", change: func(s *fixture) {
			s.pod("team", "a", "gang-schedulr", "")
			s.pod("team", "b", "gang-schedulr", "")
			s.pod("other", "c", "gang-schedulr", "")
		}, status: Fail, wantText: []string{`3 pods wait for scheduler "gang-schedulr" in other, team, and no scheduler answers to that name; there are: gang-scheduler`, "did you mean gang-scheduler?"}},
		{name: "a scheduler that is gone", change: func(s *fixture) { s.pod("team", "a", "kube-batch", "") }, status: Fail, wantText: []string{"--serve kube-batch"}},
		{name: "a scheduler that is down", change: func(s *fixture) {
			s.S.Leases = nil
			s.Lease("gang-scheduler", 10*time.Minute)
			s.pod("team", "a", "gang-scheduler", "")
		}, status: Fail, wantText: []string{"which is down"}},
		{name: "pods that are deleted or placed do not count", change: func(s *fixture) {
			now := s.S.At
			s.pod("team", "a", "nobody", "").DeletionTimestamp = stamp(now)
			s.pod("team", "b", "somebody", "n1")
			s.pod("team", "c", "nobody", "").Status.Phase = corev1.PodFailed
		}, status: OK},
	})
}

func TestUnservedDialects(t *testing.T) {
	served := func(name, version string) func(*fixture) {
		return func(s *fixture) { s.serves(name, version, nil, nil) }
	}
	test(t, Cluster(), "dialect-unserved", []expected{
		{name: "ours", status: OK, wantText: []string{"scheduler-plugins by gang-scheduler"}},
		{name: "ours reads them all", change: served("podgroups.scheduling.volcano.sh", "v1beta1"), status: OK, wantText: []string{"volcano by gang-scheduler"}},
		{name: "not read, not used", change: func(s *fixture) {
			s.remove("gang-scheduler")
			served("podgroups.scheduling.volcano.sh", "v1beta1")(s)
		}, status: Warn, wantText: []string{"the format volcano is served, and no scheduler reads it", "install scheduler --serve volcano"}},
		{name: "not read, but used", change: func(s *fixture) {
			s.remove("gang-scheduler")
			served("podgroups.scheduling.volcano.sh", "v1beta1")(s)
			s.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "a"}})
		}, status: Fail, wantText: []string{"no scheduler reads the format volcano, in which 1 gang is declared"}},
		{name: "its own scheduler reads it", change: func(s *fixture) {
			s.remove("gang-scheduler")
			served("podgroups.scheduling.volcano.sh", "v1beta1")(s)
			volcanoRuns(s)
		}, status: Warn, wantText: []string{"volcano by volcano", "the format scheduler-plugins is served"}},
		{name: "Kueue places nothing", change: served("workloads.kueue.x-k8s.io", "v1beta2"), status: OK, never: []string{"kueue"}},
	})
}

func TestSchedulersFight(t *testing.T) {
	test(t, Cluster(), "scheduler-fight", []expected{
		{name: "none", status: OK},
		{name: "Volcano and ours under its name", change: func(s *fixture) {
			volcanoRuns(s)
			s.binds("system:kube-scheduler", "volcano-system", "default")
			s.deployment("gang-scheduler").Spec.Template.Spec.Containers[0].Args = []string{"scheduler", "--serve=volcano"}
		}, status: Fail, wantText: []string{"2 Deployments answer to schedulerName volcano", "gangctl-system/gang-scheduler, volcano-system/volcano-scheduler"}},
		{name: "Volcano's is scaled to 0, and ours answers to its name", change: func(s *fixture) {
			volcanoRuns(s)
			s.binds("system:kube-scheduler", "volcano-system", "default")
			s.stop("volcano-scheduler")
			s.deployment("gang-scheduler").Spec.Template.Spec.Containers[0].Args = []string{"scheduler", "--serve=volcano"}
		}, status: OK},
		{name: "ours twice", change: func(s *fixture) {
			s.Deployment("elsewhere", "gang-scheduler", "x/gangctl:v1")
			s.binds("system:kube-scheduler", "elsewhere", "default")
		}, status: Fail, wantText: []string{"schedulerName gang-scheduler"}},
		{name: "ours, and one that a tenant made, which does not block ours", change: func(s *fixture) { s.Deployment("a-team", "gang-scheduler", "x/gangctl:v1") }, status: OK},
		{name: "a gang that names two schedulers", change: func(s *fixture) {
			for name, scheduler := range map[string]string{"a": "gang-scheduler", "b": "default-scheduler"} {
				s.pod("team", name, scheduler, "").Labels["scheduling.x-k8s.io/pod-group"] = "llama"
			}
		}, status: Fail, wantText: []string{"the members of gang team/llama name 2 schedulers: default-scheduler, gang-scheduler"}},
		{name: "two gangs of one name in two namespaces", change: func(s *fixture) {
			for namespace, scheduler := range map[string]string{"a": "gang-scheduler", "b": "default-scheduler"} {
				s.pod(namespace, "x", scheduler, "").Labels["scheduling.x-k8s.io/pod-group"] = "llama"
			}
		}, status: OK},
		{name: "members that have ended do not count", change: func(s *fixture) {
			s.pod("team", "a", "gang-scheduler", "").Annotations[volcano.GroupAnnotation] = "llama"
			p := s.pod("team", "b", "volcano", "n1")
			p.Annotations[volcano.GroupAnnotation], p.Status.Phase = "llama", corev1.PodSucceeded
		}, status: OK},
		{name: "two writers of one status", change: func(s *fixture) {
			s.Deployment("scheduler-plugins", "controller", "registry.k8s.io/scheduler-plugins/controller:v0.34.7")
		}, status: Warn, wantText: []string{"writes the status of PodGroups"}},
		{name: "the other writer is scaled to 0", change: func(s *fixture) {
			s.Deployment("scheduler-plugins", "scheduler-plugins-controller", "registry.k8s.io/scheduler-plugins/controller:v0.34.7")
			s.stop("scheduler-plugins-controller")
		}, status: OK},
	})
}
