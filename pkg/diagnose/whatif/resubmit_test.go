package whatif_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// setMetadata writes the labels and annotations of a gang without an object into a template, where users put them.
func setMetadata(job map[string]any, labels, annotations map[string]any) {
	specs := job["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)
	for _, role := range specs {
		role.(map[string]any)["template"].(map[string]any)["metadata"] = map[string]any{"labels": labels, "annotations": annotations}
	}
}

// The minimum follows the members wherever it is written: all stay all, and less than all stays what it is.
func TestResubmitMinimum(t *testing.T) {
	labels := func(job map[string]any) {
		setMetadata(job, map[string]any{"pod-group.scheduling.sigs.k8s.io/name": "gang", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}, nil)
	}
	yunikorn := func(job map[string]any) {
		setMetadata(job, map[string]any{"yunikorn.apache.org/app-id": "gang"}, map[string]any{"yunikorn.apache.org/task-group-name": "worker",
			"yunikorn.apache.org/task-groups": `[{"name":"worker","minMember":4,"minResource":{"cpu":"8"}}]`})
	}
	tests := map[string]struct {
		gang clustertest.Gang
		edit func(*whatif.Spec)
		want int32
	}{
		"scheduler-plugins": {gang: clustertest.Gang{}, want: 2},
		"volcano":           {gang: clustertest.Gang{Dialect: gang.Volcano}, want: 2},
		"native":            {gang: clustertest.Gang{Dialect: gang.Native}, want: 2},
		"koordinator":       {gang: clustertest.Gang{Dialect: gang.Koordinator, Scheduler: "koord-scheduler"}, want: 2},
		"kube-batch budget": {gang: clustertest.Gang{Dialect: gang.PDB, Scheduler: "kube-batch"}, want: 2},
		"labels":            {gang: clustertest.Gang{Dialect: gang.Labels, Job: labels}, want: 2},
		"yunikorn":          {gang: clustertest.Gang{Dialect: gang.YuniKorn, Scheduler: "yunikorn", Job: yunikorn}, want: 2},
		"no object":         {gang: clustertest.Gang{NoGroup: true}, want: 2},
		"elastic":           {gang: clustertest.Gang{Min: 1}, want: 1},
		"elastic, above":    {gang: clustertest.Gang{Min: 3}, want: 2},
		"as edited":         {gang: clustertest.Gang{}, edit: func(s *whatif.Spec) { s.Min = 1 }, want: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.gang.Name, tt.gang.Workers = "gang", 4
			s := clustertest.New().Nodes(2, 8).Add(tt.gang).Done()
			g := gangOf(t, s, "gang")
			edit := func(spec *whatif.Spec) {
				spec.Role("Worker").Replicas = 2
				if tt.edit != nil {
					tt.edit(spec)
				}
			}
			after := gangOf(t, whatif.Resubmit(s, g, edit), "gang")
			if after.Total() != 2 || after.Min != tt.want || after.Count(gang.Missing) != 2 {
				t.Errorf("%d members, minimum %d, %d without a pod; want minimum %d", after.Total(), after.Min, after.Count(gang.Missing), tt.want)
			}
			request, ok := whatif.PlacementRequest(view.New(s), g, edit)
			if !ok || request.MinMember != tt.want || request.Total() != 2 {
				t.Errorf("PlacementRequest disagrees: %d members, minimum %d", request.Total(), request.MinMember)
			}
			if after.Scheduler != g.Scheduler {
				t.Errorf("the scheduler is %s, was %s", after.Scheduler, g.Scheduler)
			}
		})
	}
}

// What the group reserves is what the new members need.
func TestResubmitReserves(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 4, GPUs: 2, Dialect: gang.Volcano, Group: func(u map[string]any) {
		u["spec"].(map[string]any)["minTaskMember"] = map[string]any{"worker": int64(4)}
	}}).Done()
	after := gangOf(t, whatif.Resubmit(s, gangOf(t, s, "gang"), func(spec *whatif.Spec) { spec.Role("Worker").Replicas = 3 }), "gang")
	if gpus := after.Decl.MinResources["nvidia.com/gpu"]; gpus.Value() != 6 {
		t.Errorf("it reserves %s GPUs", gpus.String())
	}
	if n := after.Decl.RoleMin["worker"]; n != 3 {
		t.Errorf("%d workers at least", n)
	}
}

// One change after the other: the second sees the first.
func TestResubmitTwice(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 4}).Done()
	g := gangOf(t, s, "gang")
	once := whatif.Resubmit(s, g, func(spec *whatif.Spec) { spec.Role("Worker").Replicas = 2 })
	twice := gangOf(t, whatif.Resubmit(once, g, func(spec *whatif.Spec) {
		spec.Role("Worker").Template.Spec.NodeSelector = map[string]string{"a": "b"}
	}), "gang")
	if twice.Total() != 2 || twice.Roles[0].Template.Spec.NodeSelector["a"] != "b" {
		t.Errorf("got %d members, %v", twice.Total(), twice.Roles[0].Template.Spec.NodeSelector)
	}
}

func TestResubmitWithoutJob(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "gang", Workers: 2})
	c.S.Custom = nil
	s := c.Done()
	for _, p := range s.Pods {
		p.OwnerReferences = nil
	}
	w := view.New(s)
	job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "gang-worker-0"})
	if err != nil {
		t.Fatal(err)
	}
	g := w.Gang(job)
	same := func(*whatif.Spec) {}
	fewer := func(spec *whatif.Spec) {
		spec.Roles[0].Replicas, spec.Roles[0].Template.Spec.NodeSelector = 1, map[string]string{"a": "b"}
	}
	again := whatif.Resubmit(s, g, fewer)
	if again == nil || len(again.Pods) != 1 || again.Pods[0].Name != "gang-worker-0" || again.Pods[0].Spec.NodeSelector["a"] != "b" || again.Pods[0].Spec.NodeName != "" {
		t.Fatalf("got %+v", again)
	}
	if len(s.Pods) != 2 || s.Pods[0].Spec.NodeSelector["a"] != "" {
		t.Error("the cluster as it is was changed")
	}
	if request, ok := whatif.PlacementRequest(w, g, fewer); !ok || request.Roles[0].Count != 1 {
		t.Errorf("got %+v, %v", request, ok)
	}
	if whatif.Resubmit(s, g, func(spec *whatif.Spec) { spec.Roles[0].Replicas = 3 }) != nil {
		t.Error("a pod without a name was made")
	}
	other := *g.Job
	other.Bare = append([]*corev1.Pod{g.Bare[0]}, g.Bare[1].DeepCopy())
	other.Bare[1].Spec.NodeSelector = map[string]string{"x": "y"}
	if _, ok := whatif.PlacementRequest(w, &gang.Gang{Job: &other}, same); ok {
		t.Error("pods that are not alike were made again as one")
	}
	if commands, how := whatif.Commands(g, same); commands != "" || how == "" {
		t.Errorf("got %q, %q", commands, how)
	}
}

// How much a batch Job does stays, whatever it does at a time, unless each pod has a place of its own.
func TestResubmitBatchJob(t *testing.T) {
	indexed := batchv1.IndexedCompletion
	tests := map[string]struct {
		job         func(*batchv1.Job)
		n           int32
		completions int32
	}{
		"work queue, fewer at a time": {nil, 2, 4},
		"work queue, more at a time":  {nil, 8, 8},
		"indexed":                     {func(j *batchv1.Job) { j.Spec.CompletionMode = &indexed }, 2, 2},
		"indexed, more than at a time": {func(j *batchv1.Job) {
			j.Spec.CompletionMode = &indexed
			*j.Spec.Completions = 16
			two := int32(4)
			j.Spec.Parallelism = &two
		}, 2, 16},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "gang", Kind: "Job", Workers: 4, BatchJob: func(j *batchv1.Job) {
				done := *j.Spec.Completions
				j.Spec.Completions = &done // not the same variable as parallelism
				if tt.job != nil {
					tt.job(j)
				}
			}}).Done()
			after := whatif.Resubmit(s, gangOf(t, s, "gang"), func(spec *whatif.Spec) { spec.Role("Worker").Replicas = tt.n })
			if j := after.Jobs[0].Spec; *j.Parallelism != tt.n || *j.Completions != tt.completions {
				t.Errorf("parallelism %d, completions %d, want %d", *j.Parallelism, *j.Completions, tt.completions)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	role := func(n int32, cpu string) gang.Role {
		r := gang.Role{Replicas: n}
		r.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
		return r
	}
	for min, want := range map[int32]string{0: "0", 1: "1500m", 2: "3", 3: "5", 9: "9"} {
		if cpu := whatif.Needs([]gang.Role{role(2, "1500m"), role(3, "2")}, min)["cpu"]; cpu.String() != want {
			t.Errorf("the first %d need %s, want %s", min, cpu.String(), want)
		}
	}
}

// Pods that are made again get what admission put into those that are there, whatever else is changed about them, and the job does not get it.
func TestResubmitInjected(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Pod: func(_ int, p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"pool": "gold"}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "8")}})
	}}).Done()
	g := gangOf(t, s, "gang")
	edit := func(spec *whatif.Spec) { spec.Role("Worker").Template.Spec.NodeSelector = map[string]string{"a": "b"} }
	check := func(what string, p corev1.PodSpec) {
		t.Helper()
		if p.NodeSelector["a"] != "b" || p.NodeSelector["pool"] != "gold" || len(p.Containers) != 2 {
			t.Errorf("%s: got %v, %d containers", what, p.NodeSelector, len(p.Containers))
		}
	}
	request, ok := whatif.PlacementRequest(view.New(s), g, edit)
	if !ok {
		t.Fatal("there is no request")
	}
	check("request", request.Roles[0].Pod.Spec)
	once := whatif.Resubmit(s, g, edit)
	after := gangOf(t, once, "gang")
	check("once", view.New(once).Virtual(after, gang.Member{Role: "Worker"}).Spec)
	if template := after.RoleByName("Worker").Template.Spec; template.NodeSelector["pool"] != "" || len(template.Containers) != 1 {
		t.Errorf("the job has %v, %d containers", template.NodeSelector, len(template.Containers))
	}
	twice := whatif.Resubmit(once, g, edit)
	check("twice", view.New(twice).Virtual(gangOf(t, twice, "gang"), gang.Member{Role: "Worker"}).Spec)
	if len(s.Injected) > 0 {
		t.Error("the cluster as it is was changed")
	}
}
