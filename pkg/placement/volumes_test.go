package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

func using(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// aClaim is a claim of namespace team; volume is empty if it is unbound.
func aClaim(name, class, volumeName string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid-claim"}}
	c.Spec.StorageClassName, c.Spec.VolumeName, c.Spec.AccessModes = &class, volumeName, modes
	c.Spec.Resources.Requests = amounts("storage", "1Gi")
	c.Status.Phase = corev1.ClaimPending
	if volumeName != "" {
		c.Status.Phase = corev1.ClaimBound
		c.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
	}
	return c
}

func aVolume(name, class string, affinity ...string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.StorageClassName, v.Spec.Capacity = class, amounts("storage", "1Gi")
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}
	v.Status.Phase = corev1.VolumeAvailable
	if len(affinity) == 2 {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: affinity[0], Operator: corev1.NodeSelectorOpIn, Values: affinity[1:]}},
		}}}}
	}
	return v
}

func aClass(name string, provisioner string, mode storagev1.VolumeBindingMode, zones ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	if len(zones) > 0 {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}}
	}
	return c
}

func TestMatrixVolumes(t *testing.T) {
	const first, immediate = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	none := volume.NotSupportedProvisioner
	for name, tc := range map[string]struct {
		o    Objects
		want []Constraint
	}{
		"bound":                      {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(aVolume("pv", "c"))}},
		"bound in this zone":         {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(aVolume("pv", "c", corev1.LabelTopologyZone, "z1"))}},
		"bound in another zone":      {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(aVolume("pv", "c", corev1.LabelTopologyZone, "z2"))}, want: []Constraint{VolumeZone}},
		"labelled with another zone": {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(inZone(aVolume("pv", "c"), "z2"))}, want: []Constraint{VolumeZone}},
		"local to another node":      {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(aVolume("pv", "c", corev1.LabelHostname, "n2"))}, want: []Constraint{VolumeNode}},
		"no claim":                   {want: []Constraint{VolumeClaim}},
		"no volume":                  {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv"))}, want: []Constraint{VolumeClaim}},
		"no class":                   {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "fast", ""))}, want: []Constraint{VolumeClaim}},
		"unbound":                    {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "")), StorageClasses: classes(aClass("c", "csi.example.com", immediate))}, want: []Constraint{VolumeClaim}},
		"first consumer":             {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "")), StorageClasses: classes(aClass("c", "csi.example.com", first))}},
		"allowed zone":               {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "")), StorageClasses: classes(aClass("c", "csi.example.com", first, "z1"))}},
		"not an allowed zone":        {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "")), StorageClasses: classes(aClass("c", "csi.example.com", first, "z2"))}, want: []Constraint{VolumeNode}},
		"static volume here":         {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "", corev1.ReadWriteOnce)), StorageClasses: classes(aClass("c", none, first)), PersistentVolumes: volumes(aVolume("pv", "c", corev1.LabelHostname, "n1"))}},
		"static volume elsewhere":    {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "", corev1.ReadWriteOnce)), StorageClasses: classes(aClass("c", none, first)), PersistentVolumes: volumes(aVolume("pv", "c", corev1.LabelHostname, "n2"))}, want: []Constraint{VolumeNode}},
		"in use by one pod": {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv", corev1.ReadWriteOncePod)), PersistentVolumes: volumes(aVolume("pv", "c")),
			Pods: []*corev1.Pod{aPod("b", nil, on("n1"), using("data"))}}, want: []Constraint{VolumeClaim}},
		"attached as many as can be": {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv"), aClaim("old", "c", "pv2")), PersistentVolumes: volumes(aVolume("pv", "c"), aVolume("pv2", "c")),
			CSINodes: []*storagev1.CSINode{limit("n1", 1)}, Pods: []*corev1.Pod{aPod("b", nil, on("n1"), using("old"))}}, want: []Constraint{VolumeLimits}},
		"attached already": {o: Objects{PersistentVolumeClaims: claims(aClaim("data", "c", "pv")), PersistentVolumes: volumes(aVolume("pv", "c")),
			CSINodes: []*storagev1.CSINode{limit("n1", 1)}, Pods: []*corev1.Pod{aPod("b", nil, on("n1"), using("data"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Nodes = []*corev1.Node{big("n1", label(corev1.LabelTopologyZone, "z1"))}
			c := NewCluster(tc.o)
			pod := aPod("w", nil, using("data"))
			if diff := cmp.Diff(append([]Constraint{}, tc.want...), constraintsOf(c.Matrix(pod))); diff != "" {
				t.Error(diff)
			}
			if r := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 1, pod)}}, Options{}); r.Fits() != (tc.want == nil) {
				t.Errorf("place: %s", r.Proof)
			}
		})
	}
}

func claims(c ...*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim { return c }

func volumes(v ...*corev1.PersistentVolume) []*corev1.PersistentVolume { return v }

func classes(c ...*storagev1.StorageClass) []*storagev1.StorageClass { return c }

func inZone(v *corev1.PersistentVolume, zone string) *corev1.PersistentVolume {
	v.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	return v
}

func limit(node string, n int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "csi.example.com", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &n}},
	}}}
}

func TestPlaceSharesAnExclusiveClaimOnce(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1"), big("n2")}, PersistentVolumeClaims: claims(aClaim("data", "c", "pv", corev1.ReadWriteOncePod)), PersistentVolumes: volumes(aVolume("pv", "c"))})
	r := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 2, aPod("w", nil, using("data")))}}, Options{})
	if want := (&Bound{Role: "Worker", Need: 2, Have: 1, Constraint: VolumeClaim}); !cmp.Equal(r.Bound, want) {
		t.Errorf("%s, bound %+v, want %+v", r.Proof, r.Bound, want)
	}
}

func TestUnmodelledStorageCapacity(t *testing.T) {
	yes := true
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1")}, PersistentVolumeClaims: claims(aClaim("data", "c", "")),
		StorageClasses: classes(aClass("c", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer)),
		CSIDrivers:     []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}}})
	want := []string{"storage capacity of CSI driver csi.example.com for claim data"}
	if got := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 2, aPod("w", nil, using("data")))}}, Options{}).Unmodelled; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of several default classes claims get the newest, as from the API server, in whatever order they are read.
func TestDefaultStorageClass(t *testing.T) {
	now := time.Now()
	classOf := func(name, annotation string, age time.Duration) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)), Annotations: map[string]string{annotation: "true"}}}
	}
	const byDefault, beta = "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
	for want, classes := range map[string][]*storagev1.StorageClass{
		"":       {classOf("other", "x", 0)},
		"newest": {classOf("old", byDefault, time.Hour), classOf("newest", byDefault, time.Minute), classOf("other", "x", 0)},
		"a":      {classOf("a", byDefault, time.Minute), classOf("b", byDefault, time.Minute)},
		"beta":   {classOf("beta", beta, time.Minute)},
	} {
		for range 2 {
			got := ""
			if class := DefaultStorageClass(classes); class != nil {
				got = class.Name
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			slices.Reverse(classes)
		}
	}
}

// Where it is known what storage nodes have, a claim goes where there is enough for it.
func TestStorageCapacity(t *testing.T) {
	yes := true
	has := func(node, amount string) *storagev1.CSIStorageCapacity {
		q := resource.MustParse(amount)
		return &storagev1.CSIStorageCapacity{StorageClassName: "c", Capacity: &q, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node}}}
	}
	nodes := []*corev1.Node{big("n1"), big("n2"), big("n3")}
	for _, n := range nodes {
		n.Labels = map[string]string{corev1.LabelHostname: n.Name}
	}
	data := aClaim("data", "c", "")
	data.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Ti")}
	c := NewCluster(Objects{Nodes: nodes, PersistentVolumeClaims: claims(data), StorageCapacities: []*storagev1.CSIStorageCapacity{has("n1", "3Ti"), has("n2", "500Gi")},
		StorageClasses: classes(aClass("c", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer)),
		CSIDrivers:     []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}}})
	got := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 1, aPod("w", nil, using("data")))}}, Options{})
	if len(got.Placement) != 1 || got.Placement[0].Node != "n1" || got.Unmodelled != nil {
		t.Errorf("got %+v, unmodelled %q", got.Placement, got.Unmodelled)
	}
	m := c.Matrix(aPod("w", nil, using("data")))
	if row, _ := m.Row("n2"); len(row.Violations) != 1 || row.Violations[0].Detail != "claim data needs 2Ti of class c, of which there are 500Gi" {
		t.Errorf("got %+v", row)
	}
}
