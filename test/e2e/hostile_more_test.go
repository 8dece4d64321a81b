package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// liftedGang fills the cluster with another tenant's pods, and has one small member of a high class lift a gang that wants their places.
func liftedGang(t *testing.T, stage *demo.Stage, evil tenant) {
	ctx, classes := t.Context(), stage.Client().SchedulingV1().PriorityClasses()
	_, err := classes.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "hostile-urgent"}, Value: 1_000_000}, metav1.CreateOptions{})
	must(t, err)
	nodes, err := stage.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	// Memory is what these are about: the gangs that are to start as before request none.
	wants := func(p *corev1.Pod, memory string) *corev1.Pod {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse(memory)}
		return p
	}
	var calm []string
	for i := range nodes.Items {
		calm = append(calm, fmt.Sprintf("calm-%d", i))
		create(t, stage, wants(pod(calm[i], func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "calm", int32(len(nodes.Items))) }), "12Gi"))
	}
	bound(t, stage, calm...)
	member := func(name, memory, class string) *corev1.Pod {
		p := wants(pod(name, func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "lifted", 2) }), memory)
		p.Spec.PriorityClassName = class
		return p
	}
	evil.run(t, member("lifted-0", "1Mi", "hostile-urgent"), member("lifted-1", "12Gi", ""))
	eventually(t, "the gang has no place", func(ctx context.Context) bool {
		p, err := evil.client.CoreV1().Pods(evil.namespace).Get(ctx, "lifted-1", metav1.GetOptions{})
		return err == nil && strings.Contains(conditionOf(p), "Unschedulable")
	})
	rests(t, quietFor, func() string {
		var text string
		for _, name := range calm {
			p, err := stage.Client().CoreV1().Pods(demo.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || p.DeletionTimestamp != nil {
				t.Fatalf("%s was evicted for a gang with a member of priority 0: %v", name, err)
			}
			text += p.Spec.NodeName + " "
		}
		return text
	})
	for _, name := range calm {
		must(t, stage.Client().CoreV1().Pods(demo.Namespace).Delete(ctx, name, now()))
	}
}

// impossibleClaim has gangs request devices of which the last two must be alike, where no two are: a search tries every permutation of the
// others. One claim has more requests than are searched for, the other as many as are.
func impossibleClaim(t *testing.T, stage *demo.Stage, evil tenant) {
	ctx, devices := t.Context(), stage.Client().ResourceV1()
	_, err := devices.DeviceClasses().Create(ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "hostile"}}, metav1.CreateOptions{})
	must(t, err)
	nodes, err := stage.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, n := range nodes.Items {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-hostile"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "hostile.example", NodeName: ptr.To(n.Name), Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}}}
		for d := range 32 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("d%d", d),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"serial": {StringValue: ptr.To(fmt.Sprintf("%s-%d", n.Name, d))}}})
		}
		_, err := devices.ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		must(t, err)
	}
	for name, requests := range map[string]int{"impossible": 20, "searched": 16} {
		must(t, evil.claims(ctx, name, requests))
		var pods []*corev1.Pod
		for i := range 2 {
			p := pod(fmt.Sprintf("%s-%d", name, i), func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, name, 2) })
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: ptr.To(name)}}
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "c"}}
			pods = append(pods, p)
		}
		evil.run(t, pods...)
		t.Cleanup(func() { // the tenant's own answers would wait for theirs
			for _, p := range pods {
				must(t, evil.client.CoreV1().Pods(evil.namespace).Delete(context.WithoutCancel(ctx), p.Name, metav1.DeleteOptions{}))
			}
		})
	}
}

// claims creates a claim for devices of which the last two have to have the same serial number.
func (e tenant) claims(ctx context.Context, name string, requests int) error {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range requests {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i),
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "hostile", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}})
	}
	claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("hostile.example/serial")),
		Requests: []string{fmt.Sprintf("r%d", requests-2), fmt.Sprintf("r%d", requests-1)}}}
	_, err := e.client.ResourceV1().ResourceClaims(e.namespace).Create(ctx, claim, metav1.CreateOptions{})
	return err
}

// endlessSearches are gangs that the search for places neither places nor proves impossible in its time: the members differ, and the two that must
// not share a node's operating system come last. Pods that come and go have them tried again.
func endlessSearches(t *testing.T, stage *demo.Stage, evil tenant) {
	const gangs, members = 10, 16
	for g := range gangs {
		name := fmt.Sprintf("endless-%d", g)
		for i := range members {
			p := pod(fmt.Sprintf("%s-%d", name, i), func(meta *metav1.ObjectMeta) {
				labels.SetGroup(meta, name, members)
				metav1.SetMetaDataAnnotation(meta, "gangctl.dev/expected-runtime", "1m")
			})
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprintf("%dm", members-i))}
			p.Spec.Containers[0].Resources.Limits = nil
			if i >= members-2 {
				metav1.SetMetaDataLabel(&p.ObjectMeta, "apart", name)
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelOSStable, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"apart": name}}}}}}
			}
			evil.run(t, p)
		}
	}
	nodes, err := stage.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		pods := evil.client.CoreV1().Pods(evil.namespace)
		for i := 0; ctx.Err() == nil; i++ {
			p := pod(fmt.Sprintf("event-%d", i), nil)
			p.Spec.NodeName = nodes.Items[0].Name
			_, err := pods.Create(ctx, p, metav1.CreateOptions{})
			if err == nil {
				err = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	setGroup := func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "calm-again", 2) }
	began := time.Now()
	create(t, stage, pod("calm-again-0", setGroup), pod("calm-again-1", setGroup))
	bound(t, stage, "calm-again-0", "calm-again-1")
	if took := time.Since(began); took > 15*time.Second { // it is a second or two
		t.Errorf("a gang of another namespace starts after %s", took)
	}
	stop()
	<-stopped
	must(t, evil.client.CoreV1().Pods(evil.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{LabelSelector: labels.MinAvailableLabel + "=" + fmt.Sprint(members)}))
	eventually(t, "they are gone", func(ctx context.Context) bool {
		left, err := evil.client.CoreV1().Pods(evil.namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.MinAvailableLabel + "=" + fmt.Sprint(members)})
		return err == nil && len(left.Items) == 0
	})
}

// localFiles has whoever resubmits a job send a file of his own.
func localFiles(t *testing.T, stage *demo.Stage, evil tenant) {
	const marker = "the private key of whoever resubmits"
	file := filepath.Join(t.TempDir(), "id_ed25519")
	must(t, os.WriteFile(file, []byte(marker), 0o600))
	jobs := evil.dynamic.Resource(tfJobs()).Namespace(evil.namespace)
	_, err := jobs.Patch(t.Context(), "wide", "application/merge-patch+json", fmt.Appendf(nil,
		`{"metadata":{"annotations":{"gangctl.dev/command":"gangctl submit tf wide --image x --config-file %s:/key --workers 1"}}}`, file), metav1.PatchOptions{})
	must(t, err)
	_, stderr, _ := gangctl(t, stage, "resubmit", "tfjob/wide", "-n", evil.namespace, "--name", "again")
	maps, err := stage.Client().CoreV1().ConfigMaps(evil.namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, m := range maps.Items {
		if strings.Contains(fmt.Sprint(m.Data, m.BinaryData), marker) {
			t.Errorf("ConfigMap %s has the file; %s", m.Name, stderr)
		}
	}
	if !strings.Contains(stderr, "what is repeated is the spec of TFJob "+evil.namespace+"/wide") {
		t.Errorf("it is not shown what is repeated: %s", stderr)
	}
}

// lookalike is a Deployment that pretends to be the scheduler, to be upgraded with the scheduler's rights.
func lookalike(t *testing.T, stage *demo.Stage, evil tenant) {
	label := map[string]string{"app.kubernetes.io/part-of": "gangctl", "app.kubernetes.io/instance": "gang-scheduler", "app.kubernetes.io/version": "v0.0.1"}
	_, err := evil.client.AppsV1().Deployments(evil.namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "gang-scheduler", Labels: label}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: label}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: label}, Spec: pod("x", nil).Spec}},
	}, metav1.CreateOptions{})
	must(t, err)
	for _, args := range [][]string{{"upgrade"}, {"upgrade", "-n", evil.namespace}, {"uninstall"}} {
		out, stderr, _ := gangctl(t, stage, append(args, "--dry-run=server")...)
		if strings.Contains(out, "deployment.apps/gang-scheduler") || strings.Contains(stderr, "upgrading gang-scheduler in namespace "+evil.namespace) {
			t.Errorf("gangctl %s takes the tenant's for ours: %s%s", strings.Join(args, " "), out, stderr)
		}
		if !strings.Contains(stderr, "note: Deployment "+evil.namespace+"/gang-scheduler has the labels of the scheduler and is left alone") {
			t.Errorf("gangctl %s does not name the tenant's Deployment as foreign: %s%s", strings.Join(args, " "), out, stderr)
		}
	}
	if _, err := evil.client.AppsV1().Deployments(evil.namespace).Get(t.Context(), "gang-scheduler", metav1.GetOptions{}); err != nil {
		t.Errorf("the tenant's Deployment is gone: %v", err)
	}
	bindings, err := stage.Client().RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, b := range bindings.Items {
		for _, s := range b.Subjects {
			if s.Namespace == evil.namespace {
				t.Errorf("ClusterRoleBinding %s has a subject of the tenant", b.Name)
			}
		}
	}
}

// componentsOfTenant has Deployments, leases and events that are called like an operator's and a scheduler's. What others read stays the same.
func componentsOfTenant(t *testing.T, stage *demo.Stage, evil tenant) {
	reported := func() string {
		out, stderr, _ := gangctl(t, stage, "submit", "tf", "others", "--image", "i", "--workers", "2", "--dry-run=client", "-o", "yaml")
		answer, _, _ := gangctl(t, stage, "why-pending", "tf-smoke-gpu", "--source=cluster", "-o", "jsonpath={.verdict}{.headline}")
		return out + stderr + answer
	}
	before := reported()
	ctx, label := t.Context(), map[string]string{"app": "x"}
	for name, args := range map[string][]string{"training-operator": {"--gang-scheduler-name=mine"}, "mine": nil, "volcano": nil, "default-scheduler": nil} {
		spec := pod("x", nil).Spec
		spec.Containers[0].Name, spec.Containers[0].Image, spec.Containers[0].Args = "x", "x/training-operator:v1", args
		if name != "training-operator" {
			spec.Containers[0].Image = "x/vc-scheduler:v1"
		}
		_, err := evil.client.AppsV1().Deployments(evil.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: label}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: label}, Spec: spec}}}, metav1.CreateOptions{})
		must(t, err)
		_, err = evil.client.CoordinationV1().Leases(evil.namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NowMicro())}}, metav1.CreateOptions{})
		must(t, err)
	}
	if after := reported(); after != before {
		t.Errorf("others read\n%s\nand without the tenant's\n%s", after, before)
	}
}
