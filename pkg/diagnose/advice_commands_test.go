package diagnose

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// paste runs the commands of each action, and diagnoses again.
func paste(t *testing.T, s *snapshot.Snapshot, actions []answer.Action, known map[answer.ActionKind]int) {
	t.Helper()
	for _, x := range actions {
		if x.Command == "" {
			if x.By != answer.Nobody && x.How == "" {
				t.Errorf("%s: neither a command nor who has to do what", x.Text)
			}
			continue
		}
		if x.How != "" && x.Resize == "" {
			continue // which does the rest
		}
		after, ok := pasted(t, s, x.Command)
		if !ok {
			continue
		}
		known[x.Kind]++
		a, err := Explain(context.Background(), after, Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
		if err != nil {
			t.Fatalf("%s: %v\n%s", x.Text, err, x.Command)
		}
		then := answer.Waiting
		if strings.Contains(x.Text, ", and then it is blocked: ") {
			then = answer.Blocked
		}
		if x.Verified && !a.Verdict.Starts() || !x.Verified && a.Verdict != then {
			t.Errorf("%s\n%s\nand then: %s %s", x.Text, x.Command, a.Verdict, a.Headline)
		}
	}
}

// What is printed to be pasted does what is promised.
func TestCommandsWork(t *testing.T) {
	known := map[answer.ActionKind]int{}
	n := 600
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		w := randomCluster(r)
		for i := range w.jobs { // more small services, which can be moved
			if j := &w.jobs[i]; r.IntN(2) == 0 {
				j.service, j.gpus, j.cpu = true, min(j.gpus, 2), min(j.cpu, 16)
			}
		}
		s := w.build()
		paste(t, s, explainRandom(t, s, Options{}).Unblock, known)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, w)
		}
	}
	for _, kind := range []answer.ActionKind{answer.Fewer, answer.Reshape, answer.Trim, answer.Relax, answer.Uncordon, answer.Evict, answer.Move} {
		if known[kind] == 0 && !testing.Short() {
			t.Errorf("no cluster led to the commands of a %s: the test tests less than it should", kind)
		}
	}
}

// The same for every kind of job and every way to declare a gang.
func TestCommandsWorkForEveryKind(t *testing.T) {
	situations := map[string]func(c *clustertest.Cluster, g *clustertest.Gang){
		"fragmented": func(c *clustertest.Cluster, _ *clustertest.Gang) {
			c.Nodes(4, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Serves("c", 4, "n3").Serves("d", 4, "n4")
		},
		"too few nodes": func(c *clustertest.Cluster, _ *clustertest.Gang) {
			c.Nodes(3, 8).Runs("a", 8, "n1")
			c.S.Nodes[1].Spec.Unschedulable = true
		},
		"cpu is short": func(c *clustertest.Cluster, _ *clustertest.Gang) {
			c.Nodes(2, 8).ServesWith("a", 0, "90", "n1", "n2")
		},
		"rules": func(c *clustertest.Cluster, g *clustertest.Gang) {
			c.Nodes(2, 16)
			c.S.Nodes[0].Labels["it's"] = "$HOME"
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "a;b", Value: "`date`", Effect: corev1.TaintEffectNoSchedule}}
			g.Spec = func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") }
		},
		"a selector": func(c *clustertest.Cluster, g *clustertest.Gang) {
			c.Nodes(2, 8).Node("n3", 0).Labels["it's"] = "$HOME"
			g.Spec = func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"it's": "$HOME"} }
		},
		"others are less important": func(c *clustertest.Cluster, g *clustertest.Gang) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Kind: "PyTorchJob", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).
				Add(clustertest.Gang{Namespace: "research", Name: "b", Kind: "Job", NoGroup: true, Workers: 1, GPUs: 8, Nodes: []string{"n2"}})
			high := int32(100)
			g.Spec = func(p *corev1.PodSpec) { p.Priority = &high }
		},
	}
	dialects := []gang.Dialect{gang.SchedulerPlugins, gang.Volcano, gang.KAI, gang.Native, ""}
	known := map[answer.ActionKind]int{}
	for name, build := range situations {
		for _, kind := range []string{"TFJob", "PyTorchJob", "MPIJob", "Job"} {
			for _, dialect := range dialects {
				t.Run(strings.Join([]string{name, kind, string(dialect)}, "/"), func(t *testing.T) {
					c := clustertest.New()
					g := clustertest.Gang{Name: "gang", Kind: kind, Workers: 2, GPUs: 8, Age: 40 * time.Second, Dialect: dialect, NoGroup: dialect == "", BatchJob: asCreated}
					build(c, &g)
					s := c.Add(g).Done()
					a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, Options{})
					if err != nil {
						t.Fatal(err)
					}
					paste(t, s, a.Unblock, known)
				})
			}
		}
	}
	for _, kind := range []answer.ActionKind{answer.Fewer, answer.Reshape, answer.Trim, answer.Relax, answer.Uncordon, answer.Evict, answer.Move} {
		if known[kind] == 0 {
			t.Errorf("no situation led to the commands of a %s", kind)
		}
	}
}

// asCreated is a Job with what the API server adds.
func asCreated(j *batchv1.Job) {
	j.Spec.Template.Labels = map[string]string{batchv1.ControllerUidLabel: string(j.UID), "controller-uid": string(j.UID), "job-name": j.Name}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}
	n := *j.Spec.Completions
	j.Spec.Completions = &n
}
