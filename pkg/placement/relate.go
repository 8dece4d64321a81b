package placement

import (
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// relate finds out what members do to each other: on a node (near), across nodes (far), and nothing for most gangs.
func (t *task) relate() {
	infos := make([]*framework.PodInfo, len(t.classes))
	for i := range t.classes {
		infos[i] = podInfo(t.classes[i].rules.pod)
	}
	t.shareDevices()
	t.relatePorts()
	t.relateDisks()
	t.shareVolumes()
	f := &far{t: t, keyIndex: map[string]int{}, affinity: make([]*affinityRule, len(t.classes)), spread: make([][]*spreadRule, len(t.classes))}
	f.relateClaims()
	if !t.opts.Ignore.Has(PodAntiAffinity) {
		for a := range infos {
			for _, term := range infos[a].RequiredAntiAffinityTerms {
				for b := range infos {
					if t.matches(term, b) {
						f.keepApart(term.TopologyKey, a, b)
					}
				}
			}
		}
	}
	for i := range infos {
		f.relateAffinity(infos, i)
		f.relateSpread(i)
	}
	f.settle(infos)
	if !f.empty() {
		t.far = f
	}
}

// matches tells whether an affinity term selects the members of a class.
func (t *task) matches(term fwk.AffinityTerm, i int) bool {
	pod := t.classes[i].rules.pod
	return term.Matches(pod, t.c.namespaceLabels(pod.Namespace))
}

// namespaceLabels returns the labels of a namespace, nil if it is not known.
func (c *Cluster) namespaceLabels(name string) labels.Set {
	for _, ns := range c.objects.Namespaces {
		if ns.Name == name {
			return ns.Labels
		}
	}
	return nil
}

// keepApart records required anti-affinity between two classes: on a node if the key tells nodes apart, else across nodes.
func (f *far) keepApart(key string, a, b int) {
	if f.t.c.tellsNodesApart(key) {
		f.t.near = append(f.t.near, nearRule{key: key, a: a, b: b, word: PodAntiAffinity})
		return
	}
	f.apart = append(f.apart, apartRule{f.key(key), a, b, PodAntiAffinity})
}
