package stages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// ownedPod adds a pod of team that something controls, on a node or, without one, waiting for it.
func ownedPod(c *clustertest.Cluster, name, apiVersion, kind, owner, cpu, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("Pod:team/" + name), CreationTimestamp: clustertest.Ago(time.Hour),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID(kind + ":team/" + owner), Controller: ptr.To(true)}}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "reg/x:1", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", cpu)}}}
	p.Spec.SchedulerName, p.Spec.NodeName, p.Spec.RestartPolicy, p.Status.Phase = corev1.DefaultSchedulerName, node, corev1.RestartPolicyNever, corev1.PodPending
	if node != "" {
		p.Status.Phase = corev1.PodRunning
		p.Status.StartTime = ptr.To(clustertest.Ago(time.Hour))
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(time.Hour)}}}}
	}
	c.Put(p)
	return p
}

// setOf adds a StatefulSet of team, whose template requests cpu.
func setOf(c *clustertest.Cluster, name string, replicas int32, cpu string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("StatefulSet:team/" + name)}}
	set.Spec.Replicas = &replicas
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "reg/x:2", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", cpu)}}}
	c.Put(set)
	return set
}

// made adds pod 0 of a StatefulSet, of an earlier revision than its status has.
func made(c *clustertest.Cluster, set *appsv1.StatefulSet, cpu, node string) *corev1.Pod {
	p := ownedPod(c, set.Name+"-0", "apps/v1", "StatefulSet", set.Name, cpu, node)
	p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "r1"}
	set.Status.UpdateRevision = "r2"
	return p
}

// checkPod is check for a pod that no job owns.
func checkPod(t *testing.T, name string, cases []testCase) {
	t.Helper()
	for _, r := range cases {
		t.Run(r.name, func(t *testing.T) {
			c := clustertest.New()
			r.build(c)
			w := view.New(c.Done())
			job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: name})
			if err != nil {
				t.Fatal(err)
			}
			got := stages.Evaluate(context.Background(), w, job, stages.Options{})
			r.check(t, got)
			sound(t, "", got)
		})
	}
}

// A StatefulSet that does not replace a pod by itself makes it again of a template that is mended as soon as the pod is deleted; and one in order makes no more before it is Ready.
func TestStatefulSets(t *testing.T) {
	const earlier = "x-0 is of an earlier template"
	checkPod(t, "x-0", []testCase{
		{name: "too big of an earlier template", code: answer.TooBig, exit: 4, first: earlier + " of StatefulSet x, which replaces no pod that is not Ready", wantText: []string{"its template has 8 cpu instead of 200 now", "image reg/x:2 of container main"},
			fix: "delete x-0", build: func(c *clustertest.Cluster) { c.Nodes(1, 0); made(c, setOf(c, "x", 1, "8"), "200", "") }},
		{name: "too big of the present one", code: answer.TooBig, exit: 6, not: []string{earlier}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			made(c, setOf(c, "x", 1, "8"), "200", "").Labels[appsv1.ControllerRevisionHashLabelKey] = "r2"
		}},
		{name: "in parallel, which replaces it by itself", code: answer.TooBig, exit: 6, not: []string{earlier}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 1, "8")
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
			made(c, set, "200", "")
		}},
		{name: "in parallel, on deletion", code: answer.TooBig, exit: 4, first: "only when that is deleted", fix: "delete x-0", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 1, "8")
			set.Spec.PodManagementPolicy, set.Spec.UpdateStrategy.Type = appsv1.ParallelPodManagement, appsv1.OnDeleteStatefulSetStrategyType
			made(c, set, "200", "")
		}},
		{name: "below the partition", code: answer.TooBig, exit: 6, not: []string{earlier}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 1, "8")
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(int32(1))}
			made(c, set, "200", "")
		}},
		{name: "the present one is no smaller", code: answer.TooBig, exit: 6, first: earlier, build: func(c *clustertest.Cluster) { c.Nodes(1, 0); made(c, setOf(c, "x", 1, "200"), "200", "") }},
		{name: "of a snapshot without templates", code: answer.TooBig, exit: 6, first: earlier, wantText: []string{"kubectl -n team delete pod x-0"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 1, "8")
			made(c, set, "200", "")
			set.Spec.Template.Spec.Containers = nil
		}},
		{name: "more than are named in one command", code: answer.TooBig, exit: 4, first: "^x-0, x-1, .* are of an earlier template of StatefulSet x", fix: "delete x-0", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 60, "1")
			set.Spec.PodManagementPolicy, set.Spec.UpdateStrategy.Type = appsv1.ParallelPodManagement, appsv1.OnDeleteStatefulSetStrategyType
			set.Status.UpdateRevision = "r2"
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "x", "uid": "x"}, "spec": map[string]any{"minMember": int64(60)}})
			for i := range 60 {
				p := ownedPod(c, fmt.Sprintf("x-%d", i), "apps/v1", "StatefulSet", "x", "200", "")
				p.Spec.SchedulerName = clustertest.Scheduler
				p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "r1", "scheduling.x-k8s.io/pod-group": "x"}
			}
		}},
		{name: "an image of an earlier template", code: answer.ImagePull, exit: 4, first: earlier, fix: "delete x-0", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			p := made(c, setOf(c, "x", 1, "8"), "8", "n1")
			p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil
			waits("ImagePullBackOff", "Back-off pulling image")(p)
		}},
		{name: "preempted, and made again by its StatefulSet", code: answer.Insufficient("cpu"), exit: 3, wantText: []string{"it ran before: .* was lost, 5m ago: preempted: Preempted by"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			ownedPod(c, "k-0", "batch/v1", "Job", "k", "90", "n1")
			ownedPod(c, "x-0", "apps/v1", "StatefulSet", setOf(c, "x", 1, "48").Name, "48", "").CreationTimestamp = clustertest.Ago(4 * time.Minute)
			c.Event("Pod", "team", "x-0", "default-scheduler", "Preempted", "Preempted by pod team/k-0", 5*time.Minute)
		}},
		{name: "not Ready, and the next waits for it", code: answer.ContainersStarting, exit: 4, wantText: []string{"StatefulSet x makes a pod only when those before it are Ready.*: 2 further pods wait for it"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			upFor(29*time.Minute, func(*corev1.ContainerStatus) {})(ownedPod(c, "x-0", "apps/v1", "StatefulSet", setOf(c, "x", 3, "8").Name, "8", "n1"))
			c.Event("Pod", "team", "x-0", "kubelet", "Unhealthy", "Readiness probe failed: 503", 5*time.Second)
		}},
		{name: "not Ready, and the others are there", code: answer.ContainersStarting, exit: 3, wantText: []string{"it may do its work all the same"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			set := setOf(c, "x", 2, "8")
			upFor(29*time.Minute, func(*corev1.ContainerStatus) {})(ownedPod(c, "x-0", "apps/v1", "StatefulSet", set.Name, "8", "n1"))
			ownedPod(c, "x-1", "apps/v1", "StatefulSet", set.Name, "8", "n1")
			c.Event("Pod", "team", "x-0", "kubelet", "Unhealthy", "Readiness probe failed: 503", 5*time.Second)
		}},
	})
}

// The application of which a gang is a part does not end before it, and gives no quota back.
func TestQuotaOfOwnApplication(t *testing.T) {
	checkPod(t, "x-0", []testCase{
		{name: "another part of it runs", code: answer.NSQuota, exit: 5, first: "16 of 20 cpu used", wantText: []string{"FooJob app, of which it is a part, is charged 8 for other pods", "no end of a job frees enough"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			setOf(c, "x", 2, "8").OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "FooJob", Name: "app", UID: "FooJob:team/app", Controller: ptr.To(true)}}
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "x", "uid": "x"}, "spec": map[string]any{"minMember": int64(2)}})
			p := ownedPod(c, "x-0", "apps/v1", "StatefulSet", "x", "8", "")
			p.Spec.SchedulerName, p.Labels = clustertest.Scheduler, map[string]string{"scheduling.x-k8s.io/pod-group": "x"}
			ownedPod(c, "app-server", "example.com/v1", "FooJob", "app", "8", "n1")
			quota(c, "q", clustertest.List("requests.cpu", "20"), clustertest.List("requests.cpu", "16"))
		}},
	})
}

// A job's template may have a better image than a pod that waits.
func TestImageOfTemplate(t *testing.T) {
	build := func(image string) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.Kind, g.Nodes = "LeaderWorkerSet", []string{"n1"}
				g.Pod = func(_ int, p *corev1.Pod) {
					p.Spec.Containers[0].Image, p.Status.Phase, p.Status.Conditions = image, corev1.PodPending, nil
					waits("ImagePullBackOff", "Back-off pulling image")(p)
				}
			}))
		}
	}
	check(t, []testCase{
		{name: "of the same image", code: answer.ImagePull, exit: 4, not: []string{"its template has"}, build: build("train:v1")},
		{name: "of another", code: answer.ImagePull, exit: 4, wantText: []string{"its template has image train:v1 of container main: pod gang-0 is of an earlier one"}, build: build("reg/y:1")},
	})
}

// spark is an application whose driver has a node and makes the executors.
func spark(c *clustertest.Cluster, cpu string) {
	ownedPod(c, "x-driver", "sparkoperator.k8s.io/v1beta2", "SparkApplication", "x", cpu, "n1")
	ownedPod(c, "x-0", "v1", "Pod", "x-driver", "60", "")
}

// What a pod is a part of does not end before it: it is neither awaited nor evicted, and named as what it is.
func TestOwnApplication(t *testing.T) {
	checkPod(t, "x-0", []testCase{
		{name: "the driver of an executor", code: answer.NodesBusy, exit: 5, first: `SparkApplication team/x \(which ends only after it\) holds 60 cpu on n1 and never ends`, wantText: []string{"holds 60 cpu on n1, which these pods are a part of"}, not: []string{"x-driver"},
			build: func(c *clustertest.Cluster) { c.Nodes(1, 0); spark(c, "60") }},
		{name: "another job that ends besides", code: answer.Insufficient("cpu"), exit: 3, wantText: []string{"which these pods are a part of"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			spark(c, "6")
			ownedPod(c, "y-0", "batch/v1", "Job", "y", "60", "n1")
		}},
		{name: "other Deployments of what owns its own", code: answer.NodesBusy, exit: 5, first: `^DaskCluster team/x holds 60 cpu on n1 and never ends`, not: []string{"scale"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			for _, of := range []struct{ name, pod, node string }{{"x-scheduler", "x-scheduler-abc-1", "n1"}, {"x-worker", "x-0", ""}} {
				d := c.Deployment("team", of.name, "dask:v1")
				d.UID = types.UID("Deployment:team/" + of.name)
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubernetes.dask.org/v1", Kind: "DaskCluster", Name: "x", UID: "DaskCluster:team/x", Controller: ptr.To(true)}}
				set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: of.name + "-abc", UID: types.UID("ReplicaSet:team/" + of.name + "-abc"),
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: of.name, UID: d.UID, Controller: ptr.To(true)}}}}
				c.Put(set)
				ownedPod(c, of.pod, "apps/v1", "ReplicaSet", set.Name, "60", of.node).Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
		}},
	})
}

// The pod of a StatefulSet that has ended has its place until it is gone: it is no member that is done, and there is no other to come besides.
func TestEndedPodOfStatefulSet(t *testing.T) {
	c := clustertest.New().Nodes(1, 0)
	set := setOf(c, "x", 2, "8")
	for _, name := range []string{"x-0", "x-1"} {
		p := ownedPod(c, name, "apps/v1", "StatefulSet", set.Name, "8", "n1")
		p.Labels, p.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-name": "x"}, map[string]string{"kueue.x-k8s.io/pod-group-total-count": "2"}
		if name == "x-1" {
			p.Status.Phase, p.Finalizers, p.DeletionTimestamp = corev1.PodSucceeded, []string{"kueue.x-k8s.io/managed"}, ptr.To(clustertest.Ago(20*time.Minute))
		}
	}
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "x-1"})
	if err != nil {
		t.Fatal(err)
	}
	got := stages.Evaluate(context.Background(), w, job, stages.Options{})
	testCase{code: answer.MemberLost, exit: 7, first: "1/2 run", wantText: []string{"held by finalizer kueue.x-k8s.io/managed"}}.check(t, got)
}

// What an application's operator makes up is not for users to create.
func TestMadeUpName(t *testing.T) {
	mounts := func(c *clustertest.Cluster, spec map[string]any) {
		c.Nodes(1, 0)
		c.Object(map[string]any{"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": map[string]any{"namespace": "team", "name": "x", "uid": "SparkApplication:team/x"}, "spec": spec})
		p := ownedPod(c, "x-0", "sparkoperator.k8s.io/v1beta2", "SparkApplication", "x", "1", "n1")
		p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil
		waits("ContainerCreating", "")(p)
		c.Event("Pod", "team", "x-0", "kubelet", "FailedMount", `MountVolume.SetUp failed for volume "v" : configmap "drv-1" not found`, time.Minute)
	}
	checkPod(t, "x-0", []testCase{
		{name: "which it does not name", code: answer.ConfigMissing, exit: 4, wantText: []string{"SparkApplication x, which these pods are of, does not name it", "describe sparkapplication.sparkoperator.k8s.io/x"}, not: []string{"create configmap"},
			build: func(c *clustertest.Cluster) { mounts(c, map[string]any{"type": "Scala"}) }},
		{name: "which it names", code: answer.ConfigMissing, exit: 4, wantText: []string{"create configmap drv-1"}, not: []string{"does not name it"},
			build: func(c *clustertest.Cluster) { mounts(c, map[string]any{"sparkConfigMap": "drv-1"}) }},
	})
}

// A claim that its StatefulSet would make again without a class is helped by a default one only.
func TestClaimWithoutDefaultClass(t *testing.T) {
	build := func(c *clustertest.Cluster, kind string) {
		c.Nodes(1, 0)
		c.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: "csi.example.com"})
		c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-x-0"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}})
		p := ownedPod(c, "x-0", "apps/v1", kind, "x", "1", "")
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-x-0"}}}}
	}
	checkPod(t, "x-0", []testCase{
		{name: "of a StatefulSet, which has not made it", code: answer.PVCUnbound, exit: 4, first: "PersistentVolumeClaim data-x-0 does not exist", wantText: []string{"StatefulSet x makes it of its volumeClaimTemplates", "describe statefulset x"}, not: []string{"create -f"},
			build: func(c *clustertest.Cluster) { build(c, "StatefulSet"); c.S.Claims = nil }},
		{name: "of a StatefulSet", code: answer.PVCUnbound, exit: 5, first: "names no StorageClass", fix: "make StorageClass disk the default one", wantText: []string{"StatefulSet x would make the claim again as it is"}, not: []string{"make claim"},
			build: func(c *clustertest.Cluster) { build(c, "StatefulSet") }},
		{name: "of anything else", code: answer.PVCUnbound, exit: 4, fix: "make claim data-x-0 again", wantText: []string{"make StorageClass disk the default one"}, build: func(c *clustertest.Cluster) { build(c, "ReplicaSet") }},
	})
}

// The program that a gate's group is called after has to lift it.
func TestGateOfProgram(t *testing.T) {
	gated := func(c *clustertest.Cluster) {
		c.Nodes(1, 0)
		p := ownedPod(c, "x-0", "grove.io/v1alpha1", "PodClique", "x", "1", "")
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "grove.io/pending"}}
	}
	checkPod(t, "x-0", []testCase{
		{name: "there is one", code: answer.SchedulingGated, exit: 5, first: "Deployment grove-system/grove-operator has to lift it", wantText: []string{"0/1 ready", "logs deployment/grove-operator"}, build: func(c *clustertest.Cluster) {
			gated(c)
			c.Deployment("grove-system", "grove-operator", "ghcr.io/x/grove/grove-operator:v1").Status.ReadyReplicas = 0
			c.Deployment("other", "web", "web:v1")
		}},
		{name: "there is none", code: answer.SchedulingGated, exit: 5, first: "its owner has to lift it", build: func(c *clustertest.Cluster) { gated(c); c.Deployment("other", "web", "web:v1") }},
	})
}
