package volume

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// snapshotKind is the kind from which the volume of a claim may be restored. It is in files; of a cluster it is not read.
func snapshotKind() schema.GroupKind {
	return schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}
}

// restored finds that the volume of a claim is to be restored from a VolumeSnapshot that is not ready, or that there is none of the name. Its provisioner tries again until there is. It
// is nil where the snapshot is not seen and nothing is reported of it.
func restored(c *stage.Context, role placement.Role, claim *corev1.PersistentVolumeClaim) *stage.Finding {
	name, namespace := sourceOf(claim)
	if name == "" || !unprovisioned(claim) {
		return nil
	}
	report := ""
	if failed := recentFailure(c, claim); failed != nil && strings.Contains(failed.Message, name) {
		report = failed.Message
	}
	from := fmt.Sprintf("PersistentVolumeClaim %s is restored from VolumeSnapshot %s", claim.Name, name)
	s := snapshotOf(c, namespace, name)
	ready, failure := stateOf(s)
	switch {
	case s == nil && strings.Contains(report, "not found"):
		return noSource(c, about(c, role, claim.Name, claim, from+", which does not exist"), claim, name)
	case failure != "":
		f := about(c, role, claim.Name, claim, fmt.Sprintf("%s, which has failed: %s", from, failure))
		return noSource(c, f, claim, name).See("snapshot.storage.k8s.io/v1", "VolumeSnapshot", s, ".status.error")
	case s != nil && ready && !strings.Contains(report, notReady):
		return nil
	case s != nil && ready:
		return about(c, role, claim.Name, claim, from+", which is ready by now: its provisioner tries again").As(answer.Waiting, answer.Nobody)
	case s != nil:
		return about(c, role, claim.Name, claim, fmt.Sprintf("%s, which is not ready yet, %s after it was made", from, phrase.Age(c.View.Age(s.GetCreationTimestamp().Time)))).As(answer.Waiting, answer.Nobody).
			See("snapshot.storage.k8s.io/v1", "VolumeSnapshot", s, ".status.readyToUse").Fact("snapshot", name).
			Detail("the provisioner tries again until it is ready").Run(c.Kubectl("describe", "volumesnapshot", name))
	case strings.Contains(report, notReady):
		return about(c, role, claim.Name, claim, from+", which is not ready yet").As(answer.Waiting, answer.Nobody).Fact("snapshot", name).
			Detail("the provisioner tries again until it is ready").Run(c.Kubectl("describe", "volumesnapshot", name))
	}
	return nil
}

// notReady is how provisioners report that they cannot use a VolumeSnapshot yet.
const notReady = "is not Ready"

// sourceOf is the VolumeSnapshot that a claim names as what its volume is filled from; empty if it names none.
func sourceOf(claim *corev1.PersistentVolumeClaim) (name, namespace string) {
	group := snapshotKind().Group
	if ref := claim.Spec.DataSourceRef; ref != nil && ref.APIGroup != nil && *ref.APIGroup == group {
		if ref.Namespace != nil {
			return ref.Name, cmp.Or(*ref.Namespace, claim.Namespace)
		}
		return ref.Name, claim.Namespace
	}
	if ref := claim.Spec.DataSource; ref != nil && ref.APIGroup != nil && *ref.APIGroup == group {
		return ref.Name, claim.Namespace
	}
	return "", ""
}

// snapshotOf is a VolumeSnapshot; nil if it is not seen.
func snapshotOf(c *stage.Context, namespace, name string) *unstructured.Unstructured {
	return c.View.Object(snapshotKind(), namespace, name)
}

// stateOf is whether a VolumeSnapshot can be used, and what it reports that went wrong; empty if nothing did.
func stateOf(s *unstructured.Unstructured) (ready bool, failure string) {
	if s == nil {
		return false, ""
	}
	if ready, _, _ = unstructured.NestedBool(s.Object, "status", "readyToUse"); ready {
		return true, ""
	}
	failure, _, _ = unstructured.NestedString(s.Object, "status", "error", "message")
	return false, phrase.Shorten(failure, maxReport)
}

// maxReport is how much is shown of what a VolumeSnapshot reports: who may write it may write that.
const maxReport = 400

// noSource adds to a finding that a claim has nothing to be restored from that it needs a VolumeSnapshot that is ready.
func noSource(c *stage.Context, f *stage.Finding, claim *corev1.PersistentVolumeClaim, name string) *stage.Finding {
	desired, _, _ := classOf(c, claim)
	f.Fact("snapshot", name).Run(c.Kubectl("get", "volumesnapshots"))
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("make VolumeSnapshot %s again, or claim %s with another spec.dataSource", name, claim.Name), Cost: "the claim holds no data yet",
			Change: map[string]any{"claim": claim.Name, "snapshot": name}, Command: c.Kubectl("describe", "volumesnapshot", name)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, claim, desired) },
	})
}

// unprovisioned reports whether a claim has no volume, and may get one.
func unprovisioned(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && claim.Status.Phase != corev1.ClaimBound && claim.Status.Phase != corev1.ClaimLost
}

// recentFailure is the latest event by which a provisioner reports that it could not make the volume of a claim, if that still counts; nil without.
func recentFailure(c *stage.Context, claim *corev1.PersistentVolumeClaim) *view.Event {
	failed := stage.LatestEvent(eventsOf(c, claim), "ProvisioningFailed")
	if failed == nil || c.View.Age(failed.Last) >= provisioningFails {
		return nil
	}
	return failed
}
