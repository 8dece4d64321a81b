package gang_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// A member that comes after others is not missing as long as they are not so far.
func TestNotDue(t *testing.T) {
	last := []gang.Role{{Name: "Launcher", Replicas: 1, Follows: gang.Lead{Role: "worker"}}, {Name: "Worker", Replicas: 2}}
	replicas := func(placed bool) []gang.Role {
		return []gang.Role{{Name: "leader", Replicas: 2, PartSize: 1}, {Name: "worker", Replicas: 4, PartSize: 2, Follows: gang.Lead{Role: "leader", Placed: placed}}}
	}
	first := []gang.Role{{Name: "worker", Replicas: 4, PartSize: 2, Follows: gang.Lead{Role: "worker", Placed: true}}}
	after := func(one bool) []gang.Role {
		return []gang.Role{{Name: "Master", Replicas: 1}, {Name: "Worker", Replicas: 1}, {Name: "PS", Replicas: 1, Follows: gang.Lead{Role: "master", Also: []string{"worker"}, Any: one}}}
	}
	for name, tt := range map[string]struct {
		roles []gang.Role
		pods  string
		job   func(*gang.Job)
		want  string
	}{
		"one starts":            {roles: last, pods: "worker-0=runs worker-1=starts", want: "NotDue Running Starting"},
		"one waits":             {roles: last, pods: "worker-0=runs worker-1=waits", want: "NotDue Running Pending"},
		"one is missing, too":   {roles: last, pods: "worker-0=runs", want: "NotDue Running Missing"},
		"all run":               {roles: last, pods: "worker-0=runs worker-1=runs", want: "Missing Running Running"},
		"one has ended":         {roles: last, pods: "worker-0=runs worker-1=done", want: "Missing Running Succeeded"},
		"it was made":           {roles: last, pods: "launcher-0=waits worker-0=runs worker-1=starts", want: "Pending Running Starting"},
		"no pod is there":       {roles: last, want: "Missing Missing Missing"},
		"suspended":             {roles: last, pods: "worker-0=runs worker-1=starts", job: func(j *gang.Job) { j.Suspended = true }, want: "Missing Running Starting"},
		"ended":                 {roles: last, pods: "worker-0=runs worker-1=starts", job: func(j *gang.Job) { j.End = &gang.End{} }, want: "Missing Running Starting"},
		"part by part":          {roles: replicas(false), pods: "leader-0=runs leader-1=starts", want: "Running Starting Missing Missing NotDue NotDue"},
		"a node is enough":      {roles: replicas(true), pods: "leader-0=waits leader-1=starts", want: "Pending Starting NotDue NotDue Missing Missing"},
		"the first leaves":      {roles: replicas(true), pods: "leader-0=leaves leader-1=starts", want: "Terminating Starting NotDue NotDue Missing Missing"},
		"a part without a pod":  {roles: replicas(false), pods: "leader-0=starts", want: "Starting Missing NotDue NotDue Missing Missing"},
		"after the first":       {roles: first, pods: "worker-0=starts worker-2=waits", want: "Starting Missing Pending NotDue"},
		"after two":             {roles: after(false), pods: "master-0=runs worker-0=starts", want: "Running Starting NotDue"},
		"after two that run":    {roles: after(false), pods: "master-0=runs worker-0=runs", want: "Running Running Missing"},
		"after two, with one":   {roles: after(false), pods: "master-0=runs", want: "Running Missing NotDue"},
		"after one of two":      {roles: after(true), pods: "master-0=runs worker-0=starts", want: "Running Starting Missing"},
		"after none":            {roles: first, pods: "worker-1=starts", want: "Missing Starting Missing Missing"},
		"one like any other is": {roles: []gang.Role{{Name: "Worker", Replicas: 2}}, pods: "worker-0=starts", want: "Starting Missing"},
	} {
		t.Run(name, func(t *testing.T) {
			job := &gang.Job{Reader: tfjob.Reader(), Meta: metav1.ObjectMeta{Namespace: "research", Name: "llama"}, Roles: tt.roles}
			if tt.job != nil {
				tt.job(job)
			}
			members, _ := gang.Assemble(job, podsLike(tt.pods), nil)
			var states []string
			for _, m := range members {
				states = append(states, string(m.State))
			}
			if got := strings.Join(states, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Members of a part that has a domain to itself are missing while its first has no node, as they are placed with it, and come after it all the same.
func TestAwaits(t *testing.T) {
	job := &gang.Job{Reader: tfjob.Reader(), Meta: metav1.ObjectMeta{Namespace: "research", Name: "llama"}, Exclusive: []gang.Exclusive{{}},
		Roles: []gang.Role{{Name: "worker", Replicas: 6, PartSize: 2, Follows: gang.Lead{Role: "worker", Placed: true}}}}
	members, unlisted := gang.Assemble(job, podsLike("worker-0=waits worker-2=starts"), nil)
	g := gang.New(job, members, unlisted, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil)
	awaits := g.Awaits()
	var got []string
	for _, m := range g.Members {
		got = append(got, fmt.Sprintf("%s:%v", m.State, awaits(m)))
	}
	if want := "Pending:false Missing:true Starting:false Missing:false Missing:false Missing:false"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

// podsLike are pods in short: ROLE-INDEX=STATE.
func podsLike(all string) []*corev1.Pod {
	states := map[string]func(*corev1.Pod){"runs": runs, "starts": notReady, "waits": func(*corev1.Pod) {}, "done": phase(corev1.PodSucceeded), "leaves": func(p *corev1.Pod) {
		runs(p)
		p.DeletionTimestamp = &metav1.Time{Time: p.CreationTimestamp.Add(time.Hour)}
	}}
	var pods []*corev1.Pod
	for _, one := range strings.Fields(all) {
		name, state, _ := strings.Cut(one, "=")
		p := pod(name, states[state])
		role, index, _ := strings.Cut(name, "-")
		p.Labels = map[string]string{"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": index}
		pods = append(pods, p)
	}
	return pods
}

// Members that are too many to be listed are not due together with those that are, and a gang that waits for none is not stuck.
func TestManyAreNotDue(t *testing.T) {
	job := &gang.Job{Reader: tfjob.Reader(), Meta: metav1.ObjectMeta{Namespace: "research", Name: "llama"}, Roles: []gang.Role{
		{Name: "leader", Replicas: 1, PartSize: 1}, {Name: "worker", Replicas: 5000, PartSize: 5000, Follows: gang.Lead{Role: "leader"}}}}
	members, unlisted := gang.Assemble(job, podsLike("leader-0=starts"), nil)
	g := gang.New(job, members, unlisted, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil)
	if got := fmt.Sprintf("%d %d %d %s %d", g.Count(gang.Missing), g.Count(gang.NotDue), g.Created(), g.Unmade("worker"), len(unlisted)); got != "0 5000 1 NotDue 1" {
		t.Errorf("got %s", got)
	}
	if state := gang.StateOf(g, now); state != gang.Starting {
		t.Errorf("got %s", state)
	}
}
