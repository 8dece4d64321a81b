package preemption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
)

// groupsByName are the groups of the namespace ns.
type groupsByName map[string]*schedulingv1beta1.PodGroup

func (g groupsByName) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	if group, ok := g[name]; ok {
		return group, nil
	}
	return nil, fmt.Errorf("podgroup %s not found", name)
}

// treesByName are its composite groups.
type treesByName map[string]*schedulingv1alpha3.CompositePodGroup

func (g treesByName) Get(_, name string) (*schedulingv1alpha3.CompositePodGroup, error) {
	if tree, ok := g[name]; ok {
		return tree, nil
	}
	return nil, fmt.Errorf("composite podgroup %s not found", name)
}

// add adds a composite group; parent may be empty.
func (g treesByName) add(name, parent string, all bool) {
	tree := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	tree.Spec.DisruptionMode = &schedulingv1alpha3.CompositeDisruptionMode{Single: &schedulingv1alpha3.SingleCompositeDisruptionMode{}}
	if all {
		tree.Spec.DisruptionMode = &schedulingv1alpha3.CompositeDisruptionMode{All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}
	}
	if parent != "" {
		tree.Spec.ParentCompositePodGroupName = &parent
	}
	g[name] = tree
}

func TestDisruptedWith(t *testing.T) {
	trees := treesByName{}
	trees.add("all", "", true)
	trees.add("single", "", false)
	trees.add("single-in-all", "all", false)
	trees.add("all-in-single", "single", true)
	trees.add("all-in-all", "all", true)
	trees.add("orphan", "gone", true)
	trees.add("own-parent", "own-parent", true)
	for parent, want := range map[string]string{
		"": "", "all": "all", "single": "", "single-in-all": "all", "all-in-single": "all-in-single", "all-in-all": "all", "orphan": "orphan", "own-parent": "own-parent", "gone": "",
	} {
		t.Run("part of "+parent, func(t *testing.T) {
			group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
			if parent != "" {
				group.Spec.ParentCompositePodGroupName = &parent
			}
			got := ""
			if tree := disruptedWith(group, groupsByName{"g": group}, trees); tree != nil {
				got = tree.Name
			}
			if got != want {
				t.Errorf("disrupted with %q, want %q", got, want)
			}
		})
	}
}

func TestDescribeCompositeGroup(t *testing.T) {
	u := Unit{Kind: Whole, Gang: compositeGroup + "ns/llama", Pods: []*corev1.Pod{podIn("ns", "a", 1), podIn("ns", "b", 1)}}
	if got, want := describe([]Unit{u}, audience.Reader{}), "composite group ns/llama (2 pods)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
