package placement

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestFromNodeInfos(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		w := randomSocial(r)
		infos := map[string]*framework.NodeInfo{}
		var list []fwk.NodeInfo
		for _, n := range w.objects.Nodes {
			info := framework.NewNodeInfo()
			info.SetNode(n)
			infos[n.Name] = info
			list = append(list, info)
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		rest := &Objects{}
		empty := FromNodeInfos(nil, list, rest)
		for _, p := range w.objects.Pods {
			infos[p.Spec.NodeName].AddPod(p)
		}
		c := FromNodeInfos(empty, list, rest)
		for _, role := range w.gang.Roles {
			for name, pair := range map[string][2]*Cluster{
				"empty": {empty, NewCluster(Objects{Nodes: w.objects.Nodes})}, "with pods": {c, NewCluster(w.objects)},
				"without": {c.Without("uid-b0"), NewCluster(w.objects).Without("uid-b0")},
			} {
				if diff := cmp.Diff(pair[1].Matrix(role.Pod), pair[0].Matrix(role.Pod), cmp.AllowUnexported(Row{})); diff != "" {
					t.Fatalf("seed %d, %s: %s", seed, name, diff)
				}
			}
		}
		for i, n := range c.nodes {
			if changed := len(n.info.Pods) > 0; changed == (n == empty.nodes[i]) {
				t.Fatalf("seed %d: node %s: changed %t, taken over %t", seed, n.obj.Name, changed, !changed)
			}
		}
	}
}

func BenchmarkFromNodeInfos5000(b *testing.B) {
	c := fleet(5000)
	var list []fwk.NodeInfo
	for _, n := range c.nodes {
		list = append(list, n.info)
	}
	rest := &Objects{}
	previous := FromNodeInfos(nil, list, rest)
	extra := aPod("extra", amounts("cpu", 1), on("n00000"))
	for b.Loop() {
		c.nodes[0].info.AddPod(extra)
		previous = FromNodeInfos(previous, list, rest)
	}
}
