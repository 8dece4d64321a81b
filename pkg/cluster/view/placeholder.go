package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Placeholders are the pods by which YuniKorn keeps room on nodes for the members of a gang: each gives way to one of them.
func (w *View) Placeholders(g *gang.Gang) []*corev1.Pod {
	if g.Named.Dialect != gang.YuniKorn {
		return nil
	}
	type placeholders struct{}
	return Once(w, placeholders{}, func() map[gang.Key][]*corev1.Pod {
		all := map[gang.Key][]*corev1.Pod{}
		for _, pod := range w.Snap.Pods {
			if name, ok := yunikorn.Placeholder(pod); ok && placement.Holds(pod) {
				key := gang.Key{Dialect: gang.YuniKorn, Namespace: pod.Namespace, Name: name}
				all[key] = append(all[key], pod)
			}
		}
		return all
	})[g.Named]
}

// holdsFor is what owns the members for which a placeholder of YuniKorn keeps room; ok is false for any other pod, and where no member exists.
func (w *View) holdsFor(pod *corev1.Pod, owners map[gang.Identity]owner) (root owner, ok bool) {
	name, is := yunikorn.Placeholder(pod)
	if !is {
		return owner{}, false
	}
	members := w.referring(gang.YuniKorn)[gang.Key{Dialect: gang.YuniKorn, Namespace: pod.Namespace, Name: name}]
	if len(members) == 0 {
		return owner{}, false
	}
	return rootOf(members[0], owners), true
}
