package submit

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// place is where members may run.
func (p *podFlags) place(changed func(string) bool) (render.Placement, error) {
	place := render.Placement{Affinity: p.Affinity}
	if p.Affinity != "" {
		place.Required, place.Domain = p.Constraint == required, p.Domain
	}
	var err error
	place.NodeSelector, err = keyValues("node-selector", p.NodeSelector, func(key, value string) []string {
		return append(content.IsLabelKey(key), content.IsLabelValue(value)...)
	})
	if err != nil {
		return place, err
	}
	if len(place.NodeSelector) == 0 {
		place.NodeSelector = nil
	}
	if place.Tolerations, err = cmdutil.Tolerations(p.Tolerations, "nvidia.com/gpu=present:NoSchedule, or --toleration dedicated"); err != nil {
		return place, err
	}
	for _, text := range p.AffinityNodes {
		requirements, err := requirementsOf(text)
		if err != nil {
			return place, err
		}
		place.Nodes = append(place.Nodes, requirements...)
	}
	for _, given := range []struct{ flag, key string }{{"topology", p.Topology}, {"affinity-domain", p.Domain}} {
		if problems := content.IsLabelKey(given.key); given.key != "" && len(problems) > 0 {
			return place, failure.Usagef("--%s %q: %s", given.flag, given.key, strings.Join(problems, "; "))
		}
	}
	if _, err := gang.TopologyKeys(p.preferredDomains()); err != nil {
		return place, failure.Usagef("--topology-preferred %q: %w", phrase.Shorten(p.PreferredTopology, 80), err).WithHint("for example: --topology-preferred rack,topology.kubernetes.io/zone")
	}
	for _, flag := range []string{"affinity-constraint", "affinity-domain"} {
		if changed(flag) && p.Affinity == "" {
			return place, failure.Usagef("--%s has no effect without --affinity-policy", flag).WithHint("add --affinity-policy spread or --affinity-policy pack, or leave out --%s", flag)
		}
	}
	if p.Affinity == render.Spread && place.Required && p.Topology != "" && p.Topology == p.Domain {
		return place, failure.Usagef("--topology %s and --affinity-policy spread cannot both hold: the one wants all members at one value of the label, the other at most one", p.Topology).
			WithHint("leave out one of them, or use --affinity-constraint preferred")
	}
	return place, nil
}

// preferredDomains are the keys of --topology-preferred.
func (p *podFlags) preferredDomains() []string {
	if p.PreferredTopology == "" {
		return nil
	}
	keys := strings.Split(p.PreferredTopology, ",")
	for i := range keys {
		keys[i] = strings.TrimSpace(keys[i])
	}
	return keys
}

// requirementsOf reads a selector of labels, as `kubectl -l` takes it.
func requirementsOf(text string) ([]corev1.NodeSelectorRequirement, error) {
	selector, err := labels.Parse(text)
	if err != nil || strings.TrimSpace(text) == "" {
		if err == nil {
			err = fmt.Errorf("it is empty")
		}
		return nil, failure.Usagef("--affinity-node %q: %w", text, err).WithHint("for example: --affinity-node 'gpu-model in (a100,h100)', --affinity-node '!spot'")
	}
	requirements, _ := selector.Requirements()
	var all []corev1.NodeSelectorRequirement
	for _, r := range requirements {
		n := corev1.NodeSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			n.Operator = corev1.NodeSelectorOpIn
		case selection.NotIn, selection.NotEquals:
			n.Operator = corev1.NodeSelectorOpNotIn
		case selection.Exists:
			n.Operator, n.Values = corev1.NodeSelectorOpExists, nil
		case selection.DoesNotExist:
			n.Operator, n.Values = corev1.NodeSelectorOpDoesNotExist, nil
		case selection.GreaterThan:
			n.Operator = corev1.NodeSelectorOpGt
		case selection.LessThan:
			n.Operator = corev1.NodeSelectorOpLt
		}
		all = append(all, n)
	}
	return all, nil
}

// devices are the extended resources of a member that trains.
func (p *podFlags) devices(gpu string) (corev1.ResourceList, error) {
	list, err := parseDevices(p.Devices, gpu, 1)
	if err != nil || p.RDMA == "" {
		return list, err
	}
	if !request.IsExtended(corev1.ResourceName(p.RDMA)) {
		return nil, failure.Usagef("--rdma %q: must be an extended resource, DOMAIN/NAME", p.RDMA).WithHint("for example: --rdma=rdma/hca")
	}
	if _, twice := list[corev1.ResourceName(p.RDMA)]; twice {
		return nil, failure.Usagef("--rdma and --device both request %s", p.RDMA).WithHint("leave out --device %s", p.RDMA)
	}
	list[corev1.ResourceName(p.RDMA)] = *resource.NewQuantity(1, resource.DecimalSI)
	return list, nil
}

// parseDevices reads DOMAIN/NAME=COUNT and hugepages-SIZE=AMOUNT, each of at least so many. gpu has flags of its own.
func parseDevices(texts []string, gpu string, least int64) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		device, example := corev1.ResourceName(name), "for example: --device rdma/hca=1, or --device hugepages-1Gi=16Gi"
		quantity, err := resource.ParseQuantity(number)
		switch huge := request.IsHugePages(device); {
		case huge && (err != nil || quantity.Value() < least || !request.IsWhole(device, quantity)):
			return nil, failure.Usagef("--device %q: must be hugepages-SIZE=AMOUNT, with an amount of whole pages", text).WithHint("%s", example)
		case !huge && (!ok || err != nil || quantity.Value() < least || !request.IsWhole(device, quantity)):
			return nil, failure.Usagef("--device %q: must be DOMAIN/NAME=COUNT, with a whole number from %d on", text, least).WithHint("%s", example)
		case !huge && !request.IsExtended(device):
			return nil, failure.Usagef("--device %q: %q is neither an extended resource, DOMAIN/NAME, nor huge pages, hugepages-SIZE", text, name).WithHint("%s", example)
		case name == gpu:
			return nil, failure.Usagef("--device %s: this resource is what --gpus counts", name).WithHint("use --gpus %s", number)
		}
		if _, twice := list[device]; twice {
			return nil, failure.Usagef("--device %s is given twice", name)
		}
		list[device] = quantity
	}
	return list, nil
}
