package stages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// madeBy has the pods of the gang made by another object than a job. Of a StatefulSet or ReplicaSet there is the object, which makes so many.
func madeBy(c *clustertest.Cluster, version, kind, name string, replicas int32, policy appsv1.PodManagementPolicyType) {
	delete(c.S.Custom, kindOf("kubeflow.org", "TFJob"))
	yes := true
	meta := metav1.ObjectMeta{Namespace: "team", Name: name, UID: "made-by"}
	for _, p := range c.S.Pods {
		if p.Namespace == "team" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: meta.UID, Controller: &yes}}
		}
	}
	for _, u := range c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")] {
		u.SetOwnerReferences(nil)
	}
	switch kind {
	case "StatefulSet":
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		c.S.StatefulSets = append(c.S.StatefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, PodManagementPolicy: policy, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}}})
	case "ReplicaSet":
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: strings.TrimSuffix(name, "-7c"), UID: "deployment", Controller: &yes}}
		c.S.ReplicaSets = append(c.S.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}})
	}
}

// rolledOut adds the pods that the gang's Deployment had before, which are being deleted.
func rolledOut(c *clustertest.Cluster, from string, nodes ...string) {
	before := c.S.ReplicaSets[0].DeepCopy()
	before.Name, before.UID = from, "before"
	c.S.ReplicaSets = append(c.S.ReplicaSets, before)
	at := metav1.NewTime(clustertest.Now.Add(20 * time.Second))
	for i, p := range slices.Clone(c.S.Pods) {
		if p.Namespace != "team" {
			continue
		}
		old := p.DeepCopy()
		old.Name, old.UID, old.DeletionTimestamp = "old-"+p.Name, "old-"+p.UID, &at
		old.OwnerReferences[0].Name, old.OwnerReferences[0].UID = before.Name, before.UID
		old.Spec.NodeName, old.Status.Phase = nodes[i%len(nodes)], corev1.PodRunning
		c.S.Pods = append(c.S.Pods, old)
	}
}

// A gang that no job owns has the members that the object behind its pods makes, its events, and its name.
func TestPodsOfOtherOwners(t *testing.T) {
	three := func(run ...string) clustertest.Gang {
		return gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing = run, 2 })
	}
	owned := map[string]testCase{
		"statefulset": {name: "a StatefulSet makes one pod after the other", code: answer.BelowQuorum, exit: 4, first: "1 of 3 pods exist, and the gang needs 3: the others are made only when these run, so it waits for itself",
			wantText: []string{"StatefulSet statefulset makes a pod only when those before it are Ready"}, not: []string{"minMember to"}, fix: "make StatefulSet statefulset again with podManagementPolicy: Parallel", build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(three())
				madeBy(c, "apps/v1", "StatefulSet", "statefulset", 3, "")
			}},
		"operated": {name: "an operator made the StatefulSet, and would change it back", code: answer.BelowQuorum, exit: 4, first: "so it waits for itself", not: []string{"make .* again"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(three())
			madeBy(c, "apps/v1", "StatefulSet", "made", 3, "")
			yes := true
			c.S.StatefulSets[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Runtime", Name: "operated", UID: "runtime", Controller: &yes}}
		}},
		"parallel": {name: "a StatefulSet makes all pods at once", code: answer.BelowQuorum, exit: 3, first: "the controller has not made the others", not: []string{"Parallel"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(three())
			madeBy(c, "apps/v1", "StatefulSet", "parallel", 3, appsv1.ParallelPodManagement)
		}},
		"few": {name: "a StatefulSet makes fewer than the minimum", code: answer.MinMemberTooHigh, exit: 4, first: "wants 3 members, but StatefulSet few makes 2: so many can never run", fix: "set minMember to 2", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min = 3 }))
			madeBy(c, "apps/v1", "StatefulSet", "few", 2, appsv1.ParallelPodManagement)
		}},
		"surge": {name: "a rollout makes fewer than the minimum before these are Ready", code: answer.MinMemberTooHigh, exit: 4, first: "wants 2 members, but ReplicaSet surge-7c of Deployment surge makes 1", wantText: []string{"Deployment surge is to have 2 pods"},
			fix: "maxSurge 100%", build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Min = 2 }))
				madeBy(c, "apps/v1", "ReplicaSet", "surge-7c", 1, "")
				two := int32(2)
				c.Deployment("team", "surge", "serve:v1").Spec.Replicas = &two
			}},
		"infer": {name: "the quota refuses a pod of a Deployment", code: answer.NSQuotaTooSmall, exit: 6, first: "24", not: []string{"minMember to"}, fix: "raise requests.nvidia.com/gpu of quota gpu to 24", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			madeBy(c, "apps/v1", "ReplicaSet", "infer-7c", 3, "")
			quota(c, "gpu", clustertest.List("requests.nvidia.com/gpu", "16"), clustertest.List("requests.nvidia.com/gpu", "16"))
			c.Event("ReplicaSet", "team", "infer-7c", "replicaset-controller", "FailedCreate",
				`Error creating: pods "infer-7c-x" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16`, 0)
		}},
		"custom": {name: "what another kind makes is not known", code: answer.BelowQuorum, exit: 3, first: "2 of the 3 pods that the gang needs exist: Trainer custom, which makes them, has not made the others",
			wantText: []string{"kubectl -n team describe trainer.example.com/custom"}, not: []string{"minMember to"}, build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
				madeBy(c, "example.com/v1", "Trainer", "custom", 0, "")
			}},
		"silent": {name: "another kind has made no more for long: it may wait for those that there are", code: answer.BelowQuorum, exit: 5, first: "Trainer silent, which makes them, has not made the others in 59m: it may wait for these to run first",
			fix: "set minMember to 2", build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Missing, g.Age = 1, time.Hour }))
				madeBy(c, "example.com/v1", "Trainer", "silent", 0, "")
			}},
		"runs": {name: "all run", exit: 0, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2", "n3"} }))
			madeBy(c, "apps/v1", "StatefulSet", "runs", 3, "")
		}},
		"serve": {name: "pods of the ReplicaSet before a rollout are no members", code: answer.VictimsTerminating, exit: 3, first: "^team/old-gang-worker-0, team/old-gang-worker-1 are being deleted, and then it fits", not: []string{"2/4", "0/4"}, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			madeBy(c, "apps/v1", "ReplicaSet", "serve-7c", 2, "")
			rolledOut(c, "serve-6d", "n1", "n2")
		}},
		"lost": {name: "one is not made again", code: answer.MemberLost, exit: 7, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing = []string{"n1", "n2"}, 1 }))
			madeBy(c, "apps/v1", "StatefulSet", "lost", 3, "")
		}},
	}
	for owner, r := range owned {
		for _, name := range []string{owner, "gang"} {
			t.Run(fmt.Sprintf("%s, by the name %s", r.name, name), func(t *testing.T) {
				c := clustertest.New()
				r.build(c)
				w := view.New(c.Done())
				job, err := w.Find(view.Query{Namespace: "team", Name: name})
				if err != nil {
					t.Fatal(err)
				}
				got := stages.Evaluate(context.Background(), w, job, stages.Options{})
				r.check(t, got)
				sound(t, "", got)
			})
		}
	}
}

// The pods of a Deployment from before a rollout go when the new ones are Ready, which find no room beside them.
func TestRollout(t *testing.T) {
	c := clustertest.New().Schedules("default-scheduler").Nodes(1, 8).Add(gangOf(1, 8, ungrouped, scheduledBy("default-scheduler")))
	madeBy(c, "apps/v1", "ReplicaSet", "roll-7c", 1, "")
	rolledOut(c, "roll-6d", "n1")
	c.S.Pods[1].DeletionTimestamp = nil
	for _, p := range c.S.Pods {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "gang-worker-0"})
	if err != nil {
		t.Fatal(err)
	}
	got := stages.Evaluate(context.Background(), w, job, stages.Options{})
	testCase{code: answer.NodesBusy, exit: 4, fix: "have Deployment roll end its old pods first",
		first: "^the rollout of Deployment roll waits for itself: old-gang-worker-0 goes only when the new pods are Ready; Deployment team/roll holds 8 GPUs on n1"}.check(t, got)
	sound(t, "", got)
}
