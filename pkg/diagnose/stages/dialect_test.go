package stages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	coscheduling = "scheduler-plugins-scheduler"
	minAvailable = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// renamed has pods carry another label, or annotation, instead of the one by which they name their group; "" for none.
func renamed(from, to string) func(*clustertest.Gang) {
	return pods(func(_ int, p *corev1.Pod) {
		for _, entries := range []map[string]string{p.Labels, p.Annotations} {
			if value, there := entries[from]; there {
				if delete(entries, from); to != "" {
					entries[to] = value
				}
			}
		}
	})
}

func half(g *clustertest.Gang) { g.Nodes = []string{"n1"} }

// others adds a PodGroup llama without an owner, with pods on some nodes, and half a batch Job of two whose pods name it by a label that none of them means.
func others(c *clustertest.Cluster, key string, nodes ...string) {
	c.Nodes(4, 8).Runs("a", 8, "n2")
	other := gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), func(g *clustertest.Gang) { g.Name, g.Nodes = "llama", nodes })
	if len(nodes) == 0 {
		other.Missing = 2
		c.Runs("b", 8, "n3", "n4")
	}
	c.Add(other).Add(gangOf(2, 8, ungrouped, half, scheduledBy(coscheduling), func(g *clustertest.Gang) { g.Kind = "Job" }, pods(func(_ int, p *corev1.Pod) { p.Labels[key] = "llama" })))
	for _, u := range c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] {
		u.SetOwnerReferences(nil)
	}
}

// Pods that no group counts are placed one by one, whatever declares it.
func TestUnnamedGroups(t *testing.T) {
	never := []answer.Code{answer.MemberLost, answer.BelowQuorum, answer.PodGroupMissing, answer.MinMemberTooHigh}
	for _, d := range []struct {
		dialect                  gang.Dialect
		scheduler, key, misspelt string
	}{
		{gang.SchedulerPlugins, coscheduling, "scheduling.x-k8s.io/pod-group", "scheduling.x-k8s.io/podgroup"},
		{gang.SchedulerPlugins, clustertest.Scheduler, "scheduling.x-k8s.io/pod-group", "scheduling.x-k8s.io/podgroup"},
		{gang.Volcano, "volcano", "scheduling.k8s.io/group-name", "scheduling.k8s.io/groupname"},
		{gang.KubeBatch, "kube-batch", "scheduling.k8s.io/group-name", "scheduling.k8s.io/groupname"},
		{gang.Koordinator, "koord-scheduler", "pod-group.scheduling.sigs.k8s.io", "podgroup.scheduling.sigs.k8s.io"},
	} {
		name := d.scheduler + ": "
		check(t, []testCase{
			{name: name + "misspelt", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by " + d.scheduler + ", as no pod names PodGroup.* gang, which waits for 2 members",
				wantText: []string{d.misspelt + ".*did you mean " + d.key, d.key + ": gang"}, never: never, build: func(c *clustertest.Cluster) {
					c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), half, renamed(d.key, d.misspelt)))
				}},
			{name: name + "absent, and the group has no owner", code: answer.GangBypassed, exit: 7, first: "no pod names PodGroup", never: never, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), half, renamed(d.key, "")))
				for _, groups := range c.S.Custom {
					for _, u := range groups {
						if u.GetKind() == "PodGroup" && u.GetName() == "gang" {
							u.SetOwnerReferences(nil)
						}
					}
				}
			}},
			{name: name + "absent, and nothing is placed", code: answer.NodesBusy, exit: 3, wantText: []string{"PodGroup.* gang, of which 2 members are needed, waits for pods, and none of the job names it"}, never: never, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), renamed(d.key, "")))
			}},
		})
	}
	check(t, []testCase{
		{name: "a batch Job", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half, renamed("scheduling.x-k8s.io/pod-group", ""), func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "Volcano made a group of its own for them", code: answer.GangBypassed, exit: 7, first: "no pod names PodGroup.scheduling.volcano.sh gang, which waits for 2 members", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), half, pods(func(_ int, p *corev1.Pod) {
				p.Annotations["scheduling.k8s.io/group-name"] = "podgroup-" + string(p.OwnerReferences[0].UID)
			})))
			u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].DeepCopy()
			u.SetName("podgroup-" + string(c.S.Pods[len(c.S.Pods)-1].OwnerReferences[0].UID))
			u.SetUID("own")
			set(int64(1), "spec", "minMember")(u.Object)
			c.Put(u)
		}},
		{name: "a group that Volcano enforces has a name like those", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), half, pods(func(_ int, p *corev1.Pod) { p.Annotations["scheduling.k8s.io/group-name"] = "podgroup-llama" })))
			u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].DeepCopy()
			u.SetName("podgroup-llama")
			u.SetUID("llama")
			c.Put(u)
		}},
		{name: "a group that has members of its own", exit: 0, not: []string{"no pod names", "none of the job names"}, build: func(c *clustertest.Cluster) {
			others(c, "scheduling.x-k8s.io/podgroup", "n3", "n4")
		}},
		{name: "a label that names another group", exit: 0, not: []string{"no pod names", "none of the job names"}, build: func(c *clustertest.Cluster) { others(c, "node-group") }},
		{name: "they are to be placed one by one", exit: 0, not: []string{"no pod names", "none of the job names"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half, func(g *clustertest.Gang) { g.Kind = "Job" }, pods(func(_ int, p *corev1.Pod) {
				delete(p.Labels, "scheduling.x-k8s.io/pod-group")
				p.Annotations[gang.DialectAnnotation] = string(gang.None)
			})))
		}},
		{name: "they name another one, which is missing", code: answer.PodGroupMissing, exit: 4, never: []answer.Code{answer.GangBypassed}, not: []string{"no pod names"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), young, pods(func(_ int, p *corev1.Pod) {
				delete(p.Labels, "scheduling.x-k8s.io/pod-group")
				p.Annotations["scheduling.k8s.io/group-name"] = "lost"
			})))
		}},
		{name: "the group of another job of the name", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half, renamed("scheduling.x-k8s.io/pod-group", "")))
			for _, u := range c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] {
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "gang", UID: "another", Controller: new(true)}})
			}
		}},
		{name: "the group of an earlier job of the name", code: answer.GangBypassed, exit: 7, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half, renamed("scheduling.x-k8s.io/pod-group", "")))
			for _, u := range c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] {
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "gang", UID: "earlier", Controller: new(true)}})
			}
		}},
		{name: "one role misspells it", code: answer.BelowQuorum, exit: 4, first: "2 of 3 members count.*ps-0 names no group", wantText: []string{"scheduling.x-k8s.io/podgroup.*did you mean"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Pod: func(_ int, p *corev1.Pod) {
					delete(p.Labels, "scheduling.x-k8s.io/pod-group")
					p.Labels["scheduling.x-k8s.io/podgroup"] = "gang"
				}}}
			}))
		}},
		{name: "the grouper of KAI has not come yet", code: answer.NodesBusy, exit: 3, not: []string{"none of the job names it"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, speaks(c, gang.KAI, "kai-scheduler"), renamed("pod-group-name", "")))
		}},
	})
}

// Each member has a scheduler of its own: those count that placed members, and those that others wait for.
func TestBypassed(t *testing.T) {
	mixed := func(first, rest string) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.Pod = func(i int, p *corev1.Pod) {
				if p.Spec.SchedulerName = rest; i == 0 {
					p.Spec.SchedulerName = first
				}
			}
		}
	}
	blocked := func(d gang.Dialect, scheduler string, changes ...func(*clustertest.Gang)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, append([]func(*clustertest.Gang){speaks(c, d, scheduler), half}, changes...)...))
		}
	}
	kubeScheduler := func(c *clustertest.Cluster, image string, args ...string) {
		c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-cp", Labels: map[string]string{"component": "kube-scheduler"}},
			Spec: corev1.PodSpec{NodeName: "cp", Containers: []corev1.Container{{Name: "kube-scheduler", Image: image, Command: append([]string{"kube-scheduler"}, args...)}}}})
	}
	check(t, []testCase{
		{name: "the members that are placed had another scheduler", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by default-scheduler, which does not read their PodGroup.scheduling.volcano.sh gang.*while worker-1 waits",
			wantText: []string{"set it to volcano"}, build: blocked(gang.Volcano, "volcano", mixed("default-scheduler", "volcano"))},
		{name: "the members that wait have another scheduler", code: answer.GangBypassed, exit: 7, first: "1/2 members hold 8 GPUs, and worker-1 waits for default-scheduler, which does not read their PodGroup.scheduling.volcano.sh gang",
			wantText: []string{"set it to volcano"}, build: blocked(gang.Volcano, "volcano", mixed("volcano", "default-scheduler"))},
		{name: "labels that the default scheduler does not read", code: answer.GangBypassed, exit: 7, build: blocked(gang.Labels, "default-scheduler")},
		{name: "labels, to a reader who may not see what the default scheduler is", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
			blocked(gang.Labels, "default-scheduler")(c)
			c.S.Denied = []snapshot.Denial{{Resource: "deployments.apps"}}
		}},
		{name: "YuniKorn's annotations, to the same", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
			blocked(gang.YuniKorn, "default-scheduler")(c)
			c.S.Denied = []snapshot.Denial{{Resource: "deployments.apps"}}
		}},
		{name: "labels that Volcano does not read", code: answer.GangBypassed, exit: 7, build: blocked(gang.Labels, "volcano")},
		{name: "Koordinator's group and Volcano", code: answer.GangBypassed, exit: 7, build: blocked(gang.Koordinator, "volcano")},
		{name: "YuniKorn's annotations and the default scheduler", code: answer.GangBypassed, exit: 7, build: blocked(gang.YuniKorn, "default-scheduler")},
		{name: "Kubernetes' PodGroup and Volcano", code: answer.GangBypassed, exit: 7, build: blocked(gang.Native, "volcano")},
		{name: "Kubernetes' PodGroup without its gate", code: answer.GangBypassed, exit: 7, wantText: []string{"without the feature gate GenericWorkload"}, build: func(c *clustertest.Cluster) {
			blocked(gang.Native, "default-scheduler")(c)
			kubeScheduler(c, "registry.k8s.io/kube-scheduler:v1.36.2", "--leader-elect=true")
		}},
		{name: "Kubernetes' PodGroup with its gate", code: answer.MemberLost, exit: 7, build: func(c *clustertest.Cluster) {
			blocked(gang.Native, "default-scheduler")(c)
			kubeScheduler(c, "registry.k8s.io/kube-scheduler:v1.36.2", "--feature-gates=Other=false,GenericWorkload=true")
		}},
		{name: "Kubernetes' PodGroup in a version whose default is not known", code: answer.MemberLost, exit: 7, build: func(c *clustertest.Cluster) {
			blocked(gang.Native, "default-scheduler")(c)
			kubeScheduler(c, "registry.k8s.io/kube-scheduler:v1.39.0", "--leader-elect=true")
		}},
	})
}

// Dialects share labels, annotations and kinds: what counts is the object that the scheduler reads.
func TestNamesakes(t *testing.T) {
	of := func(d gang.Dialect, scheduler string, changes ...func(*clustertest.Gang)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, append([]func(*clustertest.Gang){speaks(c, d, scheduler), young}, changes...)...))
			for _, group := range []string{"scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"} {
				c.S.Server.Resources = append(c.S.Server.Resources, "podgroups."+group)
			}
		}
	}
	old := renamed("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
	release := func(c *clustertest.Cluster, tag string) {
		for _, d := range c.S.Deployments {
			if d.Name == coscheduling {
				d.Spec.Template.Spec.Containers[0].Image = "registry.k8s.io/scheduler-plugins/kube-scheduler:" + tag
			}
		}
	}
	check(t, []testCase{
		{name: "kube-batch's PodGroup and Volcano", code: answer.PodGroupMissing, exit: 4, first: "scheduler volcano reads PodGroup.scheduling.volcano.sh gang, which does not exist in namespace team: PodGroup.scheduling.incubator.k8s.io gang of that name",
			fix: "create PodGroup gang for 2 members", build: of(gang.KubeBatch, "volcano")},
		{name: "Volcano's PodGroup and kube-batch", code: answer.PodGroupMissing, exit: 4, first: "scheduler kube-batch reads PodGroup.scheduling.incubator.k8s.io gang", build: of(gang.Volcano, "kube-batch")},
		{name: "ours serves the name of Volcano, and reads kube-batch's", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Dialect, g.Scheduler = gang.KubeBatch, "volcano" }))
			c.GangScheduler("").S.Deployments[1].Spec.Template.Spec.Containers[0].Args = []string{"--scheduler-name=gang", "--serve=kube-batch,volcano"}
		}},
		{name: "the new label, and a PodGroup of the old API group", code: answer.PodGroupMissing, exit: 4, first: "reads PodGroup.scheduling.x-k8s.io gang", build: of(gang.Koordinator, coscheduling, renamed("pod-group.scheduling.sigs.k8s.io", "scheduling.x-k8s.io/pod-group"))},
		{name: "the old label, a PodGroup of the new API group, and an old release", code: answer.PodGroupMissing, exit: 4, first: "reads PodGroup.scheduling.sigs.k8s.io gang", build: func(c *clustertest.Cluster) {
			of(gang.SchedulerPlugins, coscheduling, old)(c)
			release(c, "v0.23.10")
		}},
		{name: "the old label, and a new release", code: answer.GangBypassed, exit: 7, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half, old))
			release(c, "v0.31.8")
		}},
	})
}

// A gang that labels declare needs its minimum from them.
func TestStatedMinimum(t *testing.T) {
	lacks := func(values ...string) func(*clustertest.Gang) {
		return pods(func(i int, p *corev1.Pod) {
			if p.Labels[minAvailable] = values[i%len(values)]; p.Labels[minAvailable] == "" {
				delete(p.Labels, minAvailable)
			}
		})
	}
	of := func(scheduler string, change func(*clustertest.Gang)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Labels, scheduler), young, change))
		}
	}
	check(t, []testCase{
		{name: "missing", code: answer.PodGroupMissing, exit: 4, first: "no pod of gang gang states how many members it needs: label " + minAvailable + " is missing, and scheduler gang tries no member without",
			fix: "label the pods with " + minAvailable + "=2", build: of(clustertest.Scheduler, lacks(""))},
		{name: "no number", code: answer.PodGroupMissing, exit: 4, first: minAvailable + `="two" is not a whole number`, build: of(clustertest.Scheduler, lacks("two"))},
		{name: "only some state it", code: answer.Fits, exit: 3, wantText: []string{"1 pod of 2 without a minimum .label " + minAvailable + " is missing.: that of the others counts, 2"}, build: of(clustertest.Scheduler, lacks("2", ""))},
		{name: "they disagree", code: answer.Fits, exit: 3, wantText: []string{"different minimums of gang gang: 1 on gang-worker-1, 2 on gang-worker-0; the largest counts, 2"}, build: of(clustertest.Scheduler, lacks("2", "1"))},
		{name: "of Koordinator's annotations", code: answer.PodGroupMissing, exit: 4, first: "no pod of gang gang states how many members it needs: .*min-available=.two. is not a whole number", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Koordinator, "koord-scheduler"), young, pods(func(_ int, p *corev1.Pod) {
				delete(p.Labels, "pod-group.scheduling.sigs.k8s.io")
				p.Annotations["gang.scheduling.koordinator.sh/name"], p.Annotations["gang.scheduling.koordinator.sh/min-available"] = "gang", "two"
			})))
			c.S.Custom[kindOf("scheduling.sigs.k8s.io", "PodGroup")] = nil
		}},
		{name: "an annotation as long as a book", code: answer.PodGroupMissing, exit: 4, not: []string{"x{600}"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Koordinator, "koord-scheduler"), young, pods(func(_ int, p *corev1.Pod) {
				delete(p.Labels, "pod-group.scheduling.sigs.k8s.io")
				p.Annotations["gang.scheduling.koordinator.sh/name"], p.Annotations["gang.scheduling.koordinator.sh/min-available"] = "gang", strings.Repeat("x", 5000)
			})))
			c.S.Custom[kindOf("scheduling.sigs.k8s.io", "PodGroup")] = nil
		}},
		{name: "another scheduler takes them for no gang", code: answer.Fits, exit: 3, wantText: []string{"takes pods without a minimum for no gang"}, build: of("default-scheduler", lacks(""))},
	})
}

// The scheduler of scheduler-plugins tries no member before minResources are free.
func TestMinResources(t *testing.T) {
	states := func(gpus string) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.Group = func(group map[string]any) { set(gpus, "spec", "minResources", "nvidia.com/gpu")(group) }
		}
	}
	of := func(scheduler, gpus string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n3").Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, scheduler), young, states(gpus)))
		}
	}
	check(t, []testCase{
		{name: "less is free", code: answer.NodesBusy, exit: 3, first: "minResources of PodGroup gang are 20 GPUs, of which its members need 16, and 16 of 24 GPUs are free", fix: "lower nvidia.com/gpu in minResources of PodGroup gang to 16", build: of(coscheduling, "20")},
		{name: "the cluster has less", code: answer.TooBig, exit: 6, first: "minResources of PodGroup gang are 32 GPUs.*all nodes together have 24.*never tries", build: of(coscheduling, "32")},
		{name: "as much is free", code: answer.Fits, exit: 3, build: of(coscheduling, "16")},
		{name: "of a scheduler that may compare nothing", code: answer.Fits, exit: 3, wantText: []string{"if scheduler default-scheduler is that of scheduler-plugins, it tries no member before"}, build: of("default-scheduler", "20")},
		{name: "it reports that it does", code: answer.NodesBusy, exit: 3, first: "minResources of PodGroup gang", build: func(c *clustertest.Cluster) {
			of("default-scheduler", "20")(c)
			c.Event("Pod", "team", "gang-worker-0", "default-scheduler", "FailedScheduling", "0/3 nodes are available: pod group gang: resource gap: 4", time.Second)
		}},
		{name: "its image shows that it does", code: answer.NodesBusy, exit: 3, first: "minResources of PodGroup gang", build: func(c *clustertest.Cluster) {
			of("mine", "20")(c)
			for _, d := range c.S.Deployments {
				if d.Name == "mine" {
					d.Spec.Template.Spec.Containers[0].Image = "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8"
				}
			}
		}},
		{name: "ours compares nothing", code: answer.Fits, exit: 3, build: of(clustertest.Scheduler, "32")},
	})
}

// keepsRoom adds placeholders of YuniKorn for an application: one on each node, and one without a node where that is empty.
func keepsRoom(c *clustertest.Cluster, app string, nodes ...string) {
	for i, node := range nodes {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("tg-%s-%d", app, i), UID: types.UID("tg-" + node), Labels: map[string]string{"yunikorn.apache.org/app-id": app},
			Annotations: map[string]string{"yunikorn.apache.org/placeholder": "true", "yunikorn.apache.org/task-group-name": "worker"}}}
		p.Spec = corev1.PodSpec{NodeName: node, SchedulerName: "yunikorn", Containers: []corev1.Container{{Name: "pause", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "8", "memory", "64Gi", "nvidia.com/gpu", "8")}}}}
		p.Status.Phase = corev1.PodRunning
		c.Put(p)
	}
}

// The placeholders of YuniKorn keep room for members, and for nobody else.
func TestPlaceholders(t *testing.T) {
	keeps := keepsRoom
	check(t, []testCase{
		{name: "its own", code: answer.Fits, exit: 3, first: "room for all 2 members on n1, n2", wantText: []string{"YuniKorn keeps room for it by 2 placeholders on n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn"), young))
			keeps(c, "gang", "n1", "n2")
		}},
		{name: "one of them finds no room, and its member is made later", code: answer.NodesBusy, exit: 5, first: "Deployment serving/llm holds 8 GPUs on n3 and never ends: 16 of 24 GPUs free .*needs 3 workers", not: []string{"placeholders besides its own pods"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Serves("llm", 8, "n3").Add(gangOf(1, 8, speaks(c, gang.YuniKorn, "yunikorn"), func(g *clustertest.Gang) { g.Min = 3 }))
			keeps(c, "gang", "n1", "n2", "")
		}},
		{name: "its own, and a job in the way of another", code: answer.NodesBusy, exit: 3, first: "8 of 16 GPUs free", not: []string{"tg-gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn")))
			keeps(c, "gang", "n1")
		}},
		{name: "those of another application are that one's", code: answer.NodesBusy, exit: 3, wantText: []string{"TFJob team/other holds 16 GPUs on n1, n2"}, not: []string{"tg-other"}, build: func(c *clustertest.Cluster) {
			other := gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn"))
			other.Name = "other"
			c.Nodes(2, 8).Add(other).Add(gangOf(2, 8))
			keeps(c, "other", "n1", "n2")
		}},
	})
}

// ElasticQuotas of scheduler-plugins hold by their numbers.
func TestElasticQuotas(t *testing.T) {
	quotaOf := func(c *clustertest.Cluster, namespace, least, most string) {
		c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": namespace, "name": "eq"},
			"spec": map[string]any{"min": map[string]any{"nvidia.com/gpu": least}, "max": map[string]any{"nvidia.com/gpu": most}}})
	}
	of := func(scheduler string, build func(*clustertest.Cluster)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			build(c)
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, scheduler), young))
		}
	}
	check(t, []testCase{
		{name: "others use it", code: answer.QueueQuota, exit: 3, first: "ElasticQuota eq of namespace team has 8 of 16 GPUs left, and the gang needs 16: 8 are used", wantText: []string{"requested 16, used 8, limit 16"}, fix: "raise max of nvidia.com/gpu in ElasticQuota eq to 24",
			build: of(coscheduling, func(c *clustertest.Cluster) {
				quotaOf(c, "team", "8", "16")
				c.Add(clustertest.Gang{Name: "b", Workers: 1, GPUs: 8, Nodes: []string{"n4"}})
			})},
		{name: "too small", code: answer.QueueTooSmall, exit: 6, first: "allows 8 GPUs in all, and the gang needs 16", build: of(coscheduling, func(c *clustertest.Cluster) { quotaOf(c, "team", "8", "8") })},
		{name: "min of all", code: answer.QueueQuota, exit: 3, first: "all ElasticQuotas together have a min of 16 GPUs, of which 8 are used, and the gang needs 16", build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "32")
			quotaOf(c, "research", "8", "32")
			c.Runs("a", 8, "n4")
		})},
		{name: "a service keeps what others leave of min", code: answer.QueueQuota, exit: 5, first: "of which 8 are used, and the gang needs 16; of what is used, Deployment serving/llm gives nothing back", wantText: []string{"an administrator has to raise it"}, build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "32")
			quotaOf(c, "serving", "8", "32")
			c.Serves("llm", 8, "n4")
		})},
		{name: "a service has borrowed what is the namespace's own", code: answer.QueueQuota, exit: 3, first: "of which 8 are used, and the gang needs 16$", not: []string{"nothing back"}, build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "16", "32")
			quotaOf(c, "serving", "0", "32")
			c.Serves("llm", 8, "n4")
		})},
		{name: "half of the gang has a node", code: answer.MemberLost, exit: 7, first: "1/2 members have a node and the others are not placed, as ElasticQuota eq of namespace team allows 8 GPUs in all", also: []answer.Code{answer.QueueTooSmall}, build: func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "8")
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.SchedulerPlugins, coscheduling), half))
		}},
		{name: "within", code: answer.Fits, exit: 3, build: of(coscheduling, func(c *clustertest.Cluster) { quotaOf(c, "team", "16", "16") })},
		{name: "ours has none", code: answer.Fits, exit: 3, build: of(clustertest.Scheduler, func(c *clustertest.Cluster) { quotaOf(c, "team", "8", "8") })},
		{name: "two of one namespace", code: answer.QueueQuota, exit: 3, first: "a min of 8 GPUs, of which 0 are used", build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "32")
			second := c.S.Custom[kindOf("scheduling.x-k8s.io", "ElasticQuota")][0].DeepCopy()
			second.SetName("eq2")
			c.Put(second)
		})},
		{name: "of the API group before", code: answer.QueueTooSmall, exit: 6, first: "allows 8 GPUs in all, and the gang needs 16", build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "8")
			c.S.Custom[kindOf("scheduling.x-k8s.io", "ElasticQuota")][0].SetAPIVersion("scheduling.sigs.k8s.io/v1alpha1")
			c.S.Custom[kindOf("scheduling.sigs.k8s.io", "ElasticQuota")] = c.S.Custom[kindOf("scheduling.x-k8s.io", "ElasticQuota")]
			delete(c.S.Custom, kindOf("scheduling.x-k8s.io", "ElasticQuota"))
		})},
		{name: "Koordinator's", code: answer.Fits, exit: 3, build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "8")
			c.S.Custom[kindOf("scheduling.x-k8s.io", "ElasticQuota")][0].SetLabels(map[string]string{"quota.scheduling.koordinator.sh/parent": "koordinator-root-quota"})
		})},
		{name: "those of others are not seen", code: answer.Fits, exit: 3, build: of(coscheduling, func(c *clustertest.Cluster) {
			quotaOf(c, "team", "8", "32")
			c.S.Denied = append(c.S.Denied, snapshot.Denial{Resource: "elasticquotas.scheduling.x-k8s.io", ExceptNamespaces: []string{"team"}})
		})},
		{name: "of a scheduler that may not apply it", code: answer.Fits, exit: 3, wantText: []string{"allows 8 GPUs in all, and the gang needs 16: it waits for that if", "whether scheduler default-scheduler applies ElasticQuotas"}, build: of("default-scheduler", func(c *clustertest.Cluster) { quotaOf(c, "team", "8", "8") })},
	})
}

// A quota of Koordinator holds for the pods that name it: by its max, and by what may be used of that for now while the scheduler reports it.
func TestKoordinatorQuotas(t *testing.T) {
	named := pods(func(_ int, p *corev1.Pod) { p.Labels["quota.scheduling.koordinator.sh/name"] = "team-q" })
	of := func(most, runtime string, used, reported bool) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "spec": map[string]any{"max": map[string]any{"nvidia.com/gpu": most}},
				"metadata": map[string]any{"namespace": "quotas", "name": "team-q", "labels": map[string]any{"quota.scheduling.koordinator.sh/parent": "koordinator-root-quota"},
					"annotations": map[string]any{"quota.scheduling.koordinator.sh/runtime": runtime}}})
			c.Nodes(4, 8)
			if used {
				c.Add(clustertest.Gang{Name: "b", Workers: 1, GPUs: 8, Nodes: []string{"n4"}, Pod: func(_ int, p *corev1.Pod) { p.Labels["quota.scheduling.koordinator.sh/name"] = "team-q" }})
			}
			c.Add(gangOf(2, 8, speaks(c, gang.Koordinator, "koord-scheduler"), young, named))
			if reported {
				c.Event("Pod", "team", "gang-worker-0", "koord-scheduler", "FailedScheduling", "0/4 nodes are available: Insufficient quotas, quotaName: team-q", 5*time.Second)
			}
		}
	}
	check(t, []testCase{
		{name: "others use it", code: answer.QueueQuota, exit: 3, first: "Koordinator's ElasticQuota team-q has 8 of 16 GPUs left, and the gang needs 16: 8 are used", wantText: []string{"team/b uses 8"}, not: []string{"limits of"},
			fix: "raise max of nvidia.com/gpu in ElasticQuota team-q to 24: how much of it", build: of("16", `{"nvidia.com/gpu":"16"}`, true, true)},
		{name: "too small", code: answer.QueueTooSmall, exit: 6, first: "Koordinator's ElasticQuota team-q allows 8 GPUs in all, and the gang needs 16", build: of("8", `{}`, false, false)},
		{name: "others use what may be used for now", code: answer.QueueQuota, exit: 3, first: "may use 16 GPUs for now .its runtime., of which 8 are used, and the gang needs 16$", wantText: []string{"team/b uses 8"}, build: of("32", `{"nvidia.com/gpu":"16"}`, true, true)},
		{name: "none may be used for now", code: answer.QueueQuota, exit: 5, first: "may use 0 GPUs for now .its runtime., of which 0 are used, and the gang needs 16: no end of what uses", build: of("32", `{"nvidia.com/gpu":"0"}`, false, true)},
		{name: "which is not reported, and may be old", code: answer.Fits, exit: 3, build: of("32", `{"nvidia.com/gpu":"0"}`, false, false)},
		{name: "it is reported, and not by the numbers", code: answer.QueueQuota, exit: 3, first: "ElasticQuota team-q does not let it start, reports the scheduler", build: of("32", "[]", false, true)},
		{name: "within", code: answer.Fits, exit: 3, not: []string{"limits of"}, build: of("32", `{"nvidia.com/gpu":"32"}`, true, false)},
	})
}

// What YuniKorn reports of its queues is all that is known of them.
func TestYuniKornQueues(t *testing.T) {
	of := func(report func(*clustertest.Cluster)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "b", Workers: 1, GPUs: 8, Nodes: []string{"n4"}, Dialect: gang.YuniKorn, Scheduler: "yunikorn", Queue: "q"})
			c.Add(gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn"), young))
			report(c)
		}
	}
	check(t, []testCase{
		{name: "it does not fit", code: answer.QueueTooSmall, exit: 6, first: "queue q of YuniKorn has 8 GPUs in all, and the gang needs 16: Request .* does not fit in queue 'root.q' .requested 8 GPUs, 2 cpu and 64Gi memory, available 0 GPUs and 1.5 cpu", wantText: []string{"team/b is in the same queue"}, build: of(func(c *clustertest.Cluster) {
			c.Event("Pod", "team", "gang-worker-0", "yunikorn", "Informational", "Request 'x' does not fit in queue 'root.q' (requested map[memory:68719476736 nvidia.com/gpu:8 vcore:2000], available map[nvidia.com/gpu:0 vcore:1500])", 5*time.Second)
		})},
		{name: "it is skipped", code: answer.QueueQuota, exit: 3, first: "queue quota has been exceed", build: of(func(c *clustertest.Cluster) {
			c.Event("Pod", "team", "gang-worker-0", "yunikorn", "PodUnschedulable", "Task team/gang-worker-0 is skipped from scheduling because the queue quota has been exceed", 5*time.Second)
		})},
		{name: "it is skipped, and no event is left", code: answer.QueueQuota, exit: 3, first: "Failed to schedule pod: queue quota exceeded", build: of(func(c *clustertest.Cluster) {
			c.S.Pods[len(c.S.Pods)-1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingSkipped", Message: "Failed to schedule pod: queue quota exceeded", LastTransitionTime: clustertest.Ago(10 * time.Minute)}}
		})},
		{name: "a pod that keeps room for it does not fit", code: answer.QueueQuota, exit: 3, first: "reports the scheduler: Request 'y' does not fit in queue 'root.q'", wantText: []string{"1 placeholder that YuniKorn has placed for it uses 8 GPUs of the queue already"}, build: of(func(c *clustertest.Cluster) {
			keepsRoom(c, "gang", "n1", "")
			c.Event("Pod", "team", "gang-worker-0", "yunikorn", "Scheduling", "team/gang-worker-0 is queued and waiting for allocation", 5*time.Second)
			c.Event("Pod", "team", "tg-gang-1", "yunikorn", "PodUnschedulable", "Request 'y' does not fit in queue 'root.q' (requested map[nvidia.com/gpu:8], available map[nvidia.com/gpu:0])", 10*time.Second)
		})},
		{name: "nobody else uses the queue, and it is too small", code: answer.QueueTooSmall, exit: 6, first: "queue q of YuniKorn has 8 GPUs in all, and the gang needs 16: Request 'y' does not fit", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn"), young, func(g *clustertest.Gang) { g.Queue = "q" }))
			keepsRoom(c, "gang", "n1", "")
			for _, p := range c.S.Pods[len(c.S.Pods)-2:] {
				p.Labels["queue"] = "q"
			}
			c.Event("Pod", "team", "tg-gang-1", "yunikorn", "PodUnschedulable", "Request 'y' does not fit in queue 'q' (requested map[nvidia.com/gpu:8], available map[nvidia.com/gpu:0 vcore:64000])", 10*time.Second)
		}},
		{name: "other information", code: answer.Fits, exit: 3, build: of(func(c *clustertest.Cluster) {
			c.Event("Pod", "team", "gang-worker-0", "yunikorn", "Informational", "Application app-1 is running", 5*time.Second)
		})},
	})
}

// Volcano does not see pods that name no PodGroup: its controller makes one and writes its name on them.
func TestVolcanoMakesNoGroup(t *testing.T) {
	of := func(age time.Duration) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Schedules("volcano").GangScheduler("").Deployment("volcano-system", "volcano-controllers", "volcanosh/vc-controller-manager:v1.12")
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Scheduler, g.Age = "Job", "volcano", age }))
		}
	}
	check(t, []testCase{
		{name: "long ago", code: answer.PodGroupMissing, exit: 5, first: "its pods name no PodGroup: the controller of Volcano makes one .* has not in (19|20)m; scheduler volcano does not see them", wantText: []string{"logs deployment/volcano-controllers"}, build: of(20 * time.Minute)},
		{name: "just now", code: answer.Fits, exit: 3, never: []answer.Code{answer.PodGroupMissing}, build: of(20 * time.Second)},
	})
}

// A schedulerName that is nobody's comes before what it leads to.
func TestMisspeltScheduler(t *testing.T) {
	one := func(g *clustertest.Gang) {
		g.Pod = func(i int, p *corev1.Pod) {
			if i == 1 {
				p.Spec.SchedulerName = "volcan"
			}
		}
	}
	blind := func(c *clustertest.Cluster) {
		c.S.Deployments, c.S.Leases = nil, nil
		c.S.Denied = []snapshot.Denial{{Resource: "deployments.apps"}, {Resource: "leases.coordination.k8s.io"}}
	}
	check(t, []testCase{
		{name: "of one member", code: answer.SchedulerNotFound, exit: 4, first: `no scheduler answers to schedulerName "volcan"`, wantText: []string{"did you mean volcano", "worker-1 names it, of 2 members"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), one))
		}},
		{name: "where no Deployment and no lease is seen", code: answer.SchedulerNotFound, exit: 4, wantText: []string{"did you mean volcano"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("volcanno")))
			c.S.Deployments, c.S.Leases = nil, nil
		}},
		{name: "of those that have no node yet", code: answer.SchedulerNotFound, exit: 4, wantText: []string{"1 of 2 members have a node and hold 8 GPUs"}, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), half, one))
		}},
		{name: "of a reader who may look for none", code: answer.SchedulerNotFound, exit: 4, wantText: []string{"did you mean volcano"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("volcanno")))
			blind(c)
		}},
		{name: "of one member, to such a reader", code: answer.SchedulerNotFound, exit: 4, first: `schedulerName "volcan"`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), one))
			blind(c)
		}},
		{name: "a name like no other, of a reader who sees leases alone", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("mine"), young))
			c.S.Deployments, c.S.Denied = nil, []snapshot.Denial{{Resource: "deployments.apps"}}
		}},
		{name: "a short name is another one", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("rail-scheduler"), young))
			c.S.Deployments, c.S.Leases = nil, nil
		}},
		{name: "a name like one that pods elsewhere have", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n3"}, Scheduler: "batch-scheduler"}).Add(gangOf(2, 8, scheduledBy("batsh-scheduler"), young))
			c.S.Deployments, c.S.Leases = nil, nil
		}},
		{name: "a name like no other, where none is seen", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("my-scheduler"), young))
			c.S.Deployments, c.S.Leases = nil, nil
		}},
	})
}
