package advice_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// cause is one thing that is in the way of a gang of two workers with 8 GPUs each, on three nodes that have 8.
type cause func(c *clustertest.Cluster, g *clustertest.Gang)

// Causes that each have a way out by themselves.
var (
	tainted cause = func(c *clustertest.Cluster, _ *clustertest.Gang) {
		for i := range c.S.Nodes {
			taint(c, i, "nvidia.com/gpu", "present")
		}
	}
	twice cause = func(c *clustertest.Cluster, _ *clustertest.Gang) {
		for _, n := range c.S.Nodes {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	busy     cause = func(c *clustertest.Cluster, _ *clustertest.Gang) { c.Runs("acacia", 8, "n1", "n2") }
	halfBusy cause = func(c *clustertest.Cluster, _ *clustertest.Gang) { c.Runs("acacia", 4, "n1", "n2", "n3") }
	few      cause = func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Workers = 4 }
	big      cause = func(_ *clustertest.Cluster, g *clustertest.Gang) { g.GPUs = 16 }
	many     cause = func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Min = g.Workers + 2 }
	typo     cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		label(c, "class", "h100", "h100", "h100")
		specs(g, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h1oo"} })
	}
	capped cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		limits(c, "requests.nvidia.com/gpu", "8")
		g.Missing = g.Workers
	}
	zero cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		limits(c, "pods", "0")
		g.Missing = g.Workers
	}
	ranged cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lr"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: clustertest.List("memory", "32Gi")}}}})
		g.Missing = g.Workers
	}
	down cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		c.S.Deployments[0].Status.ReadyReplicas = 0
		g.Missing, g.NoGroup = g.Workers, true
		g.Job = func(job map[string]any) { delete(job, "status") }
	}
	denied cause = func(c *clustertest.Cluster, g *clustertest.Gang) {
		g.Missing = g.Workers
		c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", `Error creating: admission webhook "policy.example.com" denied the request: missing label team`, 4*time.Second)
	}
	unclaimed cause = func(_ *clustertest.Cluster, g *clustertest.Gang) {
		specs(g, func(p *corev1.PodSpec) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "dataset"}}})
		})
	}
	short cause = func(c *clustertest.Cluster, g *clustertest.Gang) { // of memory, on the nodes that have too few GPUs, too
		c.ServesWith("etl", 0, "4", "n1", "n2", "n3")
		for _, p := range c.S.Pods {
			if strings.HasPrefix(p.Name, "etl") {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = clustertest.List("memory", "600Gi")[corev1.ResourceMemory]
			}
		}
		g.Memory = "256Gi"
	}
)

func specs(g *clustertest.Gang, f func(*corev1.PodSpec)) {
	before := g.Spec
	g.Spec = func(p *corev1.PodSpec) {
		if before != nil {
			before(p)
		}
		f(p)
	}
}

// limits adds a quota of one resource, of which nothing is used.
func limits(c *clustertest.Cluster, name, hard string) {
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: clustertest.List(name, hard)},
		Status: corev1.ResourceQuotaStatus{Hard: clustertest.List(name, hard), Used: clustertest.List(name, "0")}})
}

func together(causes ...cause) *clustertest.Cluster {
	c, g := clustertest.New().Nodes(3, 8), gangOf(2, 8)
	for _, add := range causes {
		add(c, &g)
	}
	return c.Add(g)
}

const (
	tolerates = "tolerate the taint nvidia.com/gpu=present:NoSchedule"
	starts    = "training-operator to run again"
	requires  = "change the pods as policy.example.com requires"
)

// way is an action as it has to be offered: all parts of its sentence, and who does it.
type way struct {
	parts []string
	by    answer.Who
	then  bool // it does not start the gang by itself
}

func (w way) is(a answer.Action) bool {
	return a.By == w.by && a.Verified != w.then && !slices.ContainsFunc(w.parts, func(part string) bool { return !strings.Contains(a.Text, part) })
}

func users(parts ...string) way  { return way{parts: parts, by: answer.User} }
func admins(parts ...string) way { return way{parts: parts, by: answer.Admin} }
func waits(parts ...string) way {
	return way{parts: append(parts, ", and then it waits: "), by: answer.User, then: true}
}

// Of several causes, each with its own way out, all ways out together are one.
func TestSeveralCauses(t *testing.T) {
	for name, tt := range map[string]struct {
		causes []cause
		want   []way
	}{
		"a taint, and busy nodes":    {[]cause{tainted, busy}, []way{waits(tolerates, "8 of 24 GPUs free"), users(tolerates, "4 GPUs for each worker"), users(tolerates, "1 worker instead of 2"), admins(tolerates, "add 1 node")}},
		"a taint, and too few nodes": {[]cause{tainted, few}, []way{users(tolerates, "3 workers instead of 4"), users(tolerates, "4 GPUs for each worker")}},
		"a taint, and too large":     {[]cause{tainted, big}, []way{users(tolerates, "8 GPUs for each worker")}},
		"a taint, and a quota":       {[]cause{capped, tainted}, []way{users(tolerates, "4 GPUs for each worker"), users(tolerates, "1 worker instead of 2"), admins(tolerates, "of quota q to 16")}},
		"a taint, and a LimitRange":  {[]cause{ranged, tainted}, []way{users(tolerates, "32Gi memory")}},
		"a taint, and the operator":  {[]cause{down, tainted}, []way{admins(tolerates, starts)}},
		"a taint, and a policy":      {[]cause{denied, tainted}, []way{users(requires, tolerates)}},
		"a taint, and the minimum":   {[]cause{many, tainted}, []way{users(tolerates, "set minMember to 2")}},
		"the minimum, and too large": {[]cause{big, many}, []way{users("8 GPUs for each worker", "set minMember to 2")}},
		"the minimum, and too few nodes": {[]cause{few, many}, []way{users("3 workers instead of 4", "set minMember to 3"), users("4 GPUs for each worker", "set minMember to 4"),
			admins("set minMember to 4, and add 1 node")}},
		"the minimum, and a selector":             {[]cause{typo, many}, []way{users("require class=h100", "set minMember to 2")}},
		"the operator, and too large":             {[]cause{down, big}, []way{admins(starts, "8 GPUs for each worker")}},
		"a quota, and too few nodes":              {[]cause{few, zero}, []way{admins("3 workers instead of 4", "raise pods of quota q to 3")}},
		"a LimitRange, and a quota":               {[]cause{capped, ranged}, []way{users("32Gi memory", "4 GPUs for each worker")}},
		"a policy, and a quota":                   {[]cause{capped, denied}, []way{users(requires, "4 GPUs for each worker")}},
		"a policy, and a selector":                {[]cause{typo, denied}, []way{users(requires, "require class=h100")}},
		"a policy, and too few nodes":             {[]cause{few, denied}, []way{users(requires, "3 workers instead of 4")}},
		"a selector, and too large":               {[]cause{big, typo}, []way{users("require class=h100", "8 GPUs for each worker")}},
		"GPUs and memory of the same nodes":       {[]cause{halfBusy, short}, []way{users("4 GPUs for each worker", "Gi memory for each worker")}},
		"two taints":                              {[]cause{tainted, twice}, []way{users(tolerates, "tolerate the taint team=vision:NoSchedule")}},
		"two taints, and busy nodes":              {[]cause{tainted, twice, busy}, []way{users(tolerates, "tolerate the taint team=vision:NoSchedule", "4 GPUs for each worker")}},
		"a taint, the operator, and too large":    {[]cause{down, tainted, big}, []way{admins(starts, tolerates, "8 GPUs for each worker")}},
		"a taint, the operator, and busy nodes":   {[]cause{down, tainted, busy}, []way{admins(starts, tolerates, "4 GPUs for each worker")}},
		"a selector, and a claim that is missing": {[]cause{typo, unclaimed}, []way{{parts: []string{"require class=h100, and then it is blocked: PersistentVolumeClaim dataset does not exist"}, by: answer.User, then: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, found := look(t, together(tt.causes...), advice.Options{})
			for _, want := range tt.want {
				if !slices.ContainsFunc(found.Actions, want.is) {
					t.Errorf("%s: no %q", r.Primary.Message, want.parts)
				}
			}
			for _, a := range found.Actions {
				check(t, a)
				if len(tt.want) > 0 && t.Failed() {
					t.Logf("%s %v %s: %s", a.By, a.Verified, a.Kind, a.Text)
				}
			}
		})
	}
}

// Members that are too large, and nodes that are cordoned: less for some, and no more of the nodes than that needs.
func TestTrimAndUncordon(t *testing.T) {
	on := func(c *clustertest.Cluster, node string) func(*corev1.PodSpec) {
		boundClaim(c, corev1.LabelHostname, node)
		return mountsClaim
	}
	for name, tt := range map[string]struct {
		build func(*clustertest.Cluster)
		want  way
	}{
		"of one role": {func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(1, 8, spec(on(c, "n2")), func(g *clustertest.Gang) { g.Memory = "800Gi" }))
			cordon(c, 0, 1, 2)
		}, admins("uncordon n2, and ", "768Gi memory for each worker")},
		"of two roles": {func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			cordon(c, 2)
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Memory, g.More = "800Gi", []clustertest.Role{{Name: "PS", Replicas: 1, CPU: "4", Memory: "8Gi", Spec: on(c, "n3")}}
			}))
		}, admins("uncordon n3, and ", "Gi memory for each worker")},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			r, found := look(t, c, advice.Options{})
			if !slices.ContainsFunc(found.Actions, tt.want.is) {
				t.Errorf("%s: no %q", r.Primary.Message, tt.want.parts)
			}
			for _, a := range found.Actions {
				check(t, a)
				if t.Failed() {
					t.Logf("%s %v %s: %s", a.By, a.Verified, a.Kind, a.Text)
				}
			}
		})
	}
}

// boundClaim is claim data of team, bound to a volume on nodes with a value of a label.
func boundClaim(c *clustertest.Cluster, key, value string) {
	only := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
	c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: "data"},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{only}}}}})
	c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
}

func mountsClaim(p *corev1.PodSpec) {
	p.Volumes = append(p.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})
}

// What a policy denied is not started by what does not meet it, and a minimum that follows from an edit is in its change.
func TestNoHalfWay(t *testing.T) {
	for name, tt := range map[string]struct {
		causes []cause
		needs  string
	}{
		"a policy, and a quota":       {[]cause{capped, denied}, requires},
		"a policy, and a selector":    {[]cause{typo, denied}, requires},
		"the minimum, and a selector": {[]cause{typo, many}, "set minMember to"},
	} {
		_, found := look(t, together(tt.causes...), advice.Options{})
		for _, a := range found.Actions {
			if a.Verified && !strings.Contains(a.Text, tt.needs) {
				t.Errorf("%s: offered %s", name, a.Text)
			}
			if minimum := strings.Contains(a.Text, "set minMember to 2"); minimum != (a.Change["minMember"] == int64(2)) {
				t.Errorf("%s: %s changes %v", name, a.Text, a.Change)
			}
		}
	}
}

// An operator puts an init container before those of a template: what a job requests is compared with what its own containers have.
func TestTrimBesideAnInitContainer(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	c.Add(clustertest.Gang{Name: "gang", Kind: "PyTorchJob", Workers: 4, GPUs: 8, Pod: func(_ int, p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init-pytorch", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "50m", "memory", "10Mi")}}}
	}})
	_, found := look(t, c, advice.Options{})
	if trimmed := offers(found.Actions, answer.Trim); len(trimmed) != 1 || trimmed[0] != "Worker.gpu=4" {
		t.Errorf("to trim: %q", trimmed)
	}
}

// Of several taints the owners are asked once.
func TestOwnersOfTaints(t *testing.T) {
	_, found := look(t, together(tainted, twice), advice.Options{})
	if len(found.Actions) == 0 || found.Actions[0].Text != "tolerate the taint nvidia.com/gpu=present:NoSchedule, and tolerate the taint team=vision:NoSchedule, if their owners agree" {
		t.Errorf("got %+v", found.Actions)
	}
}

// No change is evaluated twice: not as a way out by itself and as a first step, nor after a step and together with that.
func TestEvaluations(t *testing.T) {
	for name, tt := range map[string]struct {
		causes []cause
		most   int
	}{
		"a taint, and busy nodes":              {[]cause{tainted, busy}, 4},
		"a taint, and too few nodes":           {[]cause{tainted, few}, 4},
		"a taint, and a quota":                 {[]cause{capped, tainted}, 13},
		"two taints, and busy nodes":           {[]cause{tainted, twice, busy}, 4},
		"a taint, the operator, and too large": {[]cause{down, tainted, big}, 4},
		"busy nodes":                           {[]cause{busy}, 4},
	} {
		w := view.New(together(tt.causes...).Done())
		job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
		if err != nil {
			t.Fatal(err)
		}
		base := stages.Evaluate(context.Background(), w, job, stages.Options{})
		if _, n := advice.Counted(context.Background(), w, base, advice.Options{}); n > tt.most {
			t.Errorf("%s: %d changes evaluated, want %d at most", name, n, tt.most)
		}
	}
}
