package placement

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"github.com/gangctl/gangctl/pkg/gang"
)

// claim is a PersistentVolumeClaim that a pod uses.
type claim struct {
	pvc     *corev1.PersistentVolumeClaim // nil if it does not exist
	pv      *corev1.PersistentVolume      // the bound volume; nil if the claim waits for its first consumer
	class   *storagev1.StorageClass       // of an unbound claim
	problem string                        // why no pod can use it now
	planned bool                          // it does not exist yet
	own     bool                          // it is of this pod alone, made from a template in the pod
}

// claims looks up the claims of a pod. A generic ephemeral claim that does not exist yet is as in its template.
func (c *Cluster) claims(pod *corev1.Pod) []claim {
	var out []claim
	for i := range pod.Spec.Volumes {
		if k, ok := c.claimOf(pod, &pod.Spec.Volumes[i]); ok {
			out = append(out, k)
		}
	}
	return out
}

// VolumeLabelKeys are the labels by which the volumes of a pod choose nodes, those that are there and those that are made for it.
func (c *Cluster) VolumeLabelKeys(pod *corev1.Pod) (keys []string) {
	for _, k := range c.claims(pod) {
		if k.pv != nil && k.pv.Spec.NodeAffinity != nil && k.pv.Spec.NodeAffinity.Required != nil {
			for _, term := range k.pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
				for _, e := range term.MatchExpressions {
					keys = append(keys, e.Key)
				}
			}
		}
		if k.pv == nil && k.class != nil {
			for _, term := range k.class.AllowedTopologies {
				for _, e := range term.MatchLabelExpressions {
					keys = append(keys, e.Key)
				}
			}
		}
	}
	return keys
}

// pvc returns a claim by name, nil if there is none.
func (c *Cluster) pvc(namespace, name string) *corev1.PersistentVolumeClaim {
	return c.volumes().claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// VolumeClaimName is the claim of a volume of a pod: one of its namespace, or the pod's own; empty for a volume without one.
func VolumeClaimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// claimOf looks up the claim of one volume of a pod; ok is false for a volume without one.
func (c *Cluster) claimOf(pod *corev1.Pod, v *corev1.Volume) (k claim, ok bool) {
	switch {
	case v.PersistentVolumeClaim != nil:
		name := v.PersistentVolumeClaim.ClaimName
		return c.claim(name, c.pvc(pod.Namespace, name)), true
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		name := ephemeral.VolumeClaimName(pod, v)
		if pvc := c.pvc(pod.Namespace, name); pvc != nil {
			k = c.claim(name, pvc)
		} else {
			k = c.plan(name, pod.Namespace, v.Ephemeral.VolumeClaimTemplate.Spec)
		}
		k.own = true
		return k, true
	}
	return claim{}, false
}

// ClaimProblem is why no pod can use the claim of a volume of a pod now, on any node; empty if pods can, and for a volume without a claim.
func (c *Cluster) ClaimProblem(pod *corev1.Pod, v *corev1.Volume) string {
	k, _ := c.claimOf(pod, v)
	return k.problem
}

// plan judges a claim that will be made when its pod is there: of the default StorageClass if it names none. With a StorageClass that does
// not wait for a consumer it will have a volume by the time the pod is placed.
func (c *Cluster) plan(name, namespace string, spec corev1.PersistentVolumeClaimSpec) claim {
	pvc := &corev1.PersistentVolumeClaim{Spec: *spec.DeepCopy()}
	pvc.Namespace, pvc.Name = namespace, name
	if spec.StorageClassName == nil {
		pvc.Spec.StorageClassName = c.objects.defaultClass()
	}
	k := c.claim(name, pvc)
	k.planned = true
	if k.class != nil && k.class.Provisioner != volume.NotSupportedProvisioner {
		k.problem = ""
	}
	return k
}

// DefaultStorageClass is the class that claims get which name none: the newest of those that are annotated as the default one, and of several of one time the first by name. It is nil
// if there is none.
func DefaultStorageClass(classes []*storagev1.StorageClass) (best *storagev1.StorageClass) {
	for _, class := range classes {
		if !storageutil.IsDefaultAnnotation(class.ObjectMeta) {
			continue
		}
		if best == nil || cmp.Or(class.CreationTimestamp.Compare(best.CreationTimestamp.Time), strings.Compare(best.Name, class.Name)) > 0 {
			best = class
		}
	}
	return best
}

// defaultClass is the name of the default StorageClass; nil if there is none.
func (o *Objects) defaultClass() *string {
	best := DefaultStorageClass(o.StorageClasses)
	if best == nil {
		return nil
	}
	return &best.Name
}

// claim judges a claim as the volume binding plugin does before it looks at nodes.
func (c *Cluster) claim(name string, pvc *corev1.PersistentVolumeClaim) claim {
	k := claim{pvc: pvc}
	switch {
	case pvc == nil:
		k.problem = fmt.Sprintf("claim %s not found", name)
	case pvc.Status.Phase == corev1.ClaimLost:
		k.problem = fmt.Sprintf("claim %s has lost its volume %s", name, pvc.Spec.VolumeName)
	case pvc.DeletionTimestamp != nil:
		k.problem = fmt.Sprintf("claim %s is being deleted", name)
	case pvc.Spec.VolumeName != "":
		k.pv = c.volumes().named[pvc.Spec.VolumeName]
		_, completed := pvc.Annotations[volume.AnnBindCompleted]
		switch {
		case k.pv == nil:
			k.problem = fmt.Sprintf("volume %s of claim %s not found", pvc.Spec.VolumeName, name)
		case !completed && pvc.Status.Phase != corev1.ClaimBound:
			k.problem = fmt.Sprintf("claim %s is not bound to volume %s yet", name, pvc.Spec.VolumeName)
		}
	default:
		class := volume.GetPersistentVolumeClaimClass(pvc)
		k.class = gang.Named(c.objects.StorageClasses, "", class)
		switch {
		case class == "":
			k.problem = fmt.Sprintf("claim %s is unbound and names no StorageClass", name)
		case k.class == nil:
			k.problem = fmt.Sprintf("StorageClass %s of claim %s not found", class, name)
		case k.class.VolumeBindingMode == nil || *k.class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
			k.problem = fmt.Sprintf("claim %s is unbound", name)
		}
	}
	return k
}

// claimCheck rejects every node if a claim of the pod cannot be used at all.
func claimCheck(c *Cluster, pod *corev1.Pod) check {
	var problems []string
	for _, k := range c.claims(pod) {
		if k.problem != "" {
			problems = append(problems, k.problem)
		}
	}
	for _, key := range sets.List(c.exclusiveClaims(pod)) {
		if (snapshot{c: c}).IsPVCUsedByPods(key) {
			problems = append(problems, fmt.Sprintf("ReadWriteOncePod claim %s is in use", strings.TrimPrefix(key, pod.Namespace+"/")))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	found := []Violation{{Constraint: VolumeClaim, Detail: strings.Join(problems, "; ")}}
	return func(*node) []Violation { return found }
}

// exclusiveClaims returns the ReadWriteOncePod claims of a pod, as namespace/name.
func (c *Cluster) exclusiveClaims(pod *corev1.Pod) sets.Set[string] {
	out := sets.New[string]()
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		pvc := c.pvc(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if pvc != nil && slices.Contains(pvc.Spec.AccessModes, corev1.ReadWriteOncePod) {
			out.Insert(pvc.Namespace + "/" + pvc.Name)
		}
	}
	return out
}

// volumeZoneCheck rejects nodes in another zone or region than a bound volume.
func volumeZoneCheck(c *Cluster, pod *corev1.Pod) check {
	claims := c.claims(pod)
	if c.volumes().anywhere(claims) {
		return nil
	}
	var byLabel func(*node) string
	if claimCheck(c, pod) == nil { // else the plugin rejects the pod for that
		_, features := c.store.get(c.objects)
		byLabel = c.filterFor(mustFilter(volumezone.New(context.Background(), nil, c.handle(), features)), pod)
	}
	return c.oncePerNode(fmt.Sprint("zone ", byLabel != nil), claims, func(n *node) []Violation {
		for _, k := range claims {
			if k.pv != nil && zonal(k.pv) && volume.CheckNodeAffinity(k.pv, n.obj.Labels) != nil {
				return []Violation{{Constraint: VolumeZone, Detail: "claim " + k.pvc.Name + " is bound to volume " + k.pv.Name + inZones(k.pv)}}
			}
		}
		if byLabel != nil {
			if reason := byLabel(n); reason != "" {
				return []Violation{{Constraint: VolumeZone, Detail: reason}}
			}
		}
		return nil
	})
}

// inZones names the zones of a zonal volume, or its regions where it has no zones. It reads like: in z1, with a space before it.
func inZones(pv *corev1.PersistentVolume) string {
	var zones, values []string
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			switch {
			case e.Operator != corev1.NodeSelectorOpIn:
			case strings.HasSuffix(e.Key, "/zone"):
				zones = append(zones, e.Values...)
			default:
				values = append(values, e.Values...)
			}
		}
	}
	if len(zones) > 0 {
		values = zones
	}
	const most = 3 // a volume is in one, or copied to another
	switch {
	case len(values) == 0:
		return ""
	case len(values) > most:
		values = append(values[:most:most], "…")
	}
	return " in " + strings.Join(values, " or ")
}

// zonal reports whether a volume's node affinity is only about zones and regions.
func zonal(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	found := false
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if !strings.HasSuffix(e.Key, "/zone") && !strings.HasSuffix(e.Key, "/region") {
				return false
			}
			found = true
		}
	}
	return found
}

// volumeNodeCheck rejects nodes from which a bound volume cannot be reached, or for which an unbound one cannot be had.
func volumeNodeCheck(c *Cluster, pod *corev1.Pod) check {
	claims := c.claims(pod)
	if c.volumes().anywhere(claims) {
		return diskCheck(c, pod)
	}
	disks, reach := diskCheck(c, pod), map[*corev1.PersistentVolume]func(*corev1.Node) bool{}
	for _, k := range claims {
		if k.pv != nil && !zonal(k.pv) {
			reach[k.pv] = reaches(k.pv)
		}
	}
	places := c.oncePerNode(fmt.Sprint("node ", c.anyStorage), claims, func(n *node) []Violation {
		taken := map[string]*corev1.PersistentVolume{}
		for _, k := range claims {
			reason := ""
			switch {
			case k.problem != "":
			case k.pv != nil:
				if from := reach[k.pv]; from != nil && !from(n.obj) {
					reason = "is bound to volume " + k.pv.Name
				}
			default:
				reason = c.provisionable(k, n.obj, taken)
			}
			if reason != "" {
				return []Violation{{Constraint: VolumeNode, Detail: "claim " + k.pvc.Name + " " + reason}}
			}
		}
		return nil
	})
	return func(n *node) []Violation {
		if found := places(n); found != nil || disks == nil {
			return found
		}
		return disks(n)
	}
}

// oncePerNode is a check of some claims that looks at nothing but the node object: on the many clusters that are made of one it is made once for each.
func (c *Cluster) oncePerNode(what string, claims []claim, look check) check {
	if c.index != nil { // whose objects outlive their nodes
		return look
	}
	key := what
	for _, k := range claims {
		key += fmt.Sprintf("\n%q", k.problem)
		if k.pvc == nil {
			continue
		}
		key += k.pvc.Namespace + "/" + k.pvc.Name
		if k.planned { // which objects do not have
			spec, err := json.Marshal(k.pvc.Spec)
			if err != nil {
				return look
			}
			key += string(spec)
		}
	}
	known := c.store.looksFor(key)
	return func(n *node) []Violation {
		return known.of(n.obj, func() []Violation { return look(n) })
	}
}

// reaches returns whether a volume can be reached from a node, by its affinity to labels of nodes. It is read once for all nodes.
func reaches(pv *corev1.PersistentVolume) func(*corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return func(*corev1.Node) bool { return true }
	}
	terms := pv.Spec.NodeAffinity.Required
	selector, err := nodeaffinity.NewNodeSelector(terms)
	if err != nil || slices.ContainsFunc(terms.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }) {
		return func(n *corev1.Node) bool { return volume.CheckNodeAffinity(pv, n.Labels) == nil }
	}
	return selector.Match
}

// provisionable is why an unbound claim can get no volume on a node; empty if it can. taken are volumes that other claims of the pod would
// get.
func (c *Cluster) provisionable(k claim, n *corev1.Node, taken map[string]*corev1.PersistentVolume) string {
	selected, already := k.pvc.Annotations[volume.AnnSelectedNode]
	if already && selected != n.Name {
		return "is being provisioned for node " + selected
	}
	if !already {
		if pv, err := volume.FindMatchingVolume(k.pvc, c.volumes().offered[k.class.Name].to(k.pvc, n), n, taken, true, true); err == nil && pv != nil {
			taken[pv.Name] = pv
			return ""
		}
	}
	if k.class.Provisioner == "" || k.class.Provisioner == volume.NotSupportedProvisioner {
		return "finds no volume of class " + k.class.Name
	}
	if !v1helper.MatchTopologySelectorTerms(k.class.AllowedTopologies, labels.Set(n.Labels)) {
		return "of class " + k.class.Name + " may not be provisioned there"
	}
	if already {
		return ""
	}
	return c.lacksCapacity(k, n)
}

// diskCheck rejects nodes on which another pod has mounted a disk that only one may.
func diskCheck(c *Cluster, pod *corev1.Pod) check {
	inline := false
	for _, v := range pod.Spec.Volumes {
		inline = inline || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
	}
	if !inline {
		return nil
	}
	_, features := c.store.get(c.objects)
	only := *pod
	only.Spec.Volumes = nil
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil { // these are judged by usable
			only.Spec.Volumes = append(only.Spec.Volumes, v)
		}
	}
	return checkOf(VolumeNode, c.filterFor(mustFilter(volumerestrictions.New(context.Background(), nil, c.handle(), features)), &only))
}

func hasEphemeral(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}
