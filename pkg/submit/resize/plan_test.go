package resize_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// waiting is a gang of four workers with two GPUs each, as it is read from a cluster, with the objects of its job and of its group.
func waiting(t *testing.T, g clustertest.Gang) (*gang.Gang, *unstructured.Unstructured, *unstructured.Unstructured) {
	t.Helper()
	g.Namespace, g.Name = "team", "llama"
	if g.Workers == 0 {
		g.Workers, g.GPUs = 4, 2
	}
	s := clustertest.New().Nodes(2, 8).Add(g).Done()
	w := view.New(s)
	job, err := w.Find(view.Query{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	found := w.Gang(job)
	object := found.Object
	if job.BatchJob != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job.BatchJob)
		if err != nil {
			t.Fatal(err)
		}
		object = &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	}
	if found.Decl == nil || found.Decl.Kind.Kind == "" {
		return found, object, nil
	}
	for _, u := range s.Custom[found.Decl.Kind.GroupKind()] {
		if u.GetName() == found.Decl.Key.Name {
			return found, object, u
		}
	}
	t.Fatalf("no object declares the gang %s", found.Decl.Key)
	return nil, nil, nil
}

func workers(n int32) resize.Change {
	return resize.Change{Roles: []resize.Role{{Name: "Worker", Replicas: &n}}}
}

func gpus(n int64) resize.Change {
	return resize.Change{Roles: []resize.Role{{Name: "Worker", GPUs: &n}}}
}

// number is an integer at a path of an object; -1 if there is none.
func number(u *unstructured.Unstructured, path ...string) int64 {
	n, ok, err := unstructured.NestedInt64(u.Object, path...)
	if !ok || err != nil {
		return -1
	}
	return n
}

// gangLabels declare a gang of four.
func gangLabels() map[string]string {
	return map[string]string{labels.NameLabel: "llama", labels.MinAvailableLabel: "4"}
}

// labelled has them in the pods of a job.
func labelled(specs string) func(map[string]any) {
	return func(job map[string]any) {
		if err := unstructured.SetNestedStringMap(job, gangLabels(), "spec", specs, "Worker", "template", "metadata", "labels"); err != nil {
			panic(err) // a mistake in a test
		}
	}
}

// Any kind of job is changed together with its gang, in any dialect, and reads as the gang that was meant.
func TestPlanOfEveryKindAndDialect(t *testing.T) {
	specs := map[string]string{"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}
	minimum := map[gang.Dialect][]string{
		gang.SchedulerPlugins: {"spec", "minMember"}, gang.Volcano: {"spec", "minMember"}, gang.KubeBatch: {"spec", "minMember"},
		gang.Native: {"spec", "schedulingPolicy", "gang", "minCount"},
	}
	for _, kind := range []string{"TFJob", "PyTorchJob", "MPIJob", "Job"} {
		for _, dialect := range []gang.Dialect{gang.Native, gang.SchedulerPlugins, gang.Volcano, gang.KubeBatch, gang.Labels} {
			t.Run(fmt.Sprintf("%s, %s", kind, dialect), func(t *testing.T) {
				spec := clustertest.Gang{Kind: kind, Dialect: dialect}
				if dialect == gang.Labels {
					spec.Job, spec.BatchJob = labelled(specs[kind]), func(j *batchv1.Job) { j.Spec.Template.Labels = gangLabels() }
				}
				g, job, group := waiting(t, spec)
				p, err := resize.New(g, job, group, workers(2), nil)
				if err != nil {
					t.Fatal(err)
				}
				replicas := []string{"spec", specs[kind], "Worker", "replicas"}
				if kind == "Job" {
					replicas = []string{"spec", "parallelism"}
				}
				if n := number(p.Job.After, replicas...); n != 2 || number(p.Job.Before, replicas...) != 4 {
					t.Errorf("the job has %d workers", n)
				}
				if path := minimum[dialect]; path != nil && number(p.Group.After, path...) != 2 {
					t.Errorf("the group is %v", p.Group.After.Object["spec"])
				}
				if p.Intent.Min != 2 || !p.Intent.Resume || p.Recreate != "" || len(p.Notes) > 0 {
					t.Errorf("got %+v", p)
				}
				if dialect == gang.Labels {
					text, err := p.Job.After.MarshalJSON()
					if err != nil || !strings.Contains(string(text), `min-available":"2"`) {
						t.Errorf("%v, labels: %s", err, text)
					}
				}
			})
		}
	}
}

// A kind that writes its roles itself is changed by what differs in its object, which keeps what this program does not know; where its API fixes that,
// it has to be made again.
func TestPlanOfKindsThatWriteTheirRoles(t *testing.T) {
	gpus := int64(1)
	for _, tt := range []struct {
		kind, role, flag string
		recreate         string
		replicas         []string
		resources        string
	}{
		{"JobSet", "worker", "--workers", "the API of JobSets fixes", nil, `"nvidia.com/gpu":"1"`},
		{"TrainJob", "node", "--nodes", "the API of TrainJobs fixes", []string{"spec", "trainer", "numNodes"}, `"resourcesPerNode":{`},
		{"RayCluster", "worker", "--workers", "", nil, `"nvidia.com/gpu":"1"`},
		{"RayJob", "worker", "--workers", "", nil, `"nvidia.com/gpu":"1"`},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			g, job, group := waiting(t, clustertest.Gang{Kind: tt.kind})
			if err := unstructured.SetNestedField(job.Object, "kept", "spec", "unknown"); err != nil {
				t.Fatal(err)
			}
			members := g.Total()
			two := int32(2)
			c := resize.Change{Roles: []resize.Role{{Name: tt.role, Replicas: &two, GPUs: &gpus}}}
			p, err := resize.New(g, job, group, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(p.Recreate, tt.recreate) || (p.Recreate == "") != (tt.recreate == "") || !p.Restarts {
				t.Errorf("recreate %q, restarts %t", p.Recreate, p.Restarts)
			}
			text, err := p.Job.After.MarshalJSON()
			if err != nil || !strings.Contains(string(text), tt.resources) || !strings.Contains(string(text), `"unknown":"kept"`) {
				t.Errorf("%v, %s", err, text)
			}
			if tt.replicas != nil && number(p.Job.After, tt.replicas...) != 2 {
				t.Errorf("the job is %s", text)
			}
			if n := number(p.Group.After, "spec", "minMember"); n != int64(members)-2 {
				t.Errorf("the group needs %d of %d", n, members)
			}
			read, err := g.Reader.Job(p.Job.After)
			if err != nil || read.Total() != members-2 {
				t.Errorf("%v, it reads as %d members", err, read.Total())
			}
			if line, ok := resize.Command(g.Job, c); !ok || line != "gangctl resize llama "+tt.flag+" 2 --gpus 1 -n team" {
				t.Errorf("%t, %s", ok, line)
			}
			if tt.recreate == "" {
				return
			}
			if c.NodeSelector = map[string]string{"pool": "a"}; tt.kind == "TrainJob" {
				if _, err := resize.New(g, job, group, c, nil); err == nil || !strings.Contains(err.Error(), "is its runtime's") {
					t.Errorf("where nodes may run: %v", err)
				}
				return
			}
			if p, err := resize.New(g, job, group, resize.Change{NodeSelector: c.NodeSelector}, nil); err != nil || p.Recreate != "" || !p.Restarts {
				t.Errorf("where members may run can be changed: %v", err)
			}
		})
	}
}

// set sets a field of a job that a test changes.
func set(value any, path ...string) func(map[string]any) {
	return func(job map[string]any) {
		if err := unstructured.SetNestedField(job, value, path...); err != nil {
			panic(err) // a mistake in a test
		}
	}
}

// What a kind cannot have is refused, and a job that its controller would not change is made again.
func TestPlanOfWhatAKindCannotHave(t *testing.T) {
	group := func(change string, value any) func(map[string]any) {
		return func(job map[string]any) {
			groups, _, _ := unstructured.NestedSlice(job, "spec", "workerGroupSpecs")
			groups[0].(map[string]any)[change] = value
			set(groups, "spec", "workerGroupSpecs")(job)
		}
	}
	four, two := int32(4), int32(2)
	for name, tt := range map[string]struct {
		gang     clustertest.Gang
		change   resize.Change
		refused  string
		recreate string
	}{
		"a group of workers that is suspended": {gang: clustertest.Gang{Kind: "RayCluster", Job: group("suspend", true)},
			change: resize.Change{Roles: []resize.Role{{Name: "worker", Replicas: &four}}}, refused: "its worker cannot have 4 members as it is"},
		"an autoscaler": {gang: clustertest.Gang{Kind: "RayCluster", Job: set(true, "spec", "enableInTreeAutoscaling")},
			change: resize.Change{Roles: []resize.Role{{Name: "worker", Replicas: &two}}}, refused: "its autoscaler changes its size"},
		"a label of nodes less": {gang: clustertest.Gang{Kind: "JobSet", Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "a", "zone": "b"} }},
			change: resize.Change{AnyNode: []string{"pool"}}, recreate: "the API of JobSets fixes"},
		"an operator that does not suspend, without pods": {gang: clustertest.Gang{Kind: "RayJob", Missing: 4, Job: set(false, "spec", "shutdownAfterJobFinishes")},
			change: resize.Change{Roles: []resize.Role{{Name: "worker", Replicas: &two}}}, recreate: "KubeRay suspends no RayJob without"},
	} {
		t.Run(name, func(t *testing.T) {
			g, job, object := waiting(t, tt.gang)
			p, err := resize.New(g, job, object, tt.change, nil)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !strings.HasPrefix(p.Recreate, tt.recreate) {
				t.Errorf("%v, %+v", err, p)
			}
		})
	}
}

// A plan for a job that is half changed comes to the same end.
func TestPlanIsCompleted(t *testing.T) {
	for _, dialect := range []gang.Dialect{gang.Native, gang.SchedulerPlugins, gang.Volcano} {
		g, job, group := waiting(t, clustertest.Gang{Dialect: dialect})
		first, err := resize.New(g, job, group, workers(2), nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Decl.MinMember = 2 // the group was changed, and the job was not
		again, err := resize.New(g, job, first.Group.After, workers(2), &first.Intent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.Group.After.Object, again.Group.After.Object); diff != "" || again.Group.Changed() && dialect == gang.Native {
			t.Errorf("%s, the group: -first +again\n%s", dialect, diff)
		}
		if diff := cmp.Diff(first.Job.After.Object, again.Job.After.Object); diff != "" {
			t.Errorf("%s, the job: -first +again\n%s", dialect, diff)
		}
	}
}

// A role that is to have no members is taken out of the job: the operator would make a pod of it for a moment, and end the job with that. The change can be
// completed where that is done already.
func TestPlanTakesARoleOut(t *testing.T) {
	for _, tt := range []struct{ kind, specs, role string }{{"TFJob", "tfReplicaSpecs", "PS"}, {"PyTorchJob", "pytorchReplicaSpecs", "Master"}, {"MPIJob", "mpiReplicaSpecs", "Launcher"}} {
		g, job, group := waiting(t, clustertest.Gang{Kind: tt.kind, Workers: 4, More: []clustertest.Role{{Name: tt.role, Replicas: 1}}})
		none := resize.Change{Roles: []resize.Role{{Name: tt.role, Replicas: new(int32)}}}
		plan, err := resize.New(g, job, group, none, nil)
		if err != nil {
			t.Fatal(err)
		}
		roles, _, _ := unstructured.NestedMap(plan.Job.After.Object, "spec", tt.specs)
		if _, there := roles[tt.role]; there || len(roles) != 1 || number(plan.Group.After, "spec", "minMember") != 4 {
			t.Errorf("%s: roles %v, group %v", tt.kind, roles, plan.Group.After.Object["spec"])
		}
		g.Roles = slices.DeleteFunc(g.Roles, func(r gang.Role) bool { return r.Name == tt.role })
		again, err := resize.New(g, plan.Job.After, plan.Group.After, none, &plan.Intent)
		if err != nil || again.Job.Changed() {
			t.Errorf("%s, again: %v", tt.kind, err)
		}
	}
}

// An operator that deletes the group with the pods does not keep what has begun from being done; another client that resumed the job does not keep
// it suspended.
func TestPlanIsCompletedWithoutItsGroup(t *testing.T) {
	g, job, group := waiting(t, clustertest.Gang{Dialect: gang.Volcano})
	c := workers(3)
	c.MinAvailable, c.Queue = 2, "night"
	first, err := resize.New(g, job, group, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Decl = nil
	if _, err := resize.New(g, job, nil, c, nil); err == nil {
		t.Error("without a group, nothing declares a minimum")
	}
	first.Intent.Resume = false
	again, err := resize.New(g, job, nil, c, &first.Intent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Job.After.Object, again.Job.After.Object); diff != "" || again.Original != nil || !again.Intent.Resume {
		t.Errorf("original %v, resumed %t, the job: -first +again\n%s", again.Original, again.Intent.Resume, diff)
	}
}

// A change that has begun keeps what the group was, whatever of it changes.
func TestPlanRestores(t *testing.T) {
	for _, dialect := range []gang.Dialect{gang.Native, gang.SchedulerPlugins, gang.Volcano, gang.KubeBatch} {
		g, _, group := waiting(t, clustertest.Gang{Dialect: dialect})
		c := workers(2)
		if dialect == gang.Volcano {
			c.Queue, c.PriorityClass = "night", "low"
			if err := unstructured.SetNestedField(group.Object, "default", "spec", "queue"); err != nil { // what it is without one
				t.Fatal(err)
			}
		}
		first, err := resize.New(g, g.Object, group, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := view.New(clustertest.New().Put(g.Object).Put(first.Group.After).Done())
		job, err := w.Find(view.Query{Namespace: "team", Name: "llama"})
		if err != nil {
			t.Fatal(err)
		}
		half := w.Gang(job)
		restored, err := resize.Restored(half, first.Group.After, first.Intent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(group.Object["spec"], restored.After.Object["spec"]); diff != "" || !restored.Changed() {
			t.Errorf("%s: -before +restored\n%s", dialect, diff)
		}
		again, err := resize.New(half, g.Object, first.Group.After, c, &first.Intent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(group.Object["spec"], again.Original.Object["spec"]); diff != "" {
			t.Errorf("%s, to undo: -before +original\n%s", dialect, diff)
		}
	}
}

// A minimum that no change makes is not taken from the job.
func TestPlanRefusesAMinimumOfOthers(t *testing.T) {
	g, job, group := waiting(t, clustertest.Gang{})
	_, err := resize.New(g, job, group, workers(2), &resize.Intent{Change: workers(2), Min: 3})
	if err == nil || err.Error() != "3 members must start together, and it would have 2" {
		t.Errorf("got %v", err)
	}
}

// What is requested follows the rules of submit: limits keep their distance, and devices have none.
func TestPlanOfRequests(t *testing.T) {
	g, job, group := waiting(t, clustertest.Gang{})
	cpu, memory := resource.MustParse("16"), resource.MustParse("8Gi")
	c := gpus(1)
	c.Roles[0].CPU, c.Roles[0].Memory = &cpu, &memory
	c.PriorityClass, c.NodeSelector = "urgent", map[string]string{"gpu": "h100"}
	c.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	p, err := resize.New(g, job, group, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, _, err := unstructured.NestedMap(p.Job.After.Object, "spec", "tfReplicaSpecs", "Worker", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cpu": "16", "memory": "8Gi", "nvidia.com/gpu": "1"}
	resources := pod["containers"].([]any)[0].(map[string]any)["resources"].(map[string]any)
	for _, list := range []string{"requests", "limits"} {
		if diff := cmp.Diff(want, resources[list]); diff != "" {
			t.Errorf("%s: -want +got\n%s", list, diff)
		}
	}
	got := map[string]any{"selector": pod["nodeSelector"], "class": pod["priorityClassName"], "tolerations": len(pod["tolerations"].([]any))}
	if diff := cmp.Diff(map[string]any{"selector": map[string]any{"gpu": "h100"}, "class": "urgent", "tolerations": 1}, got); diff != "" {
		t.Error(diff)
	}
	needs, _, err := unstructured.NestedStringMap(p.Group.After.Object, "spec", "minResources")
	if diff := cmp.Diff(map[string]string{"cpu": "64", "memory": "32Gi", "nvidia.com/gpu": "4"}, needs); err != nil || diff != "" {
		t.Errorf("minResources: %v, -want +got\n%s", err, diff)
	}
}

// The minimum of a Job that Kueue may admit in part is an annotation, which a Job has no more that needs all of its members.
func TestPlanOfPartialAdmission(t *testing.T) {
	const annotation = "kueue.x-k8s.io/job-min-parallelism"
	one := workers(1)
	for change, want := range map[*resize.Change]string{{MinAvailable: 1}: "1", {MinAvailable: 3}: "3", {MinAvailable: 4}: "", &one: ""} {
		g, object, _ := waiting(t, clustertest.Gang{Kind: "Job", Missing: 4, Workers: 4, GPUs: 2, NoGroup: true, BatchJob: func(j *batchv1.Job) {
			suspend := true
			j.Spec.Suspend, j.Labels, j.Annotations = &suspend, map[string]string{"kueue.x-k8s.io/queue-name": "lq"}, map[string]string{annotation: "2"}
		}})
		p, err := resize.New(g, object, nil, *change, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Job.After.GetAnnotations()[annotation]; got != want {
			t.Errorf("%+v: the annotation is %q, want %q", *change, got, want)
		}
	}
}

// The queue and the class of a group are changed where the dialect has them.
func TestPlanOfQueue(t *testing.T) {
	g, job, group := waiting(t, clustertest.Gang{Dialect: gang.Volcano})
	p, err := resize.New(g, job, group, resize.Change{Queue: "night", PriorityClass: "low"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	queue, _, _ := unstructured.NestedString(p.Group.After.Object, "spec", "queue")
	class, _, _ := unstructured.NestedString(p.Group.After.Object, "spec", "priorityClassName")
	if queue != "night" || class != "low" {
		t.Errorf("got queue %q, class %q", queue, class)
	}
}

func TestPlanRefuses(t *testing.T) {
	yes := true
	owned := func(job map[string]any) {
		u := &unstructured.Unstructured{Object: job}
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "x/v1", Kind: "Pipeline", Name: "p", UID: "p", Controller: &yes}})
	}
	for name, tt := range map[string]struct {
		gang   clustertest.Gang
		change resize.Change
		want   string
	}{
		"no such role":       {change: resize.Change{Roles: []resize.Role{{Name: "ps", Replicas: new(int32)}}}, want: "it has no ps: it has worker"},
		"no members":         {change: workers(0), want: "it would have no members"},
		"minimum above all":  {change: resize.Change{MinAvailable: 5}, want: "5 members must start together, and it would have 4"},
		"no queue":           {change: resize.Change{Queue: "night"}, want: "it waits in no queue: its gang is declared in a way that has none"},
		"no such label":      {change: resize.Change{AnyNode: []string{"tier"}}, want: "its pods do not require nodes with the label tier"},
		"another controller": {gang: clustertest.Gang{Job: owned}, change: workers(2), want: "Pipeline p made it, and would make it again as it was: change that"},
		"too many":           {change: workers(resize.MaxReplicas + 1), want: `role "Worker": 10001 members: must be from 0 to 10000`},
	} {
		t.Run(name, func(t *testing.T) {
			g, job, group := waiting(t, tt.gang)
			_, err := resize.New(g, job, group, tt.change, nil)
			var refused *resize.RefusedError
			if !errors.As(err, &refused) || err.Error() != tt.want {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What was written by hand for the size before is not silently wrong; what an operator sets by itself needs no warning.
func TestPlanWarns(t *testing.T) {
	container := func(env []corev1.EnvVar, args ...string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].Env, spec.Containers[0].Args = env, args }
	}
	index := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
	torch := func(worldSize string) []corev1.EnvVar { // as submit writes it for four members
		return []corev1.EnvVar{{Name: "MASTER_ADDR", Value: "llama-0.llama.team.svc"}, {Name: "MASTER_PORT", Value: "29500"}, {Name: "PET_MASTER_ADDR", Value: "llama-0.llama.team.svc"}, {Name: "PET_MASTER_PORT", Value: "29500"},
			{Name: "WORLD_SIZE", Value: worldSize}, {Name: "RANK", ValueFrom: index}, {Name: "PET_NNODES", Value: "4"}, {Name: "PET_NODE_RANK", ValueFrom: index}, {Name: "PET_NPROC_PER_NODE", Value: "auto"}}
	}
	one := func(env []corev1.EnvVar) func(*corev1.PodSpec) { // a GPU for each of four members, which are as many
		return func(spec *corev1.PodSpec) {
			container(env)(spec)
			for _, list := range []corev1.ResourceList{spec.Containers[0].Resources.Limits, spec.Containers[0].Resources.Requests} {
				if _, there := list["nvidia.com/gpu"]; there {
					list["nvidia.com/gpu"] = clustertest.List("x", "1")["x"]
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		kind   string
		spec   func(*corev1.PodSpec)
		change resize.Change
		want   string
	}{
		"what gangctl wrote":       {"Job", one(torch("4")), gpus(2), ""},
		"not what gangctl wrote":   {"Job", one(torch("4")[4:5]), gpus(2), "variable WORLD_SIZE of container"},
		"a count of members":       {"TFJob", container([]corev1.EnvVar{{Name: "WORLD_SIZE", Value: "4"}}), workers(2), "variable WORLD_SIZE of container"},
		"another number":           {"TFJob", container([]corev1.EnvVar{{Name: "NUM_WORKERS", Value: "16"}}), workers(2), ""},
		"another variable":         {"TFJob", container([]corev1.EnvVar{{Name: "LEARNING_RATE", Value: "4"}}), workers(2), ""},
		"derived by the operator":  {"PyTorchJob", container([]corev1.EnvVar{{Name: "WORLD_SIZE", Value: "4"}}), workers(2), ""},
		"an argument":              {"MPIJob", container(nil, "mpirun", "-np", "4", "python"), workers(2), "argument -np 4 of container"},
		"an argument in a script":  {"TFJob", container(nil, "torchrun --nnodes=4 train.py"), workers(2), "argument --nnodes 4 of container"},
		"processes of each member": {"TFJob", container(nil, "torchrun", "--nproc_per_node", "2"), gpus(1), "argument --nproc_per_node 2 of container"},
		"a TF_CONFIG of one's own": {"Job", container([]corev1.EnvVar{{Name: "TF_CONFIG", Value: `{"cluster":{"worker":["a","b","c","d"]}}`}}), workers(2), "variable TF_CONFIG of container"},
	} {
		t.Run(name, func(t *testing.T) {
			g, job, group := waiting(t, clustertest.Gang{Kind: tt.kind, Spec: tt.spec})
			p, err := resize.New(g, job, group, tt.change, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.Notes, "\n"); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got %q\nwant %q…", got, tt.want)
			}
		})
	}
}

// A PyTorchJob of one member is a master alone: it grows by workers that are like it.
func TestGrowsByWorkers(t *testing.T) {
	master := func(job map[string]any) {
		specs := job["spec"].(map[string]any)["pytorchReplicaSpecs"].(map[string]any)
		delete(specs, "Worker")
	}
	g, job, group := waiting(t, clustertest.Gang{Kind: "PyTorchJob", Workers: 1, Min: 1, Missing: 1, More: []clustertest.Role{{Name: "Master", Replicas: 1, GPUs: 2}}, Job: master})
	grown := *g
	grown.Job = whatif.WithWorkers(g.Job)
	plan, err := resize.New(&grown, job, group, workers(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	after := plan.Job.After
	if n := number(after, "spec", "pytorchReplicaSpecs", "Worker", "replicas"); n != 3 {
		t.Errorf("got %d workers", n)
	}
	path := func(role string) []string {
		return []string{"spec", "pytorchReplicaSpecs", role, "template", "spec", "containers"}
	}
	want, _, _ := unstructured.NestedSlice(after.Object, path("Master")...)
	got, _, _ := unstructured.NestedSlice(after.Object, path("Worker")...)
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("the workers are not like the master: %s", diff)
	}
	if n := number(plan.Group.After, "spec", "minMember"); n != 4 {
		t.Errorf("got a minimum of %d", n)
	}
}

// What the operator derives the group object from is changed, too: it would make the object again as it was.
func TestPolicyOfTheOperatorsGroup(t *testing.T) {
	g, job, group := waiting(t, clustertest.Gang{Workers: 4, Volcano: "a"})
	c := resize.Change{MinAvailable: 2, Queue: "b", PriorityClass: "urgent"}
	plan, err := resize.New(g, job, group, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedMap(plan.Job.After.Object, "spec", "runPolicy", "schedulingPolicy")
	if diff := cmp.Diff(map[string]any{"minAvailable": int64(2), "queue": "b", "priorityClass": "urgent"}, got); diff != "" {
		t.Error(diff)
	}
}
