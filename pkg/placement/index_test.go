package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/gangctl/gangctl/pkg/gang"
)

// running is the cluster of a scheduler that runs: it changes its own NodeInfos.
type running struct {
	infos map[string]*framework.NodeInfo
	list  []fwk.NodeInfo // a new one when nodes come or go
	named int

	changed []string // since the last update of an index
}

func newRunning(r *rand.Rand, objects Objects) *running {
	s := &running{infos: map[string]*framework.NodeInfo{}}
	for _, n := range objects.Nodes {
		s.add(n)
	}
	r.Shuffle(len(s.list), func(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] })
	for _, p := range objects.Pods {
		s.infos[p.Spec.NodeName].AddPod(p)
	}
	return s
}

func (s *running) add(n *corev1.Node) {
	info := framework.NewNodeInfo()
	info.SetNode(n)
	s.infos[n.Name] = info
	s.list = append(slices.Clip(s.list), info)
}

// update brings an index up to date, by the nodes that have changed or by a look at all of them.
func (s *running) update(x *Index, rest *Objects, byName bool) *Cluster {
	changed := s.changed
	s.changed = nil
	if byName {
		return x.UpdateNodes(s.list, changed, rest)
	}
	return x.Update(s.list, rest)
}

// objects are what a snapshot of the cluster would hold.
func (s *running) objects() Objects {
	var o Objects
	for _, info := range s.list {
		o.Nodes = append(o.Nodes, info.Node())
		for _, p := range info.GetPods() {
			o.Pods = append(o.Pods, p.GetPod())
		}
	}
	return o
}

// change does something to the cluster that happens to clusters.
func (s *running) change(r *rand.Rand) {
	s.named++
	at := r.IntN(len(s.list))
	info := s.list[at].(*framework.NodeInfo)
	name := info.Node().Name
	s.changed = append(s.changed, name)
	switch r.IntN(10) {
	default: // a pod comes
		p := aPod(fmt.Sprint("new", s.named), amounts("cpu", r.IntN(2), "gpu", r.IntN(2)), on(name), labelled("app", fmt.Sprint("r", r.IntN(3))))
		if r.IntN(4) == 0 {
			randomRule(r, p)
		}
		info.AddPod(p)
	case 0, 1: // a pod goes; not one with a host port, which others may have, too, in these instances
		if len(info.Pods) > 0 {
			if p := info.Pods[r.IntN(len(info.Pods))].GetPod(); len(util.GetHostPorts(p)) == 0 {
				_ = info.RemovePod(klog.Background(), p)
			}
		}
	case 2: // the node's labels or taints change
		n := info.Node().DeepCopy()
		switch r.IntN(3) {
		case 0:
			n.Labels["zone"] = fmt.Sprint("z", r.IntN(3))
		case 1:
			delete(n.Labels, "rack")
		default:
			taint("dedicated", "infra", corev1.TaintEffectNoSchedule)(n)
		}
		info.SetNode(n)
	case 3: // a node comes
		s.add(aNode(fmt.Sprint("m", s.named), amounts("cpu", 1+r.IntN(4), "pods", 2+r.IntN(4)), label("zone", fmt.Sprint("z", r.IntN(3)))))
	case 4: // a node goes, and another comes
		s.list = slices.Delete(slices.Clone(s.list), at, at+1)
		s.add(aNode(fmt.Sprint("k", s.named), amounts("cpu", 1+r.IntN(4), "gpu", r.IntN(4), "pods", 2+r.IntN(4)), label("zone", fmt.Sprint("z", r.IntN(3)))))
	}
}

// onHostsOfTheirOwn has the members of a gang keep each other off their nodes, by a label that nobody else has.
func onHostsOfTheirOwn(g Gang, name string) Gang {
	g.Roles = slices.Clone(g.Roles)
	for i := range g.Roles {
		pod := g.Roles[i].Pod.DeepCopy()
		labelled("job", name)(pod)
		apart(corev1.LabelHostname, "job", name)(pod)
		g.Roles[i].Pod = pod
	}
	return g
}

// randomTopology is domains that a gang may share.
func randomTopology(r *rand.Rand) gang.Topology {
	rack, zone := []string{"rack"}, []string{"zone"}
	of := []gang.Topology{{}, {Required: "rack"}, {Preferred: rack}, {Required: "zone", Preferred: rack}, {Preferred: append(rack, zone...)}, {Required: "zone"}, {Required: corev1.LabelHostname, Preferred: zone}}
	return of[r.IntN(len(of))]
}

// Whatever happened to the cluster since, a plan on the index is the one on a snapshot of the same moment.
func TestIndexFindsWhatASnapshotFinds(t *testing.T) {
	fits, shapes, together, shared := 0, 0, 0, 0 // the last two are of gangs that share a domain
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 6))
		var gangs []Gang
		w := randomAmounts(r)
		for i := range 4 {
			other := randomInterPod(r)
			if i%2 == 0 {
				other = randomAmounts(r)
			}
			if i == 2 {
				other.gang = onHostsOfTheirOwn(other.gang, "own")
			}
			if i != 1 {
				other.gang.Topology = randomTopology(r)
			}
			gangs = append(gangs, other.gang)
			if r.IntN(2) == 0 {
				w.objects.Nodes = append(w.objects.Nodes, renamed(other.objects.Nodes, fmt.Sprint("x", i))...)
			}
		}
		s, x, rest := newRunning(r, w.objects), NewIndex(), &Objects{}
		for step := range 30 {
			for range r.IntN(3) {
				s.change(r)
			}
			if r.IntN(8) == 0 {
				rest = &Objects{}
			}
			c, snapshot := s.update(x, rest, r.IntN(4) > 0), NewCluster(s.objects())
			if r.IntN(3) == 0 {
				objects := s.objects()
				extra := aPod("extra", amounts("cpu", 1), on(objects.Nodes[r.IntN(len(objects.Nodes))].Name), labelled("app", "r1"))
				c, snapshot = c.With(extra), snapshot.With(extra)
				if len(objects.Pods) > 0 {
					gone := objects.Pods[r.IntN(len(objects.Pods))].UID
					c, snapshot = c.Without(gone), snapshot.Without(gone)
				}
			}
			g, opts := gangs[r.IntN(len(gangs))], Options{Pack: r.IntN(2) == 0}
			if pods := s.objects().Pods; g.Topology.OfAll() && len(pods) > 0 && r.IntN(3) == 0 {
				g.Bound = []types.UID{PodID(pods[r.IntN(len(pods))])}
			}
			want, got := Place(t.Context(), snapshot, g, opts), Place(t.Context(), c, g, opts)
			if diff := cmp.Diff(want, got); diff != "" && want.Proof != BudgetHit && got.Proof != BudgetHit {
				t.Fatalf("seed %d, step %d: %s", seed, step, diff)
			}
			if want.Fits() {
				fits++
			}
			if want.Fits() && g.Topology.OfAll() {
				together++
			}
			for _, role := range g.Roles {
				if diff := cmp.Diff(snapshot.Matrix(role.Pod), c.Matrix(role.Pod), cmp.AllowUnexported(Matrix{}, Row{})); diff != "" {
					t.Fatalf("seed %d, step %d: %s", seed, step, diff)
				}
			}
		}
		shapes += len(x.shapes)
		for _, kept := range x.shapes {
			if kept.levels != nil {
				shared++
			}
		}
	}
	if fits < 3000 || shapes < 300 || together < 1000 || shared < 200 {
		t.Errorf("%d placements, %d in a domain, %d shapes, %d with domains: the test proves little", fits, together, shapes, shared)
	}
}

func renamed(nodes []*corev1.Node, prefix string) []*corev1.Node {
	for _, n := range nodes {
		n.Name = prefix + n.Name
		n.Labels[corev1.LabelHostname] = n.Name
	}
	return nodes
}

// Unchanged nodes are reused.
func TestIndexTakesOverWhatDidNotChange(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		s, x, rest := newRunning(r, randomInterPod(r).objects), NewIndex(), &Objects{}
		before := slices.Clone(x.Update(s.list, rest).nodes)
		info := s.list[r.IntN(len(s.list))].(*framework.NodeInfo)
		info.AddPod(aPod("new", amounts("cpu", 1), on(info.Node().Name)))
		for i, n := range x.Update(s.list, rest).nodes {
			if same := n == before[i]; same == (n.obj.Name == info.Node().Name) {
				t.Fatalf("seed %d: node %s: taken over: %t", seed, n.obj.Name, same)
			}
		}
	}
}

// Of many nodes only those are looked at that are named.
func TestIndexLooksAtNamedNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	s, x, rest := newRunning(r, fleetObjects(20)), NewIndex(), &Objects{}
	s.update(x, rest, true) // all, as nothing is known
	for i, name := range []string{"n00003", "n00007"} {
		s.infos[name].AddPod(aPod(fmt.Sprint("new", i), amounts("cpu", 1), on(name)))
	}
	pods := func(c *Cluster, name string) int { return len(c.nodes[c.byName[name]].info.Pods) }
	before := s.infos["n00003"].Pods
	c := x.UpdateNodes(s.list, []string{"n00003", "nobody's"}, rest)
	if pods(c, "n00003") != len(before) || pods(c, "n00007") != len(s.infos["n00007"].Pods)-1 {
		t.Errorf("named: %d pods, not named: %d", pods(c, "n00003"), pods(c, "n00007"))
	}
	if c = x.Update(s.list, rest); pods(c, "n00007") != len(s.infos["n00007"].Pods) {
		t.Errorf("after a look at all: %d pods", pods(c, "n00007"))
	}
}

// What users write does not decide how much is kept.
func TestIndexKeepsLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	s, x, rest := newRunning(r, fleetObjects(20)), NewIndex(), &Objects{}
	for i := range 500 {
		key := fmt.Sprint("key-", i)
		pod := aPod("w", amounts("cpu", fmt.Sprintf("%dm", 10+i)), labelled(key, "x"), spread("zone", 1, key, "x"), spread(key, 1, key, "x"))
		s.infos["n00000"].AddPod(aPod(fmt.Sprint("new", i), amounts("cpu", "1m"), on("n00000"), labelled(key, "x")))
		s.infos["n00000"].AddPod(aPod(fmt.Sprint("odd", i), amounts("cpu", "1m", "example.com/"+key, 1), on("n00000")))
		for _, count := range []int32{1, 2} {
			Place(t.Context(), x.Update(s.list, rest), Gang{Roles: []Role{{Name: "a", Count: count, Pod: pod}, {Name: "b", Count: count, Pod: aPod("v", amounts("cpu", 1))}}}, Options{})
		}
	}
	if len(x.shapes) > maxKept || len(x.topologies) > maxKept || len(x.labelled) > maxLabels || len(x.changed) > 2*20+1024 {
		t.Errorf("%d shapes, %d topologies, %d labels, %d changes are kept", len(x.shapes), len(x.topologies), len(x.labelled), len(x.changed))
	}
	if n := len(x.cluster.names.list); n > posScalars+4 {
		t.Errorf("%d resources are known, most of which no node offers", n)
	}
	if len(x.shapes) < maxKept/2 || len(x.labelled) < maxLabels {
		t.Errorf("%d shapes, %d labels are kept: the test proves little", len(x.shapes), len(x.labelled))
	}
}

// Pods with anti-affinity to each other, and nodes that are rather avoided, are in most clusters: gangs that they do not concern are placed by the index.
func TestIndexOfGangsThatNobodyRepels(t *testing.T) {
	away := aPod("web-0", amounts("cpu", 1), on("n1"), labelled("app", "web"), apart(corev1.LabelHostname, "app", "web"))
	cluster := NewCluster(Objects{Nodes: []*corev1.Node{
		big("n1", taint("DeletionCandidateOfClusterAutoscaler", "1", corev1.TaintEffectPreferNoSchedule)), big("n2"), big("n3"),
	}, Pods: []*corev1.Pod{away}})
	var list []fwk.NodeInfo
	for _, n := range cluster.nodes {
		list = append(list, n.info)
	}
	x := NewIndex()
	place := func(pod *corev1.Pod, count int32) (nodes []string) {
		found := Place(t.Context(), x.Update(list, &Objects{}), Gang{Roles: []Role{role("W", count, pod)}}, Options{Pack: true})
		for _, a := range found.Placement {
			nodes = append(nodes, a.Node)
		}
		slices.Sort(nodes)
		return slices.Compact(nodes)
	}
	if got := place(aPod("w", amounts("cpu", 1)), 2); !slices.Equal(got, []string{"n2"}) || len(x.shapes) != 1 {
		t.Errorf("on %s, by %d shapes", got, len(x.shapes))
	}
	tolerant := aPod("w", amounts("cpu", 1))
	tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	if got := place(tolerant, 2); !slices.Equal(got, []string{"n1"}) || len(x.shapes) != 2 {
		t.Errorf("who tolerates the taint is on %s, by %d shapes", got, len(x.shapes))
	}
	tolerant.Labels = map[string]string{"app": "web"}
	if got := place(tolerant, 2); !slices.Equal(got, []string{"n2"}) || len(x.shapes) != 2 {
		t.Errorf("who is repelled is on %s, by %d shapes", got, len(x.shapes))
	}
}

// A gang of three costs the same on few nodes and on many.
func BenchmarkGangOfThree(b *testing.B) { benchOnIndex(b, gang.Topology{}) }

// So does one whose members share a rack, but for a look at what there is room for in each rack.
func BenchmarkGangInARack(b *testing.B) { benchOnIndex(b, gang.Topology{Required: "rack"}) }

func benchOnIndex(b *testing.B, of gang.Topology) {
	for _, nodes := range []int{500, 5000, 20000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s, x, rest := newRunning(rand.New(rand.NewPCG(1, 1)), fleetObjects(nodes)), NewIndex(), &Objects{}
			g := Gang{Topology: of, Roles: []Role{{Name: "worker", Count: 3, Pod: aPod("w", amounts("cpu", 1))}}}
			var running []*corev1.Pod
			gangs := 0
			Place(b.Context(), s.update(x, rest, false), g, Options{Pack: true}) // the index is made once
			for b.Loop() {
				found := Place(b.Context(), s.update(x, rest, true), g, Options{Pack: true})
				if !found.Fits() {
					b.Fatal(found.Proof)
				}
				gangs++
				for _, p := range found.Pods(g) {
					p.UID = types.UID(fmt.Sprint(p.UID, gangs))
					s.changed = append(s.changed, p.Spec.NodeName)
					s.infos[p.Spec.NodeName].AddPod(p)
					running = append(running, p)
				}
				for ; len(running) > 300; running = running[1:] {
					s.changed = append(s.changed, running[0].Spec.NodeName)
					_ = s.infos[running[0].Spec.NodeName].RemovePod(klog.Background(), running[0])
				}
			}
		})
	}
}

// Gangs whose members keep each other off their nodes, each by a label of its own, are alike, and planned without a look at every node; one whose label others
// have is not.
func TestIndexOfGangsThatAreApart(t *testing.T) {
	s, x := newRunning(rand.New(rand.NewPCG(1, 9)), fleetObjects(20)), NewIndex()
	place := func(value string) (Result, Result) {
		g := onHostsOfTheirOwn(Gang{Roles: []Role{role("W", 3, aPod("w", amounts("cpu", 1)))}}, value)
		return Place(t.Context(), s.update(x, &Objects{}, false), g, Options{Pack: true}), Place(t.Context(), NewCluster(s.objects()), g, Options{Pack: true})
	}
	for i := range 5 {
		got, want := place(fmt.Sprint("g", i))
		if diff := cmp.Diff(want, got); diff != "" || !got.Fits() || len(x.shapes) != 1 {
			t.Fatalf("gang %d, by %d shapes: %s", i, len(x.shapes), diff)
		}
	}
	node := "n00000"
	s.infos[node].AddPod(aPod("theirs", amounts("cpu", 1), on(node), labelled("job", "g0")))
	got, want := place("g0")
	if diff := cmp.Diff(want, got); diff != "" || !got.Fits() {
		t.Errorf("next to a pod with its label: %s", diff)
	}
	for _, a := range got.Placement {
		if a.Node == node {
			t.Errorf("a member is on the node of a pod that it keeps away from")
		}
	}
}

// Gangs that read a data set which every node can have are planned without a look at every node, whichever it is; those whose volume is somewhere, or is counted, are not.
func TestIndexOfGangsWithADataSet(t *testing.T) {
	s := newRunning(rand.New(rand.NewPCG(1, 9)), fleetObjects(20))
	for name, tt := range map[string]struct {
		change func(o *Objects)
		shapes int
	}{
		"as they come":         {func(*Objects) {}, 1},
		"on some nodes":        {func(o *Objects) { o.PersistentVolumes[0] = aVolume("pv0", "c", corev1.LabelHostname, "n00003") }, 1},
		"in a zone":            {func(o *Objects) { inZone(o.PersistentVolumes[0], "z1") }, 1},
		"counted by a node":    {func(o *Objects) { o.CSINodes = []*storagev1.CSINode{limit("n00001", 0)} }, 0},
		"of no CSI driver":     {func(o *Objects) { o.PersistentVolumes[0].Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} }, 1},
		"a claim is not bound": {func(o *Objects) { o.PersistentVolumeClaims[0] = aClaim("data0", "c", "") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Objects{
				PersistentVolumeClaims: claims(aClaim("data0", "c", "pv0", corev1.ReadWriteMany), aClaim("data1", "c", "pv1", corev1.ReadWriteMany)),
				PersistentVolumes:      volumes(aVolume("pv0", "c"), aVolume("pv1", "c")),
			}
			tt.change(o)
			x := NewIndex()
			for _, claim := range []string{"data0", "data1", "data0"} {
				g := Gang{Roles: []Role{role("W", 3, aPod("w", amounts("cpu", 1), using(claim)))}}
				all := s.objects()
				all.PersistentVolumeClaims, all.PersistentVolumes, all.CSINodes = o.PersistentVolumeClaims, o.PersistentVolumes, o.CSINodes
				got, want := Place(t.Context(), s.update(x, o, false), g, Options{Pack: true}), Place(t.Context(), NewCluster(all), g, Options{Pack: true})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("with %s: %s", claim, diff)
				}
			}
			if len(x.shapes) != tt.shapes {
				t.Errorf("%d shapes", len(x.shapes))
			}
		})
	}
}

// What is prepared of the objects that volumes refer to stays while gangs without volumes take turns with those that have some.
func TestStoresTakeTurns(t *testing.T) {
	x, none, volumes := NewIndex(), &Objects{}, &Objects{CSINodes: []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}}
	first := x.Update(nil, volumes).store
	for range 3 {
		if x.Update(nil, none).store == first || x.Update(nil, volumes).store != first {
			t.Fatal("it is made anew")
		}
	}
	for range 2 * maxStores {
		x.Update(nil, &Objects{})
	}
	if len(x.stores) != maxStores || x.Update(nil, volumes).store == first {
		t.Errorf("%d are kept", len(x.stores))
	}
}
