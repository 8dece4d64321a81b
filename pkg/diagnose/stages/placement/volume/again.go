package volume

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// again is a claim that is made again, without the volume that it names: who makes its volume then, or which one is free for it.
type again struct {
	c     *stage.Context
	claim *corev1.PersistentVolumeClaim
	// class is the one that it names or gets by default, nil where there is none of the name; desired is that name.
	class   *storagev1.StorageClass
	desired string
	// free is a volume that exists; nil if none fits.
	free *corev1.PersistentVolume
}

func makeAgain(c *stage.Context, claim *corev1.PersistentVolumeClaim, desired string, class *storagev1.StorageClass) again {
	return again{c, claim, class, desired, freeVolume(c, claim, desired)}
}

// provisioned reports whether a volume is made for the claim.
func (a again) provisioned() bool { return a.class != nil && a.class.Provisioner != noProvisioner }

// works reports whether there is a volume for the claim then.
func (a again) works() bool { return a.provisioned() || a.free != nil }

// command makes the claim again. One that something makes for a pod is only deleted: it comes again by itself.
func (a again) command(further ...command.Patch) string {
	if metav1.GetControllerOfNoCopy(a.claim) != nil || claimMaker(a.c.Gang, a.claim.Name) != "" {
		return a.c.Kubectl("delete", "pvc", a.claim.Name)
	}
	steps := further
	if a.claim.Spec.VolumeName != "" {
		steps = append(steps, command.Patch{Op: "remove", Path: "/spec/volumeName"})
	}
	for _, key := range []string{storage.AnnBindCompleted, storage.AnnBoundByController, storage.AnnSelectedNode} {
		if _, ok := a.claim.Annotations[key]; ok {
			steps = append(steps, command.Patch{Op: "remove", Path: command.Pointer([]string{"metadata", "annotations", key})})
		}
	}
	return command.Recreate(a.claim.Namespace, "pvc", a.claim.Name, steps...)
}

// in is the cluster in which the claim was made again, and has the volume that is made for it, or the one that is free.
func (a again) in(s *snapshot.Snapshot) *snapshot.Snapshot {
	n := bindClaim(s, a.claim, a.desired)
	if !a.provisioned() && a.free != nil {
		made := n.Volumes[len(n.Volumes)-1]
		made.Spec.NodeAffinity, made.Labels = a.free.Spec.NodeAffinity, a.free.Labels
	}
	return n
}

// fix is the user's way to a claim that has a volume.
func (a again) fix(text, cost string, further ...command.Patch) stage.Fix {
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: text, Cost: cost, Change: map[string]any{"claim": a.claim.Name}, Command: a.command(further...)},
		Apply:  a.in,
	}
}

// newVolume has an administrator make a volume, which is an object of the whole cluster; then, what the user has to do with the claim, if anything.
func (a again) newVolume(f *stage.Finding, then string) *stage.Finding {
	what := "PersistentVolume"
	if a.desired != "" {
		what += " of class " + a.desired
	}
	x := answer.Action{Kind: answer.Fix, By: answer.Admin, Text: fmt.Sprintf("create a %s for claim %s%s", what, a.claim.Name, then), Change: map[string]any{"claim": a.claim.Name}, Command: a.c.Kubectl("describe", "pvc", a.claim.Name)}
	if then != "" {
		x.Command = a.command()
		x.How = "the PersistentVolume first, on a node that is there"
	}
	return f.As(answer.Blocked, answer.Admin).Fix(stage.Fix{Action: x, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, a.claim, a.desired) }})
}

// freeVolume is a volume that exists and that a claim could be bound to, other than the one that it names; nil if there is none.
func freeVolume(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) *corev1.PersistentVolume {
	i := slices.IndexFunc(c.View.Snap.Volumes, func(v *corev1.PersistentVolume) bool {
		return v.Name != claim.Spec.VolumeName && !taken(v, claim) && suits(v, claim, class) && reached(c, v)
	})
	if i < 0 {
		return nil
	}
	return c.View.Snap.Volumes[i]
}

// reached reports whether a volume is where there is a node.
func reached(c *stage.Context, v *corev1.PersistentVolume) bool {
	terms := volumeTerms(v)
	if len(terms) == 0 {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms})
	return err != nil || slices.ContainsFunc(c.Cluster().Nodes(), selector.Match)
}
