package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// anyPod is a pod that differs from others in one or two of all that a signature has, and in what it does not have.
func anyPod(r *rand.Rand) *corev1.Pod {
	p := aPod(fmt.Sprint("p", r.Int()), amounts("cpu", 1), labelled("index", fmt.Sprint(r.Int())), labelled("app", "a"))
	p.Spec.Containers[0].Image = fmt.Sprint(r.Int())
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: int32(r.IntN(100))}}
	p.Spec.Volumes = []corev1.Volume{{Name: fmt.Sprint("token-", r.Int()), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Spec.Tolerations = []corev1.Toleration{{Key: "not-ready", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](300)}}
	changes := []func(){
		func() { p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2") },
		func() { p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1") },
		func() { p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}} },
		func() { p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) },
		func() { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) },
		func() { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} },
		func() { hostPort(80)(p) },
		func() { hostPort(81)(p) },
		func() { p.Labels["app"] = "b" },
		func() { delete(p.Labels, "app") },
		func() { selecting("zone", "z1")(p) },
		func() { selecting("zone", "z2")(p) },
		func() { tolerating("dedicated")(p) },
		func() { p.Spec.Tolerations[0].TolerationSeconds = nil },
		func() { p.Spec.Tolerations[0].TolerationSeconds = ptr.To[int64](1) },
		func() { affineTo("zone", "app", "a")(p) },
		func() { apart("zone", "app", "a")(p) },
		func() { p.Spec.Affinity = &corev1.Affinity{} },
		func() { spread("zone", 1, "app", "a")(p) },
		func() { p.Spec.HostNetwork = true },
		func() { p.Spec.Overhead = amounts("cpu", 1) },
		func() { p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", 3)} },
		func() {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("x")}}
		},
		func() {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("y")}}
		},
		func() {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("c", r.IntN(2))}}})
		},
	}
	for range r.IntN(3) {
		changes[r.IntN(len(changes))]()
	}
	return p
}

// Pods are alike where their signatures are equal, whatever labels are selected.
func TestAlikeIsOfEqualSignatures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	equal, different := 0, 0
	for range 20_000 {
		a, b := anyPod(r), anyPod(r)
		selected := []func(string) bool{nil, func(key string) bool { return key == "app" }, func(string) bool { return true }}[r.IntN(3)]
		first, err := Signature(a, selected)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Signature(b, selected)
		if err != nil {
			t.Fatal(err)
		}
		if alike := Alike(a, b, selected); alike != (first == second) || alike != Alike(b, a, selected) {
			t.Fatalf("alike %t:\n%s\n%s", alike, first, second)
		}
		if first == second {
			equal++
		} else {
			different++
		}
	}
	if equal < 500 || different < 500 {
		t.Errorf("%d equal and %d different ones show nothing", equal, different)
	}
	a, b := aPod("a", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}), aPod("b", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")})
	if !Alike(a, b, nil) {
		t.Error("one cpu is not the same as 1000m")
	}
}
