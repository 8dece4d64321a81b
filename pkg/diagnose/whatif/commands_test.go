package whatif_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

func two(spec *whatif.Spec) { spec.Roles[len(spec.Roles)-1].Replicas = 2 }

func lessCPU(spec *whatif.Spec) {
	r := spec.Roles[len(spec.Roles)-1].Template.Spec.Containers[0].Resources
	r.Requests["cpu"], r.Limits["cpu"] = resource.MustParse("4"), resource.MustParse("4")
}

// cpu4 is the step of lessCPU, at a path of the pod template.
const cpu4 = `{"op":"replace","path":"PATH/template/spec/containers/0/resources","value":{"limits":{"cpu":"4","memory":"64Gi"},"requests":{"cpu":"4","memory":"64Gi"}}}`

// suspended are the commands that change a job while it has no pods, after one that changes its gang.
func suspended(kind, group, steps string) []string {
	all := []string{group, `kubectl -n team patch ` + kind + ` gang --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'`,
		"kubectl -n team wait --for=delete pods -l training.kubeflow.org/job-name=gang --timeout=5m",
		`kubectl -n team patch ` + kind + ` gang --type=json -p '[` + steps + `,{"op":"add","path":"/spec/runPolicy/suspend","value":false}]'`}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// deleted are the commands that make a job of two where it cannot be suspended.
func deleted(label string) []string {
	return []string{group(`{"minMember":2,"minResources":{"cpu":"16","memory":"128Gi"}}`),
		`kubectl -n team patch tfjob gang --type=json -p '[{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}]'`,
		"kubectl -n team delete pods -l " + label + "=gang"}
}

// group changes the spec of the PodGroup.
func group(spec string) string {
	return `kubectl -n team patch podgroup.scheduling.x-k8s.io gang --type=merge -p '{"spec":` + spec + `}'`
}

// policy is the scheduling policy in a job's spec.
func policy(scheduling map[string]any) func(map[string]any) {
	return func(job map[string]any) {
		job["spec"].(map[string]any)["runPolicy"] = map[string]any{"suspend": false, "schedulingPolicy": scheduling}
	}
}

func TestCommands(t *testing.T) {
	yes := true
	controlled := func(kind string) func(j *batchv1.Job) {
		return func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: kind, Name: "maker", UID: "m", Controller: &yes}}
		}
	}
	tests := map[string]struct {
		gang clustertest.Gang
		edit func(*whatif.Spec)
		want []string
		how  string
	}{
		"TFJob, fewer": {edit: two, want: suspended("tfjob", group(`{"minMember":2,"minResources":{"cpu":"16","memory":"128Gi"}}`),
			`{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"TFJob, without a role": {gang: clustertest.Gang{NoGroup: true, More: []clustertest.Role{{Name: "PS", Replicas: 1}}}, edit: func(spec *whatif.Spec) { spec.Role("PS").Replicas = 0 },
			want: suspended("tfjob", "", `{"op":"remove","path":"/spec/tfReplicaSpecs/PS"}`)},
		"TFJob, the job has the minimum too": {gang: clustertest.Gang{Job: policy(map[string]any{"minAvailable": int64(4)})}, edit: two, want: suspended("tfjob",
			group(`{"minMember":2,"minResources":{"cpu":"16","memory":"128Gi"}}`),
			`{"op":"add","path":"/spec/runPolicy/schedulingPolicy/minAvailable","value":2},{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"TFJob, the job has minResources": {gang: clustertest.Gang{Missing: 4, Job: policy(map[string]any{"minResources": map[string]any{"cpu": "32", "memory": "256Gi"}})}, edit: two, want: []string{
			group(`{"minMember":2,"minResources":{"cpu":"16","memory":"128Gi"}}`),
			`kubectl -n team patch tfjob gang --type=json -p '[{"op":"add","path":"/spec/runPolicy/schedulingPolicy/minResources","value":{"cpu":"16","memory":"128Gi"}},` +
				`{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}]'`}},
		"TFJob, elastic: the minimum stays": {gang: clustertest.Gang{Min: 2}, edit: two, want: suspended("tfjob", "", `{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"TFJob without pods": {gang: clustertest.Gang{Missing: 4}, edit: lessCPU, want: []string{group(`{"minResources":{"cpu":"16","memory":"256Gi"}}`),
			`kubectl -n team patch tfjob gang --type=json -p '[` + strings.ReplaceAll(cpu4, "PATH", "/spec/tfReplicaSpecs/Worker") + `]'`}},
		"TFJob of Kueue, which makes the pods of a job that has changed again": {gang: clustertest.Gang{NoGroup: true, Job: func(job map[string]any) {
			job["metadata"].(map[string]any)["labels"] = map[string]any{"kueue.x-k8s.io/queue-name": "lq"}
		}}, edit: two, want: []string{`kubectl -n team patch tfjob gang --type=json -p '[{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}]'`}},
		"PyTorchJob, Volcano": {gang: clustertest.Gang{Kind: "PyTorchJob", Dialect: gang.Volcano}, edit: lessCPU, want: suspended("pytorchjob",
			`kubectl -n team patch podgroup.scheduling.volcano.sh gang --type=merge -p '{"spec":{"minResources":{"cpu":"16","memory":"256Gi"}}}'`, strings.ReplaceAll(cpu4, "PATH", "/spec/pytorchReplicaSpecs/Worker"))},
		"MPIJob": {gang: clustertest.Gang{Kind: "MPIJob", NoGroup: true, Job: func(job map[string]any) { job["apiVersion"] = "kubeflow.org/v2beta1" }}, edit: two, want: []string{
			`kubectl -n team patch mpijob gang --type=json -p '[{"op":"add","path":"/spec/mpiReplicaSpecs/Worker/replicas","value":2}]'`}},
		"native": {gang: clustertest.Gang{Dialect: gang.Native}, edit: two, want: suspended("tfjob",
			`kubectl -n team patch podgroup.scheduling.k8s.io gang --type=merge -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}'`, `{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"budget": {gang: clustertest.Gang{Dialect: gang.PDB, Scheduler: "kube-batch"}, edit: two, want: suspended("tfjob",
			`kubectl -n team patch poddisruptionbudget.policy gang --type=merge -p '{"spec":{"minAvailable":2}}'`, `{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"labels": {gang: clustertest.Gang{Dialect: gang.Labels, Job: func(job map[string]any) {
			setMetadata(job, map[string]any{"pod-group.scheduling.sigs.k8s.io/name": "gang", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}, nil)
		}}, edit: two, want: suspended("tfjob", "", `{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2},`+
			`{"op":"replace","path":"/spec/tfReplicaSpecs/Worker/template/metadata/labels/pod-group.scheduling.sigs.k8s.io~1min-available","value":"2"}`)},
		"batch Job, fewer at a time": {gang: clustertest.Gang{Kind: "Job", NoGroup: true}, edit: two, want: []string{
			`kubectl -n team patch job gang --type=json -p '[{"op":"add","path":"/spec/parallelism","value":2}]'`}},
		"batch Job, indexed": {gang: clustertest.Gang{Kind: "Job", NoGroup: true, BatchJob: func(j *batchv1.Job) {
			mode, n := batchv1.IndexedCompletion, int32(4)
			j.Spec.CompletionMode, j.Spec.Completions = &mode, &n
		}}, edit: two, want: []string{
			`kubectl -n team patch job gang --type=json -p '[{"op":"add","path":"/spec/parallelism","value":2},{"op":"add","path":"/spec/completions","value":2}]'`}},
		"batch Job, template": {gang: clustertest.Gang{Kind: "Job", NoGroup: true, BatchJob: controlled("CronJob")}, edit: lessCPU, want: []string{
			`kubectl -n team get job gang -o json | kubectl patch --local -f - --type=json -p '[` + strings.ReplaceAll(cpu4, "PATH", "/spec") + `]' -o json | kubectl -n team replace --force -f -`}},
		"batch Job, template, made by submit with what goes with it": {gang: clustertest.Gang{Kind: "Job", NoGroup: true, BatchJob: func(j *batchv1.Job) {
			j.Annotations = map[string]string{"gangctl.dev/command": "gangctl submit job gang"}
		}}, edit: lessCPU, how: "submit Job gang again with this change: kubectl would delete it, and its PodGroup and all else that submit made for it with it"},
		"batch Job that something else keeps": {gang: clustertest.Gang{Kind: "Job", NoGroup: true, BatchJob: controlled("JobSet")}, edit: lessCPU,
			how: "change it in JobSet team/maker, which made Job gang and would make it again as it was"},
		"a kind whose fields have changed": {gang: clustertest.Gang{NoGroup: true, Job: func(job map[string]any) { job["apiVersion"] = "kubeflow.org/v1alpha1" }}, edit: two,
			how: "submit TFJob gang again with this change"},
		"an operator that does not know suspend: its API does not fill it in": {gang: clustertest.Gang{Job: func(job map[string]any) {
			job["spec"].(map[string]any)["runPolicy"] = map[string]any{}
		}}, edit: two, want: deleted("training.kubeflow.org/job-name")},
		"an operator before there was a run policy": {gang: clustertest.Gang{Job: func(job map[string]any) {
			delete(job["spec"].(map[string]any), "runPolicy")
			job["spec"].(map[string]any)["cleanPodPolicy"] = "None"
		}}, edit: two, want: deleted("training.kubeflow.org/job-name")},
		"an operator that marks pods as old ones did": {gang: clustertest.Gang{Pod: func(_ int, p *corev1.Pod) {
			p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "gang", "group-name": "kubeflow.org", "job-name": "gang", "replica-type": "worker", "replica-index": p.Labels["training.kubeflow.org/replica-index"]}
		}}, edit: two, want: deleted("job-name")},
		"Volcano Job, fewer": {gang: clustertest.Gang{Kind: clustertest.VolcanoJob, Volcano: "q", Scheduler: "volcano"}, edit: two, want: []string{
			`kubectl -n team patch job.batch.volcano.sh gang --type=json -p '[{"op":"test","path":"/spec/tasks/0/name","value":"worker"},{"op":"add","path":"/spec/tasks/0/replicas","value":2},` +
				`{"op":"add","path":"/spec/minAvailable","value":2}]'`}},
		"Volcano Job, fewer than a task needs": {gang: clustertest.Gang{Kind: clustertest.VolcanoJob, Volcano: "q", Scheduler: "volcano", Min: 1, Job: func(job map[string]any) {
			job["spec"].(map[string]any)["tasks"].([]any)[0].(map[string]any)["minAvailable"] = int64(3)
		}}, edit: two, want: []string{
			`kubectl -n team patch job.batch.volcano.sh gang --type=json -p '[{"op":"test","path":"/spec/tasks/0/name","value":"worker"},{"op":"add","path":"/spec/tasks/0/replicas","value":2},` +
				`{"op":"add","path":"/spec/tasks/0/minAvailable","value":2}]'`}},
		"Volcano Job, of which a member runs": {gang: clustertest.Gang{Kind: clustertest.VolcanoJob, Volcano: "q", Scheduler: "volcano", Nodes: []string{"n1"}}, edit: two,
			how: "submit Volcano Job gang again with this change"},
		"Volcano Job, template": {gang: clustertest.Gang{Kind: clustertest.VolcanoJob, Volcano: "q", Scheduler: "volcano"}, edit: lessCPU,
			how: "submit Volcano Job gang again with this change"},
		"nothing": {edit: func(*whatif.Spec) {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.gang.Name, tt.gang.Workers = "gang", 4
			s := clustertest.New().Nodes(2, 8).Add(tt.gang).Done()
			got, how := whatif.Commands(gangOf(t, s, "gang"), tt.edit)
			if want := strings.Join(tt.want, "\n"); got != want || how != tt.how {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", got, how, want, tt.how)
			}
		})
	}
}

// A merge patch keeps what it does not set to null: what no member requests any more is removed from minResources.
func TestCommandsReserveNoMore(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 1}).Done()
	got, _ := whatif.Commands(gangOf(t, s, "gang"), func(spec *whatif.Spec) {
		r := spec.Role("Worker").Template.Spec.Containers[0].Resources
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			delete(list, "nvidia.com/gpu")
		}
	})
	if !strings.Contains(got, `"nvidia.com/gpu":null`) {
		t.Errorf("got %s", got)
	}
}

// sidecar gives pods another container with so many devices, and an init container with as many; none for 0.
func sidecar(gpus int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		if gpus == 0 {
			return
		}
		limits := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
		c := corev1.Container{Name: "dataloader", Resources: corev1.ResourceRequirements{Limits: limits}}
		spec.Containers = append(spec.Containers, c)
		c.Name = "warmup"
		spec.InitContainers = append(spec.InitContainers, c)
	}
}

// Half of the devices are half of the processes, where the job has a field for how many a member starts.
func TestCommandsCountProcesses(t *testing.T) {
	half := func(spec *whatif.Spec) {
		whatif.Scale(&spec.Role("Worker").Template.Spec.Containers[0].Resources, 1, 2)
	}
	tests := map[string]struct {
		kind, field string
		value       any
		want        string
		beside      int64
	}{
		"MPI":                       {"MPIJob", "slotsPerWorker", int64(8), `{"op":"replace","path":"/spec/slotsPerWorker","value":4}`, 0},
		"PyTorch":                   {"PyTorchJob", "nprocPerNode", "8", `{"op":"replace","path":"/spec/nprocPerNode","value":"4"}`, 0},
		"PyTorch, with a sidecar":   {"PyTorchJob", "nprocPerNode", "8", `{"op":"replace","path":"/spec/nprocPerNode","value":"4"}`, 1},
		"not one a device":          {"MPIJob", "slotsPerWorker", int64(1), "", 0},
		"as many as all containers": {"MPIJob", "slotsPerWorker", int64(9), "", 1},
		"as many as there are":      {"PyTorchJob", "nprocPerNode", "auto", "", 0},
		"TensorFlow starts but one": {"TFJob", "slotsPerWorker", int64(8), "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "gang", Kind: tt.kind, Workers: 1, GPUs: 8, Job: func(job map[string]any) {
				job["spec"].(map[string]any)[tt.field] = tt.value
			}, Spec: sidecar(tt.beside)}).Done()
			got, _ := whatif.Commands(gangOf(t, s, "gang"), half)
			if !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, tt.field) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	for label, want := range map[string]string{"training.kubeflow.org/job-name": "training.kubeflow.org/job-name=gang", "tf-job-name": "tf-job-name=gang", "mine": ""} {
		s := clustertest.New().Add(clustertest.Gang{Name: "gang", Workers: 1, Pod: func(_ int, p *corev1.Pod) {
			p.Labels = map[string]string{label: "gang"}
		}}).Done()
		if got := whatif.Selector(gangOf(t, s, "gang")); got != want {
			t.Errorf("%s: got %q", label, got)
		}
	}
}
