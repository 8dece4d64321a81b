package jobset

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// ordered has replicated jobs of one pod, two Jobs of two, and none, which the controller makes one after the other.
const ordered = "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: driver, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}, " +
	"{name: none, replicas: 0, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}, " +
	"{name: workers, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main}]}}}}}]}\n"

// statusOf is a status of which so many Jobs of the driver are ready.
func statusOf(ready int) string {
	return fmt.Sprintf("status: {replicatedJobsStatus: [{name: driver, ready: %d}]}\n", ready)
}

// assembled is the gang of a JobSet with pods, each of which is in the gang of its name.
func assembled(j *gang.Job, group map[string]string, pods ...*corev1.Pod) *gang.Gang {
	members, unlisted := gang.Assemble(j, pods, nil)
	return gang.New(j, members, unlisted, func(job *gang.Job, _ []gang.Member) gang.Declared {
		if len(job.Roles) != 1 || group[job.Roles[0].Name] == "" {
			return gang.Declared{}
		}
		return gang.Declared{Named: gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: group[job.Roles[0].Name]}}
	}, nil)
}

func running(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	return p
}

// Each replicated job that waits for others is a gang of its own, which is made when these are ready.
func TestReplicatedJobsInOrderAreGangs(t *testing.T) {
	driver := running(pod("d", "u", "driver", "0", "0", "llama-driver-0"))
	workers := []*corev1.Pod{pod("w00", "u", "workers", "0", "0", "llama-workers-0"), pod("w01", "u", "workers", "0", "1", "llama-workers-0"), pod("w10", "u", "workers", "1", "0", "llama-workers-1"), pod("w11", "u", "workers", "1", "1", "llama-workers-1")}
	for _, tt := range []struct {
		name, status string
		pods         []*corev1.Pod
		want         string
		state        gang.State
	}{
		{"nothing yet", "", nil, "llama driver Pending 1; llama workers Pending 4: driver must be ready first", gang.Pending},
		{"the driver runs", statusOf(0), []*corev1.Pod{driver}, "llama driver Running 1; llama workers Pending 4: driver must be ready first", gang.Starting},
		{"the driver is ready", statusOf(1), append([]*corev1.Pod{driver}, workers...), "llama driver Running 1; llama workers Pending 4", gang.Starting},
	} {
		j := job(t, ordered+tt.status)
		g := assembled(j, nil, tt.pods...)
		var got []string
		for _, one := range g.Each {
			text := fmt.Sprintf("%s %s %d", one.Title(), gang.StateOf(one, metav1.Now().Time), one.Total())
			if one.Before != "" {
				text += ": " + one.Before
			}
			if one.Sequential != "" {
				t.Errorf("%s: %s waits for itself", tt.name, one.Title())
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != tt.want || gang.StateOf(g, metav1.Now().Time) != tt.state || g.Gangs() != 2 {
			t.Errorf("%s: got %s, %s, %d gangs", tt.name, strings.Join(got, "; "), gang.StateOf(g, metav1.Now().Time), g.Gangs())
		}
	}
	for i := range workers {
		workers[i] = running(workers[i])
	}
	all := assembled(job(t, ordered+statusOf(1)), nil, append([]*corev1.Pod{driver}, workers...)...)
	if ready, gangs := all.Replicas(); ready != 2 || gangs != 2 || gang.StateOf(all, metav1.Now().Time) != gang.Running {
		t.Errorf("%d/%d run, %s", ready, gangs, gang.StateOf(all, metav1.Now().Time))
	}
}

// What the pods of several replicated jobs name is one gang, which waits for itself.
func TestOneGroupIsOneGang(t *testing.T) {
	for _, tt := range []struct {
		group map[string]string
		gangs int32
	}{
		{map[string]string{"driver": "llama", "workers": "llama"}, 1},
		{map[string]string{"driver": "llama-driver", "workers": "llama-workers"}, 2},
		{nil, 2},
	} {
		g := assembled(job(t, ordered), tt.group)
		if g.Gangs() != tt.gangs || (len(g.Each) > 0) != (tt.gangs > 1) || g.Min != 5 || g.Sequential == "" {
			t.Errorf("%v: %d gangs, %d listed, at least %d, %q", tt.group, g.Gangs(), len(g.Each), g.Min, g.Sequential)
		}
		driver := pod("llama-driver-0-0-x", "", "driver", "0", "0", "llama-driver-0")
		if g = assembled(job(t, ordered), tt.group, driver); tt.gangs == 1 && g.Count(gang.NotDue) != 4 {
			t.Errorf("%v: %d are not due", tt.group, g.Count(gang.NotDue))
		}
	}
}

// Dependencies are reached as the controller reaches them.
func TestDependencies(t *testing.T) {
	body := func(status string) string {
		return "spec: {replicatedJobs: [{name: a, replicas: 2, " + of("") + "}, {name: b, " + of("") + "}, {name: c, dependsOn: [{name: a, status: " + status + "}, {name: b, status: Ready}], " + of("") + "}]}\n"
	}
	for _, tt := range []struct{ depends, status, want string }{
		{"Ready", "", "a must be ready first, b must be ready first"},
		{"Ready", "status: {replicatedJobsStatus: [{name: a, ready: 1, succeeded: 1}, {name: b}]}", "b must be ready first"},
		{"Complete", "status: {replicatedJobsStatus: [{name: a, ready: 1, succeeded: 1}, {name: b, ready: 1}]}", "a must complete first"},
		{"Complete", "status: {replicatedJobsStatus: [{name: a, succeeded: 2}, {name: b, ready: 1}]}", ""},
	} {
		j := job(t, body(tt.depends)+tt.status)
		if j.Division != gang.ByRole || j.Roles[2].After != tt.want || j.Roles[0].After != "" {
			t.Errorf("%s, %s: %q", tt.depends, tt.status, j.Roles[2].After)
		}
	}
	rack := "spec: {replicatedJobs: [{name: a, " + of("") + "}, {name: b, dependsOn: [{name: a, status: Ready}], template: {metadata: {annotations: {" + exclusiveAnnotation + ": rack}}, spec: {parallelism: 2, template: {spec: {containers: [{name: main}]}}}}}]}"
	if j := job(t, rack); j.Division != gang.Undivided || !strings.Contains(j.Sequential, exclusiveAnnotation) {
		t.Errorf("a Job whose pods follow its first is divided: %q", j.Sequential)
	} else if j.Roles[0].Follows.Role != "" || j.Roles[1].Follows.Role != "b" || !j.Roles[1].Follows.Placed {
		t.Errorf("got %+v, %+v", j.Roles[0].Follows, j.Roles[1].Follows)
	}
}
