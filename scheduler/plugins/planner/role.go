package planner

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// memberRoles are the members that an attempt is to place, by role.
type memberRoles struct {
	roles []placement.Role
	pods  [][]*corev1.Pod // by role, in the order in which they were given
	// terms are those of each role, and selected the labels by which rules distinguish members.
	terms    []terms
	selected func(label string) bool
	// interPod: members have inter-pod affinity or spread constraints; namespaced: they, or pods with anti-affinity that are there, have terms with
	// namespace selectors; refersToClaims: members have volume or resource claims, or name disks; refersToDevices: they have resource claims.
	interPod, namespaced, refersToClaims, refersToDevices bool
	// prefers: members have preferred affinity or spread.
	prefers bool
}

// rolesOf groups members that no rule of the engine distinguishes. Labels count only where a selector of a member, of another pod's
// required anti-affinity, or a rule for parts of the gang reads them: operators give each pod an index label. Those that have volumes of their own are alike where
// these are to be had on the same nodes, by volumes.
func rolesOf(members []*corev1.Pod, topology gang.Topology, others *placement.AntiAffinity, claims claimGetter, volumes ownVolume) (*memberRoles, error) {
	p := &memberRoles{namespaced: others.ReadsNamespaces()}
	keys, parts := sets.New[string](), topology.Divide()
	for _, m := range members {
		p.inspect(m)
		placement.AddSelectedLabels(keys, m)
	}
	p.selected = func(key string) bool { return keys.Has(key) || others.Reads(key) }
	at := map[string]int{} // roles by signature, once there are more than few
	for _, m := range members {
		own, err := ownClaims(m, claims, volumes)
		if err != nil {
			return nil, fmt.Errorf("compare pod %s/%s: %w", m.Namespace, m.Name, err)
		}
		of := terms{m.Labels[kubeflowv1.ReplicaTypeLabel], m.Spec.SchedulerName, own, parts(m)}
		i, known := p.recent(m, of)
		if !known && len(p.roles) >= few {
			if i, known, err = p.bySignature(m, of, at); err != nil {
				return nil, fmt.Errorf("compare pod %s/%s: %w", m.Namespace, m.Name, err)
			}
		}
		if !known {
			i = len(p.roles)
			p.roles = append(p.roles, placement.Role{Name: p.name(m), Pod: m})
			p.pods, p.terms = append(p.pods, nil), append(p.terms, of)
		}
		p.roles[i].Count++
		p.pods[i] = append(p.pods[i], m)
	}
	return p, nil
}

// terms are what distinguishes members besides the rules of their pods: their names in explanations, schedulers, claims of their own, and parts.
type terms struct{ replicaType, scheduler, own, part string }

// signature returns a key that is equal for pods that the engine's filters do not distinguish, and that have one name in explanations.
func (t terms) signature(pod *corev1.Pod, selected func(key string) bool) (string, error) {
	rules, err := placement.Signature(pod, selected)
	return strings.Join([]string{t.replicaType, t.scheduler, t.own, rules}, "/") + t.part, err
}

// few is with how many roles a member is compared: most gangs have one or two, and that is cheaper than to write down what it requires.
const few = 4

// recent returns the role of a member, if it is one of the last few.
func (p *memberRoles) recent(pod *corev1.Pod, of terms) (i int, ok bool) {
	for i := len(p.roles) - 1; i >= max(0, len(p.roles)-few); i-- {
		if p.terms[i] == of && placement.Alike(p.roles[i].Pod, pod, p.selected) {
			return i, true
		}
	}
	return 0, false
}

// bySignature returns the role of a member, if it has one. at has the roles by signature, up to the last that was looked up; the member's signature is that of the next
// role if it has none.
func (p *memberRoles) bySignature(pod *corev1.Pod, of terms, at map[string]int) (i int, ok bool, err error) {
	for i := len(at); i < len(p.roles); i++ {
		key, err := p.signature(i)
		if err != nil {
			return 0, false, err
		}
		at[key] = i
	}
	key, err := of.signature(pod, p.selected)
	i, ok = at[key]
	return i, ok, err
}

// signature is equal for equal roles.
func (p *memberRoles) signature(i int) (string, error) {
	return p.terms[i].signature(p.roles[i].Pod, p.selected)
}

// examples returns one member of each role.
func (p *memberRoles) examples() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(p.roles))
	for _, r := range p.roles {
		pods = append(pods, r.Pod)
	}
	return pods
}

// assign gives the nodes of a placement to members: of each role in the order in which it has its members come, so that the first member of a role, which the
// engine may have been trying already, has the role's first place. Sequence is empty where any order will do.
func (p *memberRoles) assign(found placement.Result) (nodes map[types.UID]string, sequence []types.UID) {
	nodes = make(map[types.UID]string, len(found.Placement))
	next := make([]int, len(p.roles))
	give := func(a placement.Assignment) types.UID {
		i := slices.IndexFunc(p.roles, func(r placement.Role) bool { return r.Name == a.Role })
		pod := p.pods[i][next[i]]
		next[i]++
		nodes[pod.UID] = a.Node
		return pod.UID
	}
	if len(found.Sequence) != len(found.Placement) {
		for _, a := range found.Placement {
			give(a)
		}
		return nodes, nil
	}
	for _, a := range found.Sequence {
		sequence = append(sequence, give(a))
	}
	return nodes, sequence
}

// swapToNominated has members that are nominated for a node that another of their role is given exchange theirs with it.
func (p *memberRoles) swapToNominated(nodes map[types.UID]string) {
	for _, pods := range p.pods {
		for _, pod := range pods {
			desired, given := pod.Status.NominatedNodeName, nodes[pod.UID]
			if desired == "" || given == "" || given == desired {
				continue
			}
			i := slices.IndexFunc(pods, func(other *corev1.Pod) bool {
				return nodes[other.UID] == desired && other.Status.NominatedNodeName != desired
			})
			if i >= 0 {
				nodes[pod.UID], nodes[pods[i].UID] = desired, given
			}
		}
	}
}

// dependsOn reports whether a topology spread constraint of a member counts one of some pods, or required affinity of one may be to it.
func (p *memberRoles) dependsOn(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(p.roles, func(r placement.Role) bool {
		for _, c := range r.Pod.Spec.TopologySpreadConstraints {
			if selectsOneOf(pods, c.LabelSelector, func(pod *corev1.Pod) bool { return pod.Namespace == r.Pod.Namespace }) {
				return true
			}
		}
		if a := r.Pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
			for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				if selectsOneOf(pods, term.LabelSelector, func(pod *corev1.Pod) bool {
					return term.NamespaceSelector != nil || slices.Contains(term.Namespaces, pod.Namespace) || len(term.Namespaces) == 0 && pod.Namespace == r.Pod.Namespace
				}) {
					return true
				}
			}
		}
		return false
	})
}

// selectsOneOf reports whether a selector selects one of those pods that are in its namespaces. One that cannot be read may select any.
func selectsOneOf(pods []*corev1.Pod, by *metav1.LabelSelector, in func(*corev1.Pod) bool) bool {
	selector, err := metav1.LabelSelectorAsSelector(by)
	return err != nil || slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return in(pod) && selector.Matches(labels.Set(pod.Labels)) })
}

// inspect records which constraints a member has.
func (p *memberRoles) inspect(pod *corev1.Pod) {
	p.refersToDevices = p.refersToDevices || len(pod.Spec.ResourceClaims) > 0
	p.refersToClaims = p.refersToClaims || p.refersToDevices
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		p.refersToClaims = p.refersToClaims || v.PersistentVolumeClaim != nil || v.Ephemeral != nil || placement.InlineDisk(v)
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		p.interPod = p.interPod || c.WhenUnsatisfiable == corev1.DoNotSchedule
		p.prefers = p.prefers || c.WhenUnsatisfiable == corev1.ScheduleAnyway
	}
	a := pod.Spec.Affinity
	if a == nil {
		return
	}
	if a.NodeAffinity != nil {
		p.prefers = p.prefers || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	if a.PodAffinity != nil {
		p.namespaced = p.namespaced || selectsNamespaces(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.interPod = p.interPod || len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		p.prefers = p.prefers || len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	if a.PodAntiAffinity != nil {
		p.namespaced = p.namespaced || selectsNamespaces(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.prefers = p.prefers || len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
}

func selectsNamespaces(terms []corev1.PodAffinityTerm) bool {
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}

// name returns the name of a role in explanations; roles of the same name are numbered.
func (p *memberRoles) name(pod *corev1.Pod) string {
	name := pod.Labels[kubeflowv1.ReplicaTypeLabel]
	if name == "" {
		name = "member"
	}
	for _, r := range p.roles {
		if r.Name == name {
			return fmt.Sprintf("%s#%d", name, len(p.roles)+1)
		}
	}
	return name
}

// claimGetter gets a ResourceClaim.
type claimGetter interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
}

// ownVolume distinguishes volumes of pods that are made for these alone, see [placement.Cluster.OwnVolume].
type ownVolume func(*corev1.Pod, *corev1.Volume) string

// ownClaims distinguishes pods that have claims of their own.
func ownClaims(pod *corev1.Pod, claims claimGetter, volumes ownVolume) (string, error) {
	return placement.OwnClaims(pod, func(v *corev1.Volume) string { return volumes(pod, v) }, func(ref corev1.PodResourceClaim) *resourceapi.ResourceClaim {
		claim, err := claims.Get(pod.Namespace, placement.ClaimName(pod, ref))
		if err != nil {
			return nil // it is not there yet
		}
		return claim
	})
}
