package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

func TestFilterCompletions(t *testing.T) {
	tests := []struct {
		prefix string
		want   []string
	}{
		{"", []string{"alpha\tA", "beta", "gamma"}},
		{"b", []string{"beta"}},
		{"x", nil},
		{"beta,", []string{"beta,alpha\tA", "beta,gamma"}},
		{"gamma,beta,a", []string{"gamma,beta,alpha\tA"}},
	}
	for _, tt := range tests {
		if got := FilterCompletions([]string{"gamma", "beta", "alpha\tA", "beta"}, tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.prefix, got, tt.want)
		}
	}
	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf("job-%03d", i))
	}
	if got := FilterCompletions(many, "job-1"); len(got) != maxCompletions || got[0] != "job-100" {
		t.Errorf("got %d, from %q", len(got), got[0])
	}
}

func command(t *testing.T) *cobra.Command {
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	return cmd
}

// What goes wrong is not reported, whatever it is.
func TestClusterIsSilent(t *testing.T) {
	client := func() (*kube.Client, error) { return &kube.Client{}, nil }
	namespace := func() (string, error) { return "research", nil }
	failed := errors.New("failed")
	finds := func(context.Context, *kube.Client, string, []string) ([]string, error) { return []string{"a"}, nil }
	fails := func(context.Context, *kube.Client, string, []string) ([]string, error) { return []string{"a"}, failed }
	for name, tt := range map[string]struct {
		f    *Factory
		find Finder
		want int
	}{
		"found":        {&Factory{Client: client, Namespace: namespace}, finds, 1},
		"no namespace": {&Factory{Client: client, Namespace: func() (string, error) { return "", failed }}, finds, 0},
		"no client":    {&Factory{Client: func() (*kube.Client, error) { return nil, failed }, Namespace: namespace}, finds, 0},
		"failed":       {&Factory{Client: client, Namespace: namespace}, fails, 0},
	} {
		names, directive := CompleteFromCluster(tt.f, tt.find)(command(t), nil, "")
		if len(names) != tt.want || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s: got %q, %v", name, names, directive)
		}
	}
}

// A login that hangs and knows no deadline does not hold up the shell.
func TestClusterIsBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		defer close(released)
		f := &Factory{Namespace: func() (string, error) { return "", nil }, Client: func() (*kube.Client, error) { <-released; return nil, errors.New("late") }}
		start := time.Now()
		names, _ := CompleteFromCluster(f, nil)(command(t), nil, "")
		if took := time.Since(start); names != nil || took != completionBudget {
			t.Errorf("got %q after %v", names, took)
		}
	})
}

func partial(names ...string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, name := range names {
		l.Items = append(l.Items, metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return l
}

// Kinds are mixed, and those that are not served, or not for this user, are left out.
func TestCompleteNames(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /api/v1/namespaces", 200, partial("research", "default"))
	s.Answer("GET /apis/scheduling.volcano.sh/v1beta1/queues", 200, partial("vision"))
	s.Answer("GET /apis/kueue.x-k8s.io/v1beta2/namespaces/research/localqueues", 200, partial("team", "vision"))
	s.Answer("GET /api/v1/namespaces/research/persistentvolumeclaims", 200, partial("images"))
	s.Refuse("GET /apis/scheduling.run.ai/v2/queues", 403, metav1.StatusReasonForbidden, "no", nil)
	f := &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	for _, tt := range []struct {
		complete func(*Factory) cobra.CompletionFunc
		prefix   string
		want     []string
	}{
		{CompleteNamespaces, "", []string{"default", "research"}},
		{CompleteNamespaces, "r", []string{"research"}},
		{CompleteQueues, "", []string{"team\tKueue", "vision\tKueue"}},
		{CompleteNodes, "", nil},
		{CompleteClaims, "im", []string{"images:"}},
	} {
		if got, _ := tt.complete(f)(command(t), nil, tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// What nodes have completes the flags that name it: labels that group them, and devices.
func TestCompleteFromNodes(t *testing.T) {
	serving := func(list any) *Factory {
		s := kubetest.New(t)
		if list != nil {
			s.Answer("GET /api/v1/nodes", 200, list)
		}
		return &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	}
	if got, _ := CompleteDevices(serving(nil))(command(t), nil, ""); got != nil {
		t.Errorf("without a right: %q", got)
	}
	nodes := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	for _, zone := range []string{"a", "b"} {
		nodes.Items = append(nodes.Items, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"topology.kubernetes.io/zone": zone, "rack": "r1", corev1.LabelHostname: zone}},
			Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("4")}},
		})
	}
	if got, _ := CompleteDevices(serving(&nodes))(command(t), nil, ""); !slices.Equal(got, []string{"nvidia.com/gpu"}) {
		t.Errorf("got %q", got)
	}
	labels := partial("a")
	labels.Items[0].Labels = nodes.Items[0].Labels
	if got, _ := CompleteNodeLabels(serving(labels))(command(t), nil, "rack,"); !slices.Equal(got, []string{"rack,topology.kubernetes.io/zone"}) {
		t.Errorf("got %q", got)
	}
}
