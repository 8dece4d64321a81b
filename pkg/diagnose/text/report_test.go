package text_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
)

// refuse takes every right beyond namespace team away.
func refuse(c *clustertest.Cluster) {
	c.S.Nodes, c.S.Caller = nil, "system:serviceaccount:team:reader"
	c.S.Denied = []snapshot.Denial{{Resource: "namespaces"}, {Resource: "nodes"}, {Resource: "pods", ExceptNamespaces: []string{"team"}},
		{Resource: "deployments.apps", ExceptNamespaces: []string{"team"}}, {Resource: "resourcequotas"}}
}

// long is a cluster in which everything has a name that is as long as it may be.
func long(c *clustertest.Cluster) {
	name := func(prefix string) string { return prefix + strings.Repeat("-of-many-words", 3) }
	for i := range 6 {
		c.Node(fmt.Sprintf("%s-%d", name("node"), i), 8)
		c.Runs(fmt.Sprintf("%s-%d", name("job"), i), 4, fmt.Sprintf("%s-%d", name("node"), i))
	}
	c.Add(clustertest.Gang{Name: "llama", Workers: 4, GPUs: 8})
	c.Event("Pod", "team", "llama-worker-0", clustertest.Scheduler, "FailedScheduling", "0/6 nodes are available: "+strings.Repeat("6 Insufficient nvidia.com/gpu, ", 4)+"no more.", 12*time.Second)
}

// The text of an answer, verbatim. Its content is tested elsewhere; this shows what a change does to how it looks.
func TestGolden(t *testing.T) {
	gang := clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8}
	four := clustertest.Gang{Name: "llama", Workers: 4, GPUs: 2, More: []clustertest.Role{{Name: "PS", Replicas: 1}}}
	tests := map[string]struct {
		build func(*clustertest.Cluster)
		o     text.Options
	}{
		"fragmented": {build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Runs("c", 4, "n3").Runs("d", 4, "n4").Add(gang)
			c.Event("Pod", "team", "llama-worker-0", clustertest.Scheduler, "FailedScheduling", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", 12*time.Second)
		}},
		"verbose": {o: text.Options{Verbose: true, Node: "n3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gang)
			c.S.Nodes[2].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}},
		"two_reasons": {build: func(c *clustertest.Cluster) {
			g := gang
			g.Volcano, g.Missing = "q", 2
			g.Spec = func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h1oo"} }
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(g)
			c.S.Nodes[0].Labels["class"], c.S.Nodes[1].Labels["class"] = "h100", "h100"
		}},
		"usual": {o: text.Options{Width: 80}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 2).Add(four)
			c.Event("Pod", "team", "llama-worker-0", clustertest.Scheduler, "FailedScheduling", "BLOCKED  llama: it needs 4 workers with 2 GPUs each, 8 in all, and the whole cluster has 4 GPUs on 2 nodes", 5*time.Second)
		}},
		"crowded": {o: text.Options{Width: 80}, build: func(c *clustertest.Cluster) {
			c.Nodes(10, 8).Add(gang)
			for i := range 10 {
				c.Runs(fmt.Sprintf("job%d", i), 4, fmt.Sprintf("n%d", i+1))
			}
		}},
		"running": {build: func(c *clustertest.Cluster) {
			g := gang
			g.Nodes = []string{"n1", "n2"}
			c.Nodes(2, 8).Add(g)
		}},
		"running_without": {build: func(c *clustertest.Cluster) {
			g := gang
			g.Nodes, g.Min = []string{"n1", "n2"}, 1
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, nil
				}
			}
			c.Nodes(2, 8).Add(g)
			c.Event("Pod", "team", "llama-worker-1", "kubelet", "FailedCreatePodSandBox", "no runtime for \"nvidia\" is configured", 5*time.Minute)
		}},
		"long_names": {o: text.Options{Width: 80}, build: long},
		"namespace_only": {o: text.Options{Width: 80}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gang)
			refuse(c)
		}},
		"namespace_only_verbose": {o: text.Options{Verbose: true}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gang)
			refuse(c)
		}},
		"seen_enough": {build: func(c *clustertest.Cluster) {
			g := gang
			g.Missing = 2
			g.Job = func(job map[string]any) { job["spec"].(map[string]any)["runPolicy"] = map[string]any{"suspend": true} }
			c.Add(g)
			refuse(c)
		}},
		"quiet": {o: text.Options{Quiet: true}, build: func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(gang) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			a, err := diagnose.Explain(context.Background(), c.Done(), diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := text.Write(&out, a, tt.o); err != nil {
				t.Fatal(err)
			}
			if rows := bytes.Count(out.Bytes(), []byte("\n")); name == "usual" && rows > 20 {
				t.Errorf("%d rows are no first screen", rows)
			}
			golden.Compare(t, filepath.Join("testdata", name+".golden"), out.String())
		})
	}
}

// An answer whose causes were not all looked for reports that: the next one may name others.
func TestConfidenceOfACutSearch(t *testing.T) {
	c := clustertest.New()
	c.Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Workers: 3, GPUs: 8})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, ctx := range map[string]context.Context{"Confidence exact; seen": t.Context(), "; a search took too long; seen": ended} {
		a, err := diagnose.Explain(ctx, c.Done(), diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := text.Write(&out, a, text.Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
