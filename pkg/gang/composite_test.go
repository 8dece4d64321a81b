package gang

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// podGroup is a part with pods, of which the first have nodes.
func podGroup(name string, pods, bound int) Part {
	all := make([]*corev1.Pod, pods)
	for i := range all {
		all[i] = &corev1.Pod{}
		if i < bound {
			all[i].Spec.NodeName = "node"
		}
	}
	return GroupPart(name, int32(pods), all)
}

func tree(name string, minGroups int32, parts ...Part) Part {
	return CompositePart(&Composite{Name: name, MinGroups: minGroups, Parts: parts})
}

// What has to be placed together is what is needed at each level, less what has its nodes.
func TestPartsThatArePlacedTogether(t *testing.T) {
	first := tree("first", 1, podGroup("a", 2, 0), podGroup("b", 1, 0))
	for name, tt := range map[string]struct {
		tree Part
		of   string
		want []string
		only bool
	}{
		"all":                              {tree("root", 2, podGroup("a", 1, 0), podGroup("b", 1, 0)), "a", []string{"b"}, true},
		"one is enough":                    {tree("root", 1, podGroup("a", 1, 0), podGroup("b", 1, 0)), "a", nil, true},
		"the other has its nodes":          {tree("root", 2, podGroup("a", 1, 0), podGroup("b", 1, 1)), "a", nil, true},
		"the smallest of three":            {tree("root", 2, podGroup("a", 1, 0), podGroup("b", 3, 0), podGroup("c", 2, 0)), "a", []string{"c"}, false},
		"a part of a part":                 {tree("root", 2, first, podGroup("c", 3, 0)), "a", []string{"c"}, true},
		"the smallest of a part":           {tree("root", 2, first, podGroup("c", 3, 0)), "c", []string{"b"}, false},
		"a part that needs all":            {tree("root", 2, tree("first", 2, podGroup("a", 2, 0), podGroup("b", 1, 0)), podGroup("c", 3, 0)), "c", []string{"b", "a"}, true},
		"one that lacks pods may get them": {tree("root", 2, podGroup("a", 1, 0), podGroup("b", 2, 0), Part{Name: "c", Min: 1}), "a", []string{"b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			others, only := tt.tree.Composite.With(tt.of)
			var got []string
			for _, p := range others {
				got = append(got, p.Name)
			}
			if !slices.Equal(got, tt.want) || only != tt.only {
				t.Errorf("got %v, %v", got, only)
			}
		})
	}
}
