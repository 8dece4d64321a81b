package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

var (
	// ErrNoComposite is that a composite PodGroup does not exist.
	ErrNoComposite = errors.New("does not exist")
	// ErrNoRoot is that composite PodGroups are above themselves.
	ErrNoRoot = errors.New("is above itself")
	// ErrCompositesUnknown is that composite PodGroups are not served, or may not be read.
	ErrCompositesUnknown = errors.New("composite PodGroups are not known")
)

// mostLevels is how deep a tree of composite PodGroups is read. Users write it.
const mostLevels = 8

// CompositeOf returns the tree of which a PodGroup is a part, from its root. It is an error that wraps ErrNoComposite where one above the PodGroup does not
// exist, ErrNoRoot where none is the first, ErrCompositesUnknown where they are not known, and another where the tree is deeper than is read.
func (w *View) CompositeOf(d *gang.Declaration) (*gang.Composite, error) {
	if !w.Snap.Serves(native.Composites(), native.CompositeKind().Kind) || !w.Snap.CanList(native.Composites().String(), d.Key.Namespace) {
		return nil, ErrCompositesUnknown
	}
	name, above := types.NamespacedName{Namespace: d.Key.Namespace, Name: d.Parent}, map[string]bool{}
	for len(above) <= mostLevels {
		c, ok := w.composites().all[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("CompositePodGroup %s %w", name.Name, ErrNoComposite)
		case above[name.Name]:
			return nil, fmt.Errorf("CompositePodGroup %s %w", name.Name, ErrNoRoot)
		case c.Parent == "":
			return w.treeOf(name)
		}
		above[name.Name], name.Name = true, c.Parent
	}
	return nil, fmt.Errorf("CompositePodGroup %s has more than %d levels above it", d.Parent, mostLevels)
}

// compositeIndex finds composite PodGroups by their name, and what names one as its parent.
type compositeIndex struct {
	all   map[types.NamespacedName]gang.Composite
	parts map[types.NamespacedName]directParts
}

// directParts are the composite PodGroups, by name, and the PodGroups below one.
type directParts struct {
	composites []string
	groups     []gang.Declaration
}

// composites indexes composite PodGroups. One that cannot be read is as if it did not exist.
func (w *View) composites() compositeIndex {
	type ofSnapshot struct{}
	return Once(w, ofSnapshot{}, func() compositeIndex {
		index := compositeIndex{map[types.NamespacedName]gang.Composite{}, map[types.NamespacedName]directParts{}}
		add := func(namespace, parent string, to func(*directParts)) {
			if parent != "" {
				name := types.NamespacedName{Namespace: namespace, Name: parent}
				parts := index.parts[name]
				to(&parts)
				index.parts[name] = parts
			}
		}
		for _, u := range w.Snap.Custom[native.CompositeKind()] {
			name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
			c, err := native.DecodeComposite(u)
			if _, twice := index.all[name]; twice || err != nil {
				continue
			}
			index.all[name] = c
			add(name.Namespace, c.Parent, func(p *directParts) { p.composites = append(p.composites, c.Name) })
		}
		for _, d := range w.Groups() {
			add(d.Key.Namespace, d.Parent, func(p *directParts) { p.groups = append(p.groups, d) })
		}
		return index
	})
}

// treeOf is the tree below a composite PodGroup.
func (w *View) treeOf(root types.NamespacedName) (*gang.Composite, error) {
	type rootOf struct{ types.NamespacedName }
	type tree struct {
		*gang.Composite
		error
	}
	t := Once(w, rootOf{root}, func() tree {
		c, err := w.below(root, mostLevels)
		return tree{c, err}
	})
	return t.Composite, t.error
}

func (w *View) below(name types.NamespacedName, levels int) (*gang.Composite, error) {
	if levels == 0 {
		return nil, fmt.Errorf("there are more than %d levels of CompositePodGroups above %s", mostLevels, name.Name)
	}
	root := w.composites().all[name]
	c := &root
	parts := w.composites().parts[name]
	for _, part := range parts.composites {
		below, err := w.below(types.NamespacedName{Namespace: name.Namespace, Name: part}, levels-1)
		if err != nil {
			return nil, err
		}
		c.Parts = append(c.Parts, gang.CompositePart(below))
	}
	for _, d := range parts.groups {
		c.Parts = append(c.Parts, gang.GroupPart(d.Key.Name, d.MinMember, w.GroupPods(d)))
	}
	slices.SortStableFunc(c.Parts, func(a, b gang.Part) int { return cmp.Compare(a.Name, b.Name) })
	return c, nil
}

// Parts are the PodGroups that name the same parent as a PodGroup.
func (w *View) Parts(d *gang.Declaration) (parts []gang.Part) {
	for _, one := range w.composites().parts[types.NamespacedName{Namespace: d.Key.Namespace, Name: d.Parent}].groups {
		parts = append(parts, gang.GroupPart(one.Key.Name, one.MinMember, w.GroupPods(one)))
	}
	return parts
}

// Alongside are the gangs with which a scheduler places one at once, each with the pods that name it. One that is declared by its pods has the minimum that these state; one that
// neither an object nor a pod declares has none.
func (w *View) Alongside(d *gang.Declaration) (parts []gang.Part) {
	for _, key := range d.Alongside {
		least := int32(0)
		if group := w.Group(key); group != nil {
			least = max(1, group.MinMember)
		} else if reader, known := dialect.ReaderOf(key.Dialect); known && reader.FromPods != nil && len(w.naming(key)) > 0 {
			if declared, err := reader.FromPods(key, w.naming(key)); err == nil {
				least = declared.MinMember
			}
		}
		parts = append(parts, gang.GroupPart(key.Name, least, w.naming(key)))
	}
	return parts
}

// GangOf returns the gang of a part that is a group of a dialect; nil without pods, or where its pods are only some of a gang.
func (w *View) GangOf(of gang.Dialect, p gang.Part) *gang.Gang {
	if len(p.Pods) == 0 {
		return nil
	}
	job := w.byIdentity()[w.root(p.Pods[0])]
	if job == nil {
		job = w.bare(p.Pods[0])
	}
	for _, g := range w.Gangs(job) {
		if g.Decl != nil && g.Decl.Key.Dialect == of && g.Decl.Key.Name == p.Name {
			return g
		}
	}
	return nil
}
