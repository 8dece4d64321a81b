package component

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// grant lets an account hold rights in all namespaces.
func grant(c *clustertest.Cluster, namespace string, rules ...rbacv1.PolicyRule) {
	name := metav1.ObjectMeta{Name: "of-" + namespace}
	c.Put(&rbacv1.ClusterRole{ObjectMeta: name, Rules: rules})
	c.Put(&rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "sched"}}})
}

// reported is all that answers about a job of namespace team have from who is who in the cluster.
func reported(c *clustertest.Cluster) string {
	v := view.New(c.Done())
	g := &gang.Gang{Job: &gang.Job{Kind: tfjob.Reader().WithVersion("v1"), Reader: tfjob.Reader(), Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama"}}, Scheduler: clustertest.Scheduler}
	text := fmt.Sprintln(SchedulerNames(v, "team"), GangScheduler(v, gang.SchedulerPlugins, "gang-scheduler"), GangScheduler(v, gang.Volcano, "volcano"),
		OperatorScheduler(v, g), OperatorLog(v, g), MakesGroups(v, g), len(Operators(v, g.Job)))
	for _, name := range []string{clustertest.Scheduler, "volcano", "default-scheduler", "nothing"} {
		s := FindScheduler(v, name, "team")
		text += fmt.Sprintln(name, s.Down(v.Now), s.LastSeen, s.AliveSince, names(s.Deployments))
	}
	return text + fmt.Sprintln(len(Running(v, Kueue(), func(image string) bool { return image == "kueue" })))
}

func names(all []*appsv1.Deployment) (names []string) {
	for _, d := range all {
		names = append(names, d.Namespace+"/"+d.Name)
	}
	return names
}

// Nothing that a tenant writes in his namespace, whatever it is called, changes what others read of operators and schedulers.
func TestWhatATenantWritesIsNoComponent(t *testing.T) {
	none := int32(0)
	for name, write := range map[string]func(*clustertest.Cluster){
		"an operator": func(c *clustertest.Cluster) {
			c.Deployment("evil", "training-operator", "kubeflow/training-operator:v1", "--gang-scheduler-name=mine")
		},
		"an operator, the first": func(c *clustertest.Cluster) {
			c.Deployment("a-evil", "x", "kubeflow/training-operator:v1", "--gang-scheduler-name=mine")
		},
		"the scheduler of its operator": func(c *clustertest.Cluster) {
			c.Deployment("a-evil", "training-operator", "kubeflow/training-operator:v1", "--gang-scheduler-name=mine")
			c.Deployment("a-evil", "mine", "gang-scheduler:v1", "--scheduler-name=mine")
		},
		"a scheduler": func(c *clustertest.Cluster) { c.Deployment("evil", "vc", "volcanosh/vc-scheduler:v1") },
		"a scheduler that is down": func(c *clustertest.Cluster) {
			d := c.Deployment("evil", clustertest.Scheduler, "x")
			d.Spec.Replicas, d.Status.ReadyReplicas = &none, 0
		},
		"a scheduler of that name": func(c *clustertest.Cluster) { c.Deployment("evil", "x", "x", "--serve=gang,nothing,default-scheduler") },
		"Kueue":                    func(c *clustertest.Cluster) { c.Deployment("evil", "kueue", "kueue:v1").Status.ReadyReplicas = 0 },
		"leases": func(c *clustertest.Cluster) {
			for _, name := range []string{clustertest.Scheduler, "gang-scheduler", "kube-scheduler", "volcano", "nothing"} {
				c.Lease(name, -time.Hour).Namespace = "evil"
			}
		},
		"events": func(c *clustertest.Cluster) {
			c.Event("Pod", "evil", "x", clustertest.Scheduler, "Scheduled", "assigned", -time.Hour)
			c.Event("Pod", "evil", "x", "mine", "Scheduled", "assigned", 0)
		},
	} {
		cluster := func() *clustertest.Cluster {
			c := clustertest.New()
			grant(c, "evil", right("", "pods", "get", "list", "watch"))
			grant(c, "gangctl-system", right("", "pods/binding", "create"))
			grant(c, "kubeflow", right("kubeflow.org", "*", "*"))
			return c
		}
		changed := cluster()
		write(changed)
		if got, want := reported(changed), reported(cluster()); got != want {
			t.Errorf("%s: others read\n%s\nwithout it\n%s", name, got, want)
		}
	}
}

// What administrators have act on all namespaces is found wherever it is, and so is all where a reader may not see who may do what.
func TestComponentsInAnyNamespace(t *testing.T) {
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"by pods/binding": {right("", "pods/binding", "create")}, "by bindings": {right("", "bindings", "create")}, "by all": {right("*", "*", "*")}, "unknown": nil,
	} {
		c := clustertest.New()
		c.S.Deployments, c.S.Leases = nil, nil
		c.Deployment("ml", "mine", "x")
		c.Lease("mine", time.Second).Namespace = "ml"
		if rules != nil {
			grant(c, "ml", rules...)
		}
		if s := FindScheduler(view.New(c.Done()), "mine", "team"); len(s.Deployments) != 1 || len(s.Leases) != 1 {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	// Where the reader may not see that, the usual namespace has precedence.
	c := clustertest.New()
	c.Deployment("evil", clustertest.Scheduler, "x")
	c.Lease("gang-scheduler", -time.Hour).Namespace = "evil"
	s := FindScheduler(view.New(c.Done()), clustertest.Scheduler, "team")
	if len(s.Deployments) != 1 || s.Deployments[0].Namespace != "gangctl-system" || s.LastSeen.After(clustertest.Now) {
		t.Errorf("got %v, last seen %s", names(s.Deployments), s.LastSeen)
	}
}
