package replacement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// Hold is a place that is kept for the replacement of a member.
type Hold struct {
	// Group is the gang's virtual PodGroup.
	Group types.NamespacedName
	// Member is the name of the pod that had the place, in the gang's
	// namespace. It is empty where that is not known: the pod died while no
	// scheduler ran.
	Member string
	Node   string
	// Until is when the place is given to whoever wants it.
	Until time.Time
	// Priority is the gang's. Only pods of a higher one may take the place.
	Priority int32

	pod fwk.PodInfo // what takes up the room
}

// Pod is a pod that needs what is held. It is not to be changed.
func (h Hold) Pod() *corev1.Pod { return h.pod.GetPod() }

// Why reads like: held for the replacement of research/llama-3 (gang
// research/llama) until 12:00:00 UTC.
func (h Hold) Why() string {
	return fmt.Sprintf("held for the replacement of %s (gang %s) until %s", h.who(), gangName(h.Group), h.Until.UTC().Format("15:04:05 MST"))
}

// binds tells whether a pod has to leave the place alone.
func (h Hold) binds(pod *corev1.Pod) bool {
	group, ok := engine.GroupOf(pod)
	return (!ok || group != h.Group) && corev1helpers.PodPriority(pod) <= h.Priority
}

// Holds are the places that are held at one moment, by node. They are not to be
// changed.
type Holds map[string][]Hold

// Against returns the holds that a pod has to heed, by node; nil for none.
func (h Holds) Against(pod *corev1.Pod) Holds {
	return h.filter(func(hold Hold) bool { return hold.binds(pod) })
}

// Of returns the holds for the members of a gang, by node; nil for none.
func (h Holds) Of(group types.NamespacedName) Holds {
	return h.filter(func(hold Hold) bool { return hold.Group == group })
}

func (h Holds) filter(keep func(Hold) bool) Holds {
	var out Holds
	for node, holds := range h {
		for _, hold := range holds {
			if keep(hold) {
				if out == nil {
					out = Holds{}
				}
				out[node] = append(out[node], hold)
			}
		}
	}
	return out
}

// Clone implements fwk.StateData; holds do not change.
func (h Holds) Clone() fwk.StateData { return h }

// describe says what is held on a node and for whom. What names the resources
// that a pod lacks because of it.
func describe(node string, holds []Hold, what []corev1.ResourceName) string {
	var amounts, members, gangs []string
	var until time.Time
	for _, hold := range holds {
		members = append(members, hold.who())
		gangs = append(gangs, gangName(hold.Group))
		if hold.Until.After(until) {
			until = hold.Until
		}
	}
	for _, name := range what {
		amounts = append(amounts, amount(holds, name))
	}
	if len(amounts) == 0 {
		amounts = []string{"host ports"}
	}
	slices.Sort(members)
	slices.Sort(gangs)
	gangs = slices.Compact(gangs)
	noun := "gang "
	if len(gangs) > 1 {
		noun = "gangs "
	}
	return fmt.Sprintf("node %s holds %s for the replacement of %s (%s%s) until %s",
		node, strings.Join(amounts, ", "), strings.Join(slices.Compact(members), ", "), noun, strings.Join(gangs, ", "), until.UTC().Format("15:04:05 MST"))
}

func (h Hold) who() string {
	if h.Member == "" {
		return "a lost member"
	}
	return h.Group.Namespace + "/" + h.Member
}

// amount is how much of a resource is held, and its name.
func amount(holds []Hold, name corev1.ResourceName) string {
	var total resource.Quantity
	for _, hold := range holds {
		if name == corev1.ResourcePods {
			total.Add(*resource.NewQuantity(1, resource.DecimalSI))
			continue
		}
		total.Add(resourcehelper.PodRequests(hold.pod.GetPod(), resourcehelper.PodResourcesOptions{})[name])
	}
	return total.String() + " " + string(name)
}

// gangName is the name that users know a gang by.
func gangName(group types.NamespacedName) string {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return group.String()
	}
	return key.Namespace + "/" + key.Name
}
