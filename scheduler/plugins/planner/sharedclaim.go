package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// A claim that waits for its first consumer gets its volume for the node of the pod that is placed first, and until it has it the engine refuses
// every other node. Members that share one from several nodes could never be placed together. So where the plan of a gang has that, and several
// nodes may attach the volume, it is made first, for one of the planned nodes, by the annotation that the engine writes for a pod. No member has a node
// meanwhile. The gang is tried again when the volume is there.

// provision is a volume to be made for a claim, and the node for which.
type provision struct {
	claim types.NamespacedName
	node  string
}

// unprovisioned are the claims without a volume that members share from several of their nodes.
func (q *query) unprovisioned(nodes map[types.UID]string) []provision {
	if !q.members.refersToClaims {
		return nil
	}
	first, several := map[string]string{}, map[string]bool{}
	for _, pod := range slices.Concat(q.members.pods...) {
		node := nodes[pod.UID]
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil || node == "" {
				continue
			}
			name := v.PersistentVolumeClaim.ClaimName
			if first[name] == "" {
				first[name] = node
			}
			if first[name] != node {
				several[name] = true
			}
		}
	}
	var all []provision
	for _, name := range slices.Sorted(maps.Keys(several)) {
		if claim := q.claim(q.cycle.group.Namespace, name); claim != nil && q.isMadeForFirst(claim, first[name]) {
			all = append(all, provision{types.NamespacedName{Namespace: claim.Namespace, Name: name}, first[name]})
		}
	}
	return all
}

// beingProvisioned are the claims of members whose volume is being made for a node, and that other nodes may attach, too.
func (q *query) beingProvisioned() []provision {
	if !q.members.refersToClaims {
		return nil
	}
	var all []provision
	for _, pod := range q.members.examples() {
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim := q.claim(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
			if claim == nil || claim.Spec.VolumeName != "" || !placement.SeveralNodes(claim) {
				continue
			}
			if node := placement.SelectedNode(claim); node != "" {
				all = append(all, provision{types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, node})
			}
		}
	}
	return all
}

// claim is a claim as the engine's informer has it; nil if there is none.
func (q *query) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, err := q.plugin.handle.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return nil // the engine refuses its pods
	}
	return claim
}

// isMadeForFirst reports whether a claim gets a volume that is made when the first pod that uses it has a node, and that other nodes may attach.
func (q *query) isMadeForFirst(claim *corev1.PersistentVolumeClaim, node string) bool {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Annotations[volume.AnnSelectedNode] != "" || !placement.SeveralNodes(claim) {
		return false
	}
	factory, name := q.plugin.handle.SharedInformerFactory(), volume.GetPersistentVolumeClaimClass(claim)
	class, err := factory.Storage().V1().StorageClasses().Lister().Get(name)
	if err != nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer ||
		class.Provisioner == "" || class.Provisioner == volume.NotSupportedProvisioner {
		return false
	}
	info, err := q.plugin.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return false
	}
	volumes, err := factory.Core().V1().PersistentVolumes().Lister().List(labels.Everything())
	if err != nil {
		return false
	}
	offered := slices.DeleteFunc(slices.Clone(volumes), func(pv *corev1.PersistentVolume) bool { return volume.GetPersistentVolumeClass(pv) != name })
	existing, err := volume.FindMatchingVolume(claim, offered, info.Node(), nil, true, true)
	return err == nil && existing == nil // a volume that is there the engine takes for all members
}

// waitsForVolumes is the verdict on a gang that has a place as soon as claims have their volumes. Wanted are those that are to be made.
func (q *query) waitsForVolumes(all, wanted []provision) *verdict {
	v := q.blank()
	v.waitsForVolumes, v.provisions = true, wanted
	v.reason = &reasons.Reason{
		Finding: answer.Finding{
			Code: answer.PVCUnbound, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody,
			Message: fmt.Sprintf("PersistentVolumeClaim %s, which its members share, has no volume yet: it is being provisioned for node %s", all[0].claim.Name, all[0].node),
		},
		Required: q.gang.MinMember, Fit: v.bound,
	}
	q.addContext(v)
	return v
}

// WaitsForVolumes reports whether the gang under way has a place as soon as its volumes are made: nothing has to make room for it, least of all on the node for
// which one is being made.
func (p *Planner) WaitsForVolumes(group types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current != nil && p.current.group == group && p.current.verdict != nil && p.current.verdict.waitsForVolumes
}

// provisioner has volumes made for claims, alongside the engine: an API server that is slow over one claim keeps no other gang waiting.
type provisioner struct {
	handle *engine.Handle
	queue  workqueue.TypedRateLimitingInterface[provision]
}

func newProvisioner(handle *engine.Handle) *provisioner {
	return &provisioner{handle: handle, queue: engine.NewRetryQueue(func(p provision) string { return p.claim.Namespace })}
}

// maxProvisionAttempts is how often a claim is tried in a row. The gang is tried again after its retryPeriod, and may have another plan then.
const maxProvisionAttempts = 5

// run writes until ctx ends.
func (w *provisioner) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	for {
		p, ended := w.queue.Get()
		if ended {
			return
		}
		err := w.provision(ctx, p)
		if err != nil && w.queue.NumRequeues(p) < maxProvisionAttempts {
			w.queue.AddRateLimited(p)
		} else {
			w.queue.Forget(p)
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot have a volume made for members that share it", "persistentVolumeClaim", p.claim, "node", p.node)
		}
		w.queue.Done(p)
	}
}

// provision annotates a claim with the node for which its volume is to be made, unless it has changed since it was read.
func (w *provisioner) provision(ctx context.Context, p provision) error {
	framework := w.handle.Framework()
	claim, err := framework.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(p.claim.Namespace).Get(p.claim.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get PersistentVolumeClaim %s: %w", p.claim, err)
	}
	if claim.Spec.VolumeName != "" || claim.Annotations[volume.AnnSelectedNode] != "" {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": claim.ResourceVersion, "uid": claim.UID, "annotations": map[string]any{volume.AnnSelectedNode: p.node},
	}})
	if err != nil {
		return fmt.Errorf("patch PersistentVolumeClaim %s: %w", p.claim, err)
	}
	_, err = framework.ClientSet().CoreV1().PersistentVolumeClaims(p.claim.Namespace).Patch(ctx, p.claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch PersistentVolumeClaim %s: %w", p.claim, err)
	}
	return nil
}
