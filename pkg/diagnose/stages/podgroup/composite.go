package podgroup

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

// composite finds that the PodGroup is a part of a composite one that does not exist, or of which too few parts have their pods: the scheduler tries no part
// before.
func composite(c *stage.Context, out *stage.Result) {
	d := c.Gang.Decl
	if d.Parent == "" {
		return
	}
	out.Denied(c, native.Composites().String(), d.Key.Namespace)
	root, err := c.View.CompositeOf(d)
	switch {
	case errors.Is(err, view.ErrNoComposite) || errors.Is(err, view.ErrNoRoot):
		out.Add(stage.Found(answer.PodGroupMissing, "PodGroup %s is a part of a composite one, and %s: the scheduler tries no part before", d.Key.Name, err).
			Fact("composite", d.Parent).Run(c.Kubectl("get", native.Composites().String())))
	case err != nil:
		if !errors.Is(err, view.ErrCompositesUnknown) {
			out.Note("%s", err)
		}
		out.Unmodelled = append(out.Unmodelled, "gangs that are placed together with this one in CompositePodGroup "+d.Parent)
	case !othersFind(c) && !out.Has(answer.BelowQuorum, answer.MinMemberTooHigh):
		incomplete(c, root, out)
	}
}

// incomplete finds that too few parts of a tree have pods that the scheduler may try.
func incomplete(c *stage.Context, root *gang.Composite, out *stage.Result) {
	short, complete := root, root.Complete()
	if complete >= root.MinGroups {
		return
	}
	lacking := func(p gang.Part) bool { return !p.Complete() }
	for { // where the lack begins, if that is in one part
		i := slices.IndexFunc(short.Parts, lacking)
		if i < 0 || short.Parts[i].Composite == nil || slices.ContainsFunc(short.Parts[i+1:], lacking) || int(short.MinGroups) > len(short.Parts) {
			break
		}
		short = short.Parts[i].Composite
		complete = short.Complete()
	}
	f := stage.Found(answer.BelowQuorum, "CompositePodGroup %s needs %s, and %d of its %d %s enough pods that may be scheduled: no part of %s is tried before",
		short.Name, phrase.Count(short.MinGroups, "part"), complete, len(short.Parts), phrase.Verb(int(complete), "has", "have"), root.Name).
		Fact("composite", short.Name).Fact("exist", complete).Fact("needed", short.MinGroups)
	var lacks []string
	for _, p := range short.Parts {
		if !p.Complete() {
			lacks = append(lacks, lack(p))
		}
	}
	if len(lacks) > 0 {
		f.Detail("%s", phrase.Names(lacks))
	}
	out.Add(f.Run(c.Kubectl("get", "pods,podgroups."+native.Group+","+native.Composites().String())))
}

// lack is what a part lacks.
func lack(p gang.Part) string {
	switch {
	case p.Composite != nil:
		return fmt.Sprintf("CompositePodGroup %s has %d of %s that it needs", p.Name, p.Composite.Complete(), phrase.Count(p.Composite.MinGroups, "part"))
	case len(p.Pods) > int(p.Queued):
		return fmt.Sprintf("PodGroup %s has %d of %s that it needs, and %d with scheduling gates", p.Name, p.Queued, phrase.Count(p.Min, "pod"), len(p.Pods)-int(p.Queued))
	}
	return fmt.Sprintf("PodGroup %s has %d of %s that it needs", p.Name, p.Queued, phrase.Count(p.Min, "pod"))
}
