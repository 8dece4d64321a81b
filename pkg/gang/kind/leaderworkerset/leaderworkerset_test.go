package leaderworkerset

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

// job reads a LeaderWorkerSet with a body: what follows its metadata.
func job(t *testing.T, body string) *gang.Job {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: llama, namespace: team, uid: u}\n"+body), &u.Object); err != nil {
		t.Fatal(err)
	}
	j, err := Reader().Job(u)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func rolesOf(j *gang.Job) string {
	var parts []string
	for _, r := range j.Roles {
		parts = append(parts, fmt.Sprintf("%s=%d/%d:%s", r.Name, r.Replicas, r.PartSize, strings.Join(Reader().TemplatePath(r)[2:], ".")))
	}
	return strings.Join(parts, " ")
}

// of is a spec with fields of its own, and fields of the templates.
func of(fields, templates string) string {
	return "spec: {" + fields + "leaderWorkerTemplate: {" + templates + "workerTemplate: {spec: {containers: [{name: main}]}}}}"
}

func TestRead(t *testing.T) {
	updating := "\nstatus: {replicas: %d, conditions: [{type: UpdateInProgress, status: \"True\"}]}"
	tests := map[string]struct{ body, roles, problem, sequential string }{
		"one template":          {roles: "leader=2/1:workerTemplate worker=4/2:workerTemplate", body: of("replicas: 2, ", "size: 3, ")},
		"a leader's own":        {roles: "leader=1/1:leaderTemplate worker=1/1:workerTemplate", body: of("", "size: 2, leaderTemplate: {spec: {containers: [{name: main}]}}, ")},
		"defaults":              {roles: "leader=1/1:workerTemplate", body: of("", "")},
		"no replicas":           {roles: "leader=0/1:workerTemplate worker=0/2:workerTemplate", body: of("replicas: 0, ", "size: 3, ")},
		"replicas of an update": {roles: "leader=3/1:workerTemplate worker=6/2:workerTemplate", body: of("replicas: 2, ", "size: 3, ") + fmt.Sprintf(updating, 3)},
		"no more than twice as many": {roles: "leader=4/1:workerTemplate worker=8/2:workerTemplate",
			body: of("replicas: 2, ", "size: 3, ") + fmt.Sprintf(updating, 2000000000)},
		"fewer than an update had": {roles: "leader=2/1:workerTemplate worker=4/2:workerTemplate", body: of("replicas: 2, ", "size: 3, ") + fmt.Sprintf(updating, 1)},
		"the leader first": {roles: "leader=1/1:workerTemplate worker=1/1:workerTemplate", body: of("startupPolicy: LeaderReady, ", "size: 2, "),
			sequential: "the workers of a replica are made only when its leader is ready (startupPolicy: LeaderReady)"},
		"a leader alone": {roles: "leader=1/1:workerTemplate", body: of("startupPolicy: LeaderReady, ", "")},
		"no containers":  {roles: "leader=0/1:workerTemplate", body: "spec: {leaderWorkerTemplate: {}}", problem: "containers definition expected in spec.leaderWorkerTemplate.workerTemplate"},
		"a size of 0":    {roles: "leader=0/1:workerTemplate", body: of("", "size: 0, "), problem: "spec.leaderWorkerTemplate.size must be 1 or more"},
		"more than an int32 holds": {roles: "leader=0/1:workerTemplate worker=0/2147483646:workerTemplate", body: of("replicas: 2147483647, ", "size: 2147483647, "),
			problem: "spec: 2147483647 replicas of 2147483647 pods are more than a LeaderWorkerSet may have"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := job(t, tt.body)
			if got := rolesOf(j); got != tt.roles {
				t.Errorf("roles %s, want %s", got, tt.roles)
			}
			if got := strings.Join(j.Problems, "; "); got != tt.problem {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
			if j.Sequential != tt.sequential {
				t.Errorf("sequential %q, want %q", j.Sequential, tt.sequential)
			}
			if last := j.Roles[len(j.Roles)-1]; (last.Follows.Role == Leader && !last.Follows.Placed) != (tt.sequential != "") {
				t.Errorf("%s follows %+v", last.Name, last.Follows)
			}
		})
	}
}

// pod is one that the controller made: of a replica, in its place there.
func pod(replica, within string) *corev1.Pod {
	yes, set := true, "llama-"+replica
	if within == "0" {
		set = "llama"
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "llama-" + replica + "-" + within, Labels: map[string]string{NameLabel: "llama", GroupIndexLabel: replica, WorkerIndexLabel: within},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: "s", Controller: &yes}},
	}}
}

// Members are numbered through the replicas, and each replica is a gang of the members of its number.
func TestReplicasAreGangs(t *testing.T) {
	j := job(t, of("replicas: 3, ", "size: 3, "))
	pods := []*corev1.Pod{pod("0", "0"), pod("0", "1"), pod("0", "2"), pod("2", "0"), pod("2", "2"), pod("1", "7"), pod("9", "0"), pod("-1", "0"), pod("x", "y")}
	for _, p := range pods[:3] {
		p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	}
	members, unlisted := gang.Assemble(j, pods[:7], nil)
	g := gang.New(j, members, unlisted, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil)
	var got []string
	for _, one := range g.Each {
		var names []string
		for _, m := range one.Members {
			name := m.Name() + "="
			if m.Pod != nil {
				name += m.Pod.Name
			}
			names = append(names, name)
		}
		got = append(got, fmt.Sprintf("%s %s %d/%d: %s", one.Title(), gang.StateOf(one, metav1.Now().Time), one.Min, one.Total(), strings.Join(names, " ")))
		if name := one.Roles[0].Template.Labels[GroupIndexLabel]; name != fmt.Sprint(*one.Replica) {
			t.Errorf("the template of %s is labelled as replica %s", one.Title(), name)
		}
	}
	want := []string{
		"llama replica 0 Running 3/3: leader-0=llama-0-0 worker-0=llama-0-1 worker-1=llama-0-2",
		"llama replica 1 Pending 3/3: leader-1= worker-2= worker-3=",
		"llama replica 2 Pending 3/3: leader-2=llama-2-0 worker-4= worker-5=llama-2-2",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if state := gang.StateOf(g, metav1.Now().Time); state != gang.Starting || g.Min != 9 {
		t.Errorf("all are %s, at least %d", state, g.Min)
	}
	if running, all := g.Replicas(); running != 1 || all != 3 {
		t.Errorf("%d/%d run", running, all)
	}
}

// Members of a job of absurd size are listed up to a limit, and so are its gangs.
func TestTheListOfGangsIsBounded(t *testing.T) {
	j := job(t, of("replicas: 1000000, ", "size: 2000, "))
	members, unlisted := gang.Assemble(j, nil, nil)
	g := gang.New(j, members, unlisted, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil)
	if len(g.Each) > 1000 || g.Gangs() != 1000000 || gang.StateOf(g, metav1.Now().Time) != gang.Pending {
		t.Errorf("%d of %d gangs, %s", len(g.Each), g.Gangs(), gang.StateOf(g, metav1.Now().Time))
	}
	if one := g.Each[0]; one.Total() != 2000 || one.Count(gang.Missing) != 2000 {
		t.Errorf("%d members, %d missing", one.Total(), one.Count(gang.Missing))
	}
}

func TestOwns(t *testing.T) {
	j := job(t, of("", "size: 3, "))
	foreign := pod("0", "1")
	foreign.OwnerReferences[0].Name = "other"
	deployed := pod("0", "1")
	deployed.OwnerReferences[0].Kind = "ReplicaSet"
	elsewhere := pod("0", "1")
	elsewhere.Namespace = "another"
	for want, pods := range map[bool][]*corev1.Pod{true: {pod("0", "0"), pod("0", "1")}, false: {foreign, deployed, elsewhere}} {
		for _, p := range pods {
			if j.Owns(p) != want {
				t.Errorf("%s of %s: %v", p.Name, p.OwnerReferences[0].Name, !want)
			}
		}
	}
}

// What a replica is changed to is written into the templates, without what the controller adds to pods.
func TestWriteRoles(t *testing.T) {
	j := job(t, of("replicas: 2, ", "size: 3, "))
	members, _ := gang.Assemble(j, nil, nil)
	one := gang.New(j, members, nil, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil).Each[1]
	one.Roles[1].Replicas = 4
	one.Roles[1].Template.Spec.SchedulerName = "s"
	writeRoles(j.Object, one.Roles)
	again, err := Reader().Job(j.Object)
	if err != nil {
		t.Fatal(err)
	}
	if got := rolesOf(again); got != "leader=2/1:workerTemplate worker=8/4:workerTemplate" || again.Roles[0].Template.Spec.SchedulerName != "s" {
		t.Errorf("%s of %q", got, again.Roles[0].Template.Spec.SchedulerName)
	}
	labels, _, _ := unstructured.NestedMap(j.Object.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "labels")
	if len(labels) > 0 {
		t.Errorf("labels of pods in the template: %v", labels)
	}
}

// A leader without workers is made of their template: a change of it is written there.
func TestWriteRolesOfALeaderAlone(t *testing.T) {
	j := job(t, of("", "size: 1, "))
	if len(j.Roles) != 1 {
		t.Fatalf("%d roles", len(j.Roles))
	}
	j.Roles[0].Template.Spec.SchedulerName = "s"
	writeRoles(j.Object, j.Roles)
	again, err := Reader().Job(j.Object)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Roles[0].Template.Spec.SchedulerName; got != "s" {
		t.Errorf("got %q", got)
	}
}
