package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
)

const (
	csiDriver   = "csi.example.com"
	otherDriver = "other.example.com"
)

// scratch gives a pod a volume of its own, of a class.
func scratch(name, class string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: aClaim("", class, "").Spec},
		}}})
	}
}

// attachment is a volume that is attached to a node.
func attachment(volumeName, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volumeName + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: csiDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volumeName},
	}}
}

// storage has so many claims c0, c1, … with volumes of the same names, and classes for more.
func storage(n int) Objects {
	o := Objects{StorageClasses: classes(aClass("c", csiDriver, storagev1.VolumeBindingWaitForFirstConsumer), aClass("other", otherDriver, storagev1.VolumeBindingWaitForFirstConsumer))}
	for i := range n {
		name := fmt.Sprint("c", i)
		pv := aVolume(name, "c")
		if i%4 == 3 {
			pv.Spec.CSI.Driver = otherDriver
		}
		o.PersistentVolumes, o.PersistentVolumeClaims = append(o.PersistentVolumes, pv), append(o.PersistentVolumeClaims, aClaim(name, "c", name))
	}
	return o
}

func TestPlaceCountsTheVolumesOfMembersTogether(t *testing.T) {
	worker := func(options ...podOption) *corev1.Pod { return aPod("w", amounts("gpu", 1), options...) }
	each := func(n int) (roles []Role) { // members with a volume for each
		for i := range n {
			roles = append(roles, role(fmt.Sprintf("r%02d", i), 1, worker(using(fmt.Sprint("c", 4*i)))))
		}
		return roles
	}
	two := func(a, b int32) []*storagev1.CSINode { return []*storagev1.CSINode{limit("n1", a), limit("n2", b)} }
	for name, tc := range map[string]struct {
		limits      []*storagev1.CSINode
		there       []*corev1.Pod
		attachments []*storagev1.VolumeAttachment
		roles       []Role
		minimum     int32
		want        Proof
		bound       *Bound
	}{
		"one each, enough in all":            {limits: two(2, 1), roles: each(3), want: Witness},
		"one each, not enough in all":        {limits: two(1, 1), roles: each(3), want: CountingBound, bound: &Bound{Need: 3, Have: 2, Constraint: VolumeLimits}},
		"not enough in all, but enough":      {limits: two(1, 1), roles: each(3), minimum: 2, want: Witness},
		"very many, not enough in all":       {limits: two(16, 16), roles: each(33), want: CountingBound, bound: &Bound{Need: 33, Have: 32, Constraint: VolumeLimits}},
		"a node without a limit":             {limits: two(1, 1)[:1], roles: each(4), want: Witness},
		"made for each":                      {limits: two(2, 1), roles: []Role{role("r", 3, worker(scratch("s", "c")))}, want: Witness},
		"too many made for each":             {limits: two(2, 1), roles: []Role{role("r", 4, worker(scratch("s", "c")))}, want: CountingBound, bound: &Bound{Role: "r", Need: 4, Have: 3}},
		"two made for each":                  {limits: two(3, 3), roles: []Role{role("r", 3, worker(scratch("s", "c"), scratch("t", "c")))}, want: CountingBound, bound: &Bound{Role: "r", Need: 3, Have: 2}},
		"two drivers":                        {limits: two(2, 1), roles: []Role{role("r", 3, worker(scratch("s", "c"), scratch("t", "other")))}, want: Witness},
		"one for all":                        {limits: two(1, 0), roles: []Role{role("r", 8, worker(using("c0")))}, want: Witness},
		"one for all, and one for each":      {limits: two(3, 0), roles: []Role{role("r", 2, worker(using("c0"), scratch("s", "c")))}, want: Witness},
		"one for all, and too many":          {limits: two(3, 0), roles: []Role{role("r", 3, worker(using("c0"), scratch("s", "c")))}, want: CountingBound, bound: &Bound{Role: "r", Need: 3, Have: 2}},
		"one for all of two roles":           {limits: two(1, 0), roles: []Role{role("a", 2, worker(using("c0"))), role("b", 2, worker(using("c0")))}, want: Witness},
		"together it is one fewer":           {limits: two(2, 1), roles: []Role{role("a", 1, worker(using("c0"))), role("b", 1, worker(using("c4"))), role("c", 1, worker(using("c0"), using("c4")))}, want: Witness},
		"apart it is one more":               {limits: two(1, 1), roles: []Role{role("a", 1, worker(using("c0"))), role("b", 1, worker(using("c0"), using("c4")))}, want: CountingBound, bound: &Bound{Role: "b", Need: 1}},
		"a pod there has it already":         {limits: two(1, 0), there: []*corev1.Pod{aPod("b", nil, on("n1"), using("c0"))}, roles: []Role{role("r", 2, worker(using("c0")))}, want: Witness},
		"a pod there has another":            {limits: two(1, 0), there: []*corev1.Pod{aPod("b", nil, on("n1"), using("c4"))}, roles: []Role{role("r", 2, worker(using("c0")))}, want: CountingBound, bound: &Bound{Role: "r", Need: 2}},
		"another is attached still":          {limits: two(2, 0), attachments: []*storagev1.VolumeAttachment{attachment("c4", "n1")}, roles: each(1), want: Witness},
		"another is attached still, no room": {limits: two(1, 0), attachments: []*storagev1.VolumeAttachment{attachment("c4", "n1")}, roles: each(1), want: CountingBound, bound: &Bound{Role: "r00", Need: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			o := storage(4 * 33)
			o.Nodes, o.CSINodes, o.Pods, o.VolumeAttachments = []*corev1.Node{aNode("n1", amounts("gpu", 64)), aNode("n2", amounts("gpu", 64))}, tc.limits, tc.there, tc.attachments
			g := Gang{Roles: tc.roles, MinMember: tc.minimum}
			c := NewCluster(o)
			r := Place(t.Context(), c, g, Options{Budget: budgetForTests})
			if r.Proof != tc.want || fmt.Sprintf("%+v", r.Bound) != fmt.Sprintf("%+v", tc.bound) || len(r.Unmodelled) > 0 {
				t.Errorf("%s %+v, not modelled %v; want %s %+v", r.Proof, r.Bound, r.Unmodelled, tc.want, tc.bound)
			}
			if lenient := Place(t.Context(), c, g, Options{Budget: budgetForTests, Ignore: Constraints{}.Insert(VolumeLimits)}); !lenient.Fits() {
				t.Errorf("without limits: %s", lenient.Proof)
			}
			if causes := FindCauses(t.Context(), c, g, Options{Budget: budgetForTests}); r.Impossible() && causes.String() == "" {
				t.Errorf("causes %+v", causes)
			}
		})
	}
}

// The volumes of pods that a what-if takes away are gone with them; what no pod uses is detached on a cluster at rest, and not before.
func TestVolumesOfPodsThatAreTakenAway(t *testing.T) {
	o := storage(12)
	o.Nodes, o.CSINodes = []*corev1.Node{big("n1")}, []*storagev1.CSINode{limit("n1", 2)}
	o.Pods = []*corev1.Pod{aPod("b", nil, on("n1"), using("c0"))}
	o.VolumeAttachments = []*storagev1.VolumeAttachment{attachment("c0", "n1"), attachment("c4", "n1")}
	c, g := NewCluster(o), Gang{Roles: []Role{role("r", 1, aPod("w", nil, using("c8")))}}
	for name, tc := range map[string]struct {
		cluster *Cluster
		fits    bool
	}{
		"as it is": {c, false}, "without the pod": {c.Without(o.Pods[0].UID), true}, "and with it again": {c.Without(o.Pods[0].UID).With(o.Pods[0]), false},
		"repaired":                 {c.Without(o.Pods[0].UID).MapNodes(func(n *corev1.Node) *corev1.Node { return n.DeepCopy() }), true},
		"at rest":                  {c.Emptied(func(*corev1.Pod) bool { return true }), true},
		"as it is, again":          {c, false},
		"as it is, once more read": {NewCluster(o), false},
	} {
		if r := Place(t.Context(), tc.cluster, g, Options{Budget: budgetForTests}); r.Fits() != tc.fits {
			t.Errorf("%s: %s", name, r.Proof)
		}
	}
	// A member whose volume is attached still counts it twice, as the scheduler does.
	g.Roles[0].Pod = aPod("w", nil, using("c4"))
	if r := Place(t.Context(), c, g, Options{Budget: budgetForTests}); r.Fits() || !slices.Contains(r.Unmodelled, stillAttached) {
		t.Errorf("%s, not modelled %v", r.Proof, r.Unmodelled)
	}
}

// randomVolumes makes a cluster of which nodes can attach only so many volumes, and a gang whose members have some: each for itself, with each other, and
// with pods that are there.
func randomVolumes(r *rand.Rand) instance {
	w := instance{objects: storage(6)}
	claim := func() podOption { return using(fmt.Sprint("c", r.IntN(6))) }
	for i := range 1 + r.IntN(3) {
		n := aNode(fmt.Sprint("n", i), amounts("cpu", 2+r.IntN(5)), label("zone", fmt.Sprint("z", r.IntN(2))))
		w.objects.Nodes = append(w.objects.Nodes, n)
		reported := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		for _, driver := range []string{csiDriver, otherDriver} {
			d := storagev1.CSINodeDriver{Name: driver}
			if most := r.Int32N(4); r.IntN(5) > 0 {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: &most}
			}
			reported.Spec.Drivers = append(reported.Spec.Drivers, d)
		}
		if r.IntN(8) > 0 {
			w.objects.CSINodes = append(w.objects.CSINodes, reported)
		}
		for j := range r.IntN(2) {
			p := aPod(fmt.Sprint("b", i, j), amounts("cpu", r.IntN(2)), on(n.Name), claim())
			w.objects.Pods = append(w.objects.Pods, p)
			if r.IntN(2) == 0 {
				w.objects.VolumeAttachments = append(w.objects.VolumeAttachments, attachment(p.Spec.Volumes[0].Name, n.Name))
			}
		}
		if r.IntN(4) == 0 {
			old := fmt.Sprint("old", i)
			w.objects.PersistentVolumes = append(w.objects.PersistentVolumes, aVolume(old, "c"))
			w.objects.VolumeAttachments = append(w.objects.VolumeAttachments, attachment(old, n.Name))
		}
	}
	left := 1 + r.IntN(6)
	for i := range 1 + r.IntN(4) {
		n := 1 + r.IntN(min(left, 3))
		pod := aPod(fmt.Sprint("m", i), amounts("cpu", r.IntN(3)), labelled("app", fmt.Sprint("r", i)), labelled("job", "j"))
		for range r.IntN(3) {
			if c := claim(); !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == aPod("", nil, c).Spec.Volumes[0].Name }) {
				c(pod)
			}
		}
		if r.IntN(3) == 0 {
			scratch("s", []string{"c", "other"}[r.IntN(2)])(pod)
		}
		if r.IntN(6) == 0 {
			randomRule(r, pod)
		}
		w.gang.Roles = append(w.gang.Roles, Role{Name: fmt.Sprint("r", i), Count: int32(n), Pod: pod})
		if left -= n; left == 0 {
			break
		}
	}
	if r.IntN(4) == 0 {
		w.gang.MinMember = 1 + r.Int32N(w.gang.Total())
	}
	return w
}

func TestPlaceAgreesWithBruteForceOnVolumeLimits(t *testing.T) {
	testAgainstOracle(t, 3000, randomVolumes, false)
}

// A node that is judged alone is judged as by the plugin of the scheduler, whatever kind of volume it is.
func TestVolumeLimitsAgreeWithUpstreamPlugin(t *testing.T) {
	yes, rejected := true, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := randomVolumes(r)
		ebs := aVolume("ebs", "c")
		ebs.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
		w.objects.PersistentVolumes = append(w.objects.PersistentVolumes, ebs)
		w.objects.StorageClasses = append(w.objects.StorageClasses, aClass("intree", "kubernetes.io/aws-ebs", storagev1.VolumeBindingWaitForFirstConsumer))
		w.objects.PersistentVolumeClaims = append(w.objects.PersistentVolumeClaims, aClaim("ebs", "c", "ebs"), aClaim("unbound", "c", ""), aClaim("intree", "intree", ""))
		for i, n := range w.objects.CSINodes {
			most := int32(i)
			n.Spec.Drivers = append(n.Spec.Drivers[r.IntN(2):], storagev1.CSINodeDriver{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &most}})
		}
		if r.IntN(2) == 0 {
			for _, driver := range []string{csiDriver, "ebs.csi.aws.com"} {
				w.objects.CSIDrivers = append(w.objects.CSIDrivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &yes}})
			}
		}
		for i, n := range w.objects.Nodes {
			w.objects.VolumeAttachments = append(w.objects.VolumeAttachments, attachment(fmt.Sprint("c", r.IntN(6)), n.Name))
			name := []string{"ebs", "unbound", "intree"}[r.IntN(3)]
			w.objects.Pods = append(w.objects.Pods, aPod(fmt.Sprint("x", i), nil, on(n.Name), using(name)))
		}
		c := NewCluster(w.objects)
		for _, role := range w.gang.Roles {
			pod := role.Pod.DeepCopy()
			pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) // which the plugin knows nothing of before it is there
			for _, name := range []string{"ebs", "unbound", "intree"} {
				if r.IntN(3) == 0 {
					using(name)(pod)
				}
			}
			if r.IntN(3) == 0 {
				withDisk(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: fmt.Sprint("vol-", 1+r.IntN(2))}})(pod)
			}
			_, features := c.store.get(c.objects)
			plugin := c.filterFor(mustFilter(nodevolumelimits.NewCSI(t.Context(), nil, c.handle(), features)), pod)
			ours := volumeLimitCheck(c, pod)
			for _, n := range c.nodes {
				reason := ""
				if plugin != nil {
					reason = plugin(n)
				}
				got := ours != nil && len(ours(n)) > 0
				if got != (reason != "") {
					t.Fatalf("seed %d, node %s: plugin reports %q, ours %t\n%s", seed, n.obj.Name, reason, got, describe(w))
				}
				if got {
					rejected++
				}
			}
		}
	}
	if rejected < 1000 {
		t.Errorf("%d rejected: this proves little", rejected)
	}
}

// What a node has attached is read once, until its pods or the objects change.
func TestAttachedVolumesAreReadOnce(t *testing.T) {
	o := storage(8)
	o.Nodes, o.CSINodes = []*corev1.Node{big("n1")}, []*storagev1.CSINode{limit("n1", 2)}
	o.Pods = []*corev1.Pod{aPod("b", nil, on("n1"), using("c0"))}
	c := NewCluster(o)
	first := c.attachedTo(c.nodes[0])
	if c.attachedTo(c.nodes[0]) != first || len(first.used) != 1 {
		t.Errorf("read again: %v", first.used)
	}
	fuller := c.With(aPod("d", nil, on("n1"), using("c4")))
	if got := fuller.attachedTo(fuller.nodes[0]); len(got.used) != 2 || c.attachedTo(c.nodes[0]) != first {
		t.Errorf("with another pod: %v", got.used)
	}
	o.PersistentVolumeClaims = nil
	changed := &Cluster{objects: &o, names: c.names, nodes: c.nodes, byName: c.byName, podNodes: podNodes{all: map[types.UID]string{}}, store: &store{}}
	if got := changed.attachedTo(changed.nodes[0]); len(got.used) != 0 {
		t.Errorf("without the claim: %v", got.used)
	}
}

// The volumes of a pod are read at a cost that grows with their number, and each counts once.
func TestPodsWithVeryManyVolumes(t *testing.T) {
	o := storage(4)
	o.Nodes, o.CSINodes = []*corev1.Node{big("n1")}, []*storagev1.CSINode{limit("n1", 2)}
	pod := aPod("w", nil, using("c0"), using("c0"))
	for i := range 60_000 {
		scratch(fmt.Sprint("s", i), "c")(pod)
	}
	start := time.Now()
	if got := NewCluster(o).attachables(pod); len(got) != 60_001 {
		t.Errorf("%d volumes", len(got))
	}
	if took := time.Since(start); took > 20*time.Second { // each compared with each took longer than half a minute
		t.Errorf("took %s", took)
	}
}

// Users choose how many sets of members share volumes: of very many, some are not counted, and it is said so.
func TestVolumesOfVeryManySetsOfMembers(t *testing.T) {
	o := storage(0)
	o.Nodes, o.CSINodes = []*corev1.Node{big("n1")}, []*storagev1.CSINode{limit("n1", maxShared)}
	g := Gang{}
	for i := range 9 {
		g.Roles = append(g.Roles, role(fmt.Sprint("r", i), 1, aPod(fmt.Sprint("w", i), nil)))
	}
	for set := range 1 << 9 {
		name := fmt.Sprint("c", set)
		o.PersistentVolumes, o.PersistentVolumeClaims = append(o.PersistentVolumes, aVolume(name, "c")), append(o.PersistentVolumeClaims, aClaim(name, "c", name))
		for i := range g.Roles {
			if set&(1<<i) != 0 {
				using(name)(g.Roles[i].Pod)
			}
		}
	}
	task := instanceTask(t, instance{objects: o, gang: g})
	if got := len(task.attach.shared); got != maxShared || len(task.unmodelled) != 1 {
		t.Errorf("%d sets, not modelled %v", got, task.unmodelled)
	}
	few := Gang{Roles: g.Roles[:8]} // of 255 sets
	task = instanceTask(t, instance{objects: o, gang: few})
	if got := len(task.attach.shared); got != 255 || len(task.unmodelled) != 0 {
		t.Errorf("of few: %d sets, not modelled %v", got, task.unmodelled)
	}
}

// A volume that is made for one member, and that another names, counts once.
func TestVolumeOfAMemberThatAnotherUses(t *testing.T) {
	o := storage(4)
	o.Nodes, o.CSINodes = []*corev1.Node{big("n1")}, []*storagev1.CSINode{limit("n1", 1)}
	o.PersistentVolumeClaims = append(o.PersistentVolumeClaims, aClaim("w-s", "c", "c0"))
	owner, other := aPod("w", nil, scratch("s", "c")), aPod("v", nil, using("w-s"))
	g := Gang{Roles: []Role{role("owner", 1, owner), role("other", 1, other)}}
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests}); !r.Fits() || len(r.Unmodelled) > 0 {
		t.Errorf("%s %+v, not modelled %v", r.Proof, r.Bound, r.Unmodelled)
	}
	g.Roles[0].Count, o.CSINodes = 2, []*storagev1.CSINode{limit("n1", 2)}
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests}); !r.Fits() || !slices.Equal(r.Unmodelled, []string{usedByName}) {
		t.Errorf("of one of two: %s %+v, not modelled %v", r.Proof, r.Bound, r.Unmodelled)
	}
}
