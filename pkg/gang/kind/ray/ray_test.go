package ray

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
)

func object(t *testing.T, kind, body string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: ray.io/v1\nkind: "+kind+"\nmetadata: {name: llama, namespace: team, uid: u}\n"+body), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func read(t *testing.T, r gang.JobReader, body string) *gang.Job {
	t.Helper()
	j, err := r.Job(object(t, r.Kind, body))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func roles(j *gang.Job) string {
	var parts []string
	for _, r := range j.Roles {
		parts = append(parts, fmt.Sprintf("%s=%d:%s/%d", r.Name, r.Replicas, r.Main, len(r.Template.Spec.Containers)))
	}
	return strings.Join(parts, " ")
}

const (
	pods = "template: {spec: {containers: [{name: ray}]}}"
	head = "headGroupSpec: {" + pods + "}, "
)

func groups(all ...string) string {
	for i := range all {
		all[i] = "{groupName: " + all[i] + ", " + pods + "}"
	}
	return head + "workerGroupSpecs: [" + strings.Join(all, ", ") + "]"
}

// The numbers are those of the operator: see GetWorkerGroupDesiredReplicas of KubeRay.
func TestReadCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		spec, roles, problem string
		least                int32
	}{
		"a head alone":       {spec: head, roles: "head=1:ray/1"},
		"groups":             {spec: groups("small, replicas: 2", "large, replicas: 3, numOfHosts: 4"), roles: "head=1:ray/1 small=2:ray/1 large=12:ray/1"},
		"no number":          {spec: groups("a"), roles: "head=1:ray/1 a=0:ray/1"},
		"the least":          {spec: groups("a, minReplicas: 2, maxReplicas: 5"), roles: "head=1:ray/1 a=2:ray/1"},
		"less than least":    {spec: groups("a, replicas: 1, minReplicas: 2, maxReplicas: 5"), roles: "head=1:ray/1 a=2:ray/1"},
		"more than most":     {spec: groups("a, replicas: 9, minReplicas: 2, maxReplicas: 5"), roles: "head=1:ray/1 a=5:ray/1"},
		"suspended group":    {spec: groups("a, replicas: 9, suspend: true"), roles: "head=1:ray/1 a=0:ray/1"},
		"may shrink":         {spec: "enableInTreeAutoscaling: true, " + groups("a, replicas: 4, minReplicas: 1, maxReplicas: 5, numOfHosts: 2"), roles: "head=1:ray/2 a=8:ray/1", least: 3},
		"is least":           {spec: "enableInTreeAutoscaling: true, " + groups("a, replicas: 1, minReplicas: 1, maxReplicas: 5"), roles: "head=1:ray/2 a=1:ray/1"},
		"nothing":            {spec: "", roles: "head=1:/0", problem: "spec.headGroupSpec.template has no containers"},
		"no containers":      {spec: head + "workerGroupSpecs: [{groupName: a}]", roles: "head=1:ray/1 a=0:/0", problem: "spec.workerGroupSpecs: the template of a has no containers"},
		"nameless":           {spec: head + "workerGroupSpecs: [{" + pods + "}]", roles: "head=1:ray/1 =0:/1", problem: "spec.workerGroupSpecs: a group has no groupName"},
		"a name twice":       {spec: groups("a", "a"), roles: "head=1:ray/1 a=0:ray/1", problem: `spec.workerGroupSpecs: two groups are called "a"`},
		"another head":       {spec: groups("head"), roles: "head=1:ray/1", problem: `spec.workerGroupSpecs: a group of workers is called "head", which is what gangctl calls the head`},
		"less than nothing":  {spec: groups("a, replicas: -1"), roles: "head=1:ray/1 a=0:ray/1", problem: "spec.workerGroupSpecs: replicas and minReplicas of a must be 0 or more"},
		"most under least":   {spec: groups("a, minReplicas: 3, maxReplicas: 2"), roles: "head=1:ray/1 a=0:ray/1", problem: "spec.workerGroupSpecs: minReplicas of a is 3, and maxReplicas 2"},
		"more than is known": {spec: groups("a, replicas: 2147483647, numOfHosts: 2147483647"), roles: "head=1:ray/1 a=0:ray/1", problem: "spec.workerGroupSpecs: 4611686014132420609 pods of a are more than a RayCluster may have"},
	} {
		t.Run(name, func(t *testing.T) {
			j := read(t, ClusterReader(), "spec: {"+tt.spec+"}")
			if got := roles(j); got != tt.roles {
				t.Errorf("roles: got %q, want %q", got, tt.roles)
			}
			if got := strings.Join(j.Problems, "; "); got != tt.problem {
				t.Errorf("problems: got %q", got)
			}
			if tt.least == 0 && j.MinMember != nil || tt.least > 0 && (j.MinMember == nil || *j.MinMember != tt.least) {
				t.Errorf("minimum %v, want %d", j.MinMember, tt.least)
			}
		})
	}
	if _, err := ClusterReader().Job(object(t, ClusterKind, "spec: {workerGroupSpecs: many}")); err == nil || !strings.Contains(err.Error(), "read RayCluster team/llama: decode spec: ") {
		t.Errorf("got %v", err)
	}
}

func TestAutoscaler(t *testing.T) {
	for options, want := range map[string]string{"": "500m", "autoscalerOptions: {resources: {requests: {cpu: 2}}}, ": "2"} {
		j := read(t, ClusterReader(), "spec: {enableInTreeAutoscaling: true, "+options+head+"}")
		if got := j.Roles[0].Template.Spec.Containers[1].Resources.Requests.Cpu().String(); got != want {
			t.Errorf("%s: got %s", options, got)
		}
	}
}

func TestReadJob(t *testing.T) {
	const body = "spec: {suspend: true, shutdownAfterJobFinishes: true, activeDeadlineSeconds: 60, rayClusterSpec: {"
	spec := body + groups("a, replicas: 2") + "}}\n"
	j := read(t, JobReader(), spec)
	if roles(j) != "head=1:ray/1 a=2:ray/1" || !j.Suspended || j.Unsuspendable || j.Deadline.Seconds() != 60 || j.Seen || j.End != nil || j.NameInLabels() != "" {
		t.Errorf("got %+v", j)
	}
	j = read(t, JobReader(), spec+`status: {rayClusterName: llama-x7k2p, jobDeploymentStatus: Running, startTime: "2026-11-21T12:00:00Z"}`)
	if !j.Seen || j.End != nil || j.NameInLabels() != "llama-x7k2p" || j.Started.Hour() != 12 {
		t.Errorf("got %+v", j)
	}
	for status, want := range map[string]string{
		"jobDeploymentStatus: Complete, jobStatus: SUCCEEDED":                                          "false SUCCEEDED 13",
		"jobDeploymentStatus: Complete, jobStatus: STOPPED":                                            "true STOPPED 13",
		"jobDeploymentStatus: Failed, jobStatus: RUNNING, reason: DeadlineExceeded, message: too long": "true DeadlineExceeded 13",
		"jobDeploymentStatus: ValidationFailed, reason: ValidationFailed, message: no entrypoint":      "true ValidationFailed 13 no entrypoint",
	} {
		j := read(t, JobReader(), spec+`status: {endTime: "2026-11-21T13:00:00Z", `+status+"}")
		if got := strings.TrimSpace(fmt.Sprint(j.End.Failed, " ", j.End.Reason, " ", j.End.At.Hour(), " ", strings.Join(j.Problems, ""))); got != want {
			t.Errorf("%s: got %s", status, got)
		}
	}
	if j := read(t, JobReader(), "spec: {}"); strings.Join(j.Problems, "") != "spec has neither rayClusterSpec nor clusterSelector" {
		t.Errorf("got %v", j.Problems)
	}
	other := "spec: {clusterSelector: {ray.io/cluster: c}}\nstatus: {rayClusterName: c}"
	if j := read(t, JobReader(), other); len(j.Roles)+len(j.Problems) > 0 || j.NameInLabels() != "" || !UsesAnother(object(t, JobKind, other)) {
		t.Errorf("got %+v", j)
	}
}

func TestNames(t *testing.T) {
	for n, bad := range map[int]bool{47: false, 48: true} {
		if (JobNameProblem(strings.Repeat("a", n)) != "") != bad {
			t.Errorf("a name of %d characters: got %v", n, !bad)
		}
	}
	u := object(t, ClusterKind, "spec: {"+head+"}")
	u.SetName(strings.Repeat("a", 54))
	if j, err := ClusterReader().Job(u); err != nil || len(j.Problems) != 1 {
		t.Errorf("got %+v, %v", j, err)
	}
}

// KubeRay leaves a RayJob alone that it cannot suspend: its pods stay.
func TestUnsuspendable(t *testing.T) {
	for spec, want := range map[string]bool{"shutdownAfterJobFinishes: true": false, "": true, "shutdownAfterJobFinishes: true, clusterSelector: {ray.io/cluster: c}": true} {
		if got := Unsuspendable(object(t, JobKind, "spec: {"+spec+"}")) != ""; got != want {
			t.Errorf("%s: got %v", spec, got)
		}
	}
	if Unsuspendable(object(t, ClusterKind, "spec: {}")) != "" {
		t.Error("a RayCluster can be suspended")
	}
}

// pod is one of a RayCluster.
func pod(name, cluster, group, kind string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{clusterLabel: cluster, groupLabel: group, typeLabel: kind},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: ClusterKind, Name: cluster, UID: "of-" + "cluster", Controller: &yes}}}}
}

// Members are the pods of the RayCluster, by their group; the pod that submits the entrypoint is none.
func TestMembers(t *testing.T) {
	j := read(t, JobReader(), "spec: {rayClusterSpec: {"+groups("Small, replicas: 2", "big, replicas: 1")+"}}\nstatus: {rayClusterName: llama-x7k2p}")
	submitter := pod("llama-abcde", "llama-x7k2p", "", "")
	submitter.Labels, submitter.OwnerReferences[0].Kind, submitter.OwnerReferences[0].Name = nil, "Job", "llama"
	var own []*corev1.Pod
	for _, p := range []*corev1.Pod{pod("h", "llama-x7k2p", headGroup, "head"), pod("b", "llama-x7k2p", "big", "worker"), pod("s", "llama-x7k2p", "Small", "worker"), pod("other", "llama-other", headGroup, "head"), submitter} {
		if j.Owns(p) {
			own = append(own, p)
		}
	}
	members, _ := gang.Assemble(j, own, nil)
	var got []string
	for _, m := range members {
		name := "-"
		if m.Pod != nil {
			name = m.Pod.Name
		}
		got = append(got, m.Name()+"="+name)
	}
	if want := "head-0=h small-0=s small-1=- big-0=b"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if got := labels(j, gang.RoleIndex{Role: Head}); got[groupLabel] != headGroup || got[typeLabel] != "head" || got[clusterLabel] != "llama-x7k2p" {
		t.Errorf("got %v", got)
	}
}

// What is written is read again, as far as a RayCluster can have it.
func TestWriteRoles(t *testing.T) {
	for name, tt := range map[string]struct {
		change func([]gang.Role)
		want   string
	}{
		"fewer":             {func(r []gang.Role) { r[1].Replicas = 2 }, "head=1:ray/2 a=2:ray/1"},
		"no replicas of it": {func(r []gang.Role) { r[1].Replicas = 3 }, "head=1:ray/2 a=4:ray/1"},
		"more than most":    {func(r []gang.Role) { r[1].Replicas = 12 }, "head=1:ray/2 a=12:ray/1"},
		"fewer than least":  {func(r []gang.Role) { r[1].Replicas = 0 }, "head=1:ray/2 a=0:ray/1"},
		"another container": {func(r []gang.Role) { r[0].Template.Spec.Containers[0].Name = "x" }, "head=1:x/2 a=4:ray/1"},
	} {
		u := object(t, JobKind, "spec: {rayClusterSpec: {enableInTreeAutoscaling: true, "+groups("a, replicas: 2, minReplicas: 1, maxReplicas: 3, numOfHosts: 2")+"}}")
		j, err := JobReader().Job(u)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(j.Roles)
		JobReader().WriteRoles(u, j.Roles)
		again, err := JobReader().Job(u)
		if err != nil {
			t.Fatal(err)
		}
		if got := roles(again); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
